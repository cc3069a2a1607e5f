"""Learning mixtures of DPPs with a dense interaction, for up to 300 items."""
