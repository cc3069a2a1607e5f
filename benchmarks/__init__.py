"""Benchmarks of speed and memory (`make bench`), and of the models and learners. Compare ratios within one run."""
