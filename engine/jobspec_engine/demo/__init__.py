"""The demo: two jobs, racing senders, and a table of what ran and why the rest did not."""
