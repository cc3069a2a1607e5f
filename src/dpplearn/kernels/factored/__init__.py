"""The mixtures of `kernels.nonsymmetric` in a form for large catalogues: C = I + Z Ω Zᵀ, and nothing is N × N."""
