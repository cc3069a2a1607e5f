"""Labels, sets and files."""
