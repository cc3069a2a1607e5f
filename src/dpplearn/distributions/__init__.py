"""Probability distributions over sets of items. Items are integers here; `dpplearn.models` adds names.

`distribution` answers every query. It also holds the probability of the empty set, which may differ from what the DPPs
give it; its docstring says how. It asks a batch of `components`: `spectral`, a symmetric DPP, or `scaled`, the segments
of a mixture, whose `interaction` is dense or low-rank. Components do not know about a changed probability of the empty
set, except that `sample` can draw nonempty sets (`sampling`, `compiled.sampling`). `ranking` finds the best next items,
and `sizes` gives the distribution of set sizes.
"""
