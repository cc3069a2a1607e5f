"""Laws mixed by weights, whatever family each is of."""
