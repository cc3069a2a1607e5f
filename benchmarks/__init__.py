"""What dpplearn claims about speed and memory, measured: `make bench`. Ratios within one run are what count."""
