"""Kernels of few parameters, and what baskets say of these: all that is likely, not the likeliest alone."""
