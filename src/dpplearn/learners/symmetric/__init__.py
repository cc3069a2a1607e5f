"""Learners of symmetric DPPs.

A learner is a function from a start, a `SpectralDPP`, and a `SymmetricProblem` to an iterator of `loop.Step`s. The
first step is the start itself. It yields forever or ends where no step improves. `em` is an example. A new learner is a
function, an entry in `table.LEARNERS`, and its name in the docstring of `fit_dpp`; nothing else lists learners.
"""
