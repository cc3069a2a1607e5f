"""The compiled inner loops of factored kernels."""
