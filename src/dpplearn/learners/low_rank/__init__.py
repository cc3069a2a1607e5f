"""Learning mixtures with a low-rank interaction, for large catalogues: segments by EM, then Z by Adam on batches."""
