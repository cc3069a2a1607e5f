"""Learners of symmetric DPPs.

A learner is a function `steps(start, problem)` that yields `loop.Step`s: `start` is a `SpectralDPP`, and `problem` a
`SymmetricProblem`. The first step is the start itself. It yields forever or ends where no step improves. `em` is an
example. A new learner is a function, an entry in `table.LEARNERS`, and its name in the docstring of `fit_dpp`.
"""
