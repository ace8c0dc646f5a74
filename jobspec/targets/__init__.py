"""What compiled jobs become outside of this process, one module for each target."""
