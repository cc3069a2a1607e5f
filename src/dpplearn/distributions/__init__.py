"""Probability distributions over sets of items. Items are integers here; `dpplearn.models` adds names.

`distribution` answers every query, and only there the empty set is treated differently from other sets. It asks a batch
of `components`: `spectral`, a symmetric DPP, or `scaled`, the segments of a mixture, whose `interaction` is dense or
low-rank. `ranking` finds the best next items, `sampling` draws sets, and `sizes` gives the distribution of their size.
"""
