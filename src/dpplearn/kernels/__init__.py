"""The law of a set given parameters: a folder per family, the same file names in each."""
