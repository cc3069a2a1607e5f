"""Maintenance of fitted models: update with new baskets, and check for drift."""
