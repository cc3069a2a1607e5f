"""A model as time goes by: learned on with new baskets, and compared with recent ones."""
