"""Evaluate models on held-out baskets."""
