"""Learning mixtures in factors, for large catalogues: segments by EM, then their interaction from batches."""
