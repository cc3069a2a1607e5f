"""Bayesian inference of parametric kernels."""
