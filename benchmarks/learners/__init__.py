"""Every learner on every problem: `make bench-learners`. Which is first at the best kernel, and at what cost."""
