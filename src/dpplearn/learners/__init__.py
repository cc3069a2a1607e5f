"""Learners: from baskets to models.

`fit`, `fit_dpp`, `fit_quality`, `fit_weights`, `fit_slates` and `posterior` are the public functions. A learner is a
generator of `Step`s, each a better model than the last. `loop.run` follows it: stopping rules, history, limits and
callbacks are there and nowhere else.
"""
