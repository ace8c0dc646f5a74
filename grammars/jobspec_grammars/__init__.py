"""The grammars of jobspec, as package data: nothing to import, everything to read."""
