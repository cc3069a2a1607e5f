"""Models with item names, their answers, and their files.

`model` has the queries of both `DPP` and `Mixture`. A query turns labels into positions, asks the distribution of the
model (`dpplearn.distributions.distribution`), and returns one of the types of `answers`. `dpp` and `mixture` add
constructors and what only they have: L and K, and segments. `store` has the models of several categories.
"""
