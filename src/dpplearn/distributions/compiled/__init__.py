"""Inner loops compiled by numba. numba is slow to import, so `loops` imports a module when it is first used."""
