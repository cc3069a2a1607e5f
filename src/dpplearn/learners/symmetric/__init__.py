"""Learners of symmetric DPPs. `table.LEARNERS` lists them by name."""
