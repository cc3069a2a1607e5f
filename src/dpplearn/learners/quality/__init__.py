"""Learning item quality where the similarity of items is known."""
