"""One file per command: its options, what it does, its answer as plain data and as tables."""
