"""Key templates: parsed, checked, and compiled to plain functions of the event."""
