"""Learners: from baskets to models.

`fit`, `fit_dpp`, `fit_quality`, `fit_weights`, `fit_slates` and `posterior` are the public functions. A learner is a
generator of `Step`s; `loop.run` follows it: stopping rules, history, limits and callbacks are there and nowhere else.
`symmetric.table` lists the learners of symmetric DPPs, `settings` those of mixtures. From `fit` to a learner: `fit` →
`settings` (options to a `Task`) → `fit.Fit` (starts, restarts, the best run) → `loop.run`.
"""
