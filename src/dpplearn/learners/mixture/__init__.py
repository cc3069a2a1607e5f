"""Learning mixtures of DPPs that attract and repel."""
