"""Models with item names, their answers, and their files."""
