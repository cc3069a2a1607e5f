"""WeightedKernel: laws that are what they are, and how likely each is to be the one that a set comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, read_only
from dpplearn.errors import InputError
from dpplearn.kernels.interface import Law
from dpplearn.kernels.nonsymmetric.kernel import ROUNDING
from dpplearn.tools.words import count


@dataclass(frozen=True, eq=False, repr=False)
class WeightedKernel:
    """P(Y) = Σ_c w_c P_c(Y). The laws P_c share nothing but their items: DPPs, mixtures, in any number. [KT11b]

    Examples
    --------
    >>> from dpplearn.kernels.symmetric.kernel import Kernel
    >>> from dpplearn.kernels.symmetric.law import SymmetricLaw
    >>> repels, apart = Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), Kernel.from_K([[0.5, 0], [0, 0.5]])
    >>> WeightedKernel(np.array([0.3, 0.7]), (SymmetricLaw(repels), SymmetricLaw(apart)))
    WeightedKernel(2 items, 2 segments)
    """

    weights: Floats  # (n_segments,)
    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        weights = np.array(self.weights, float)
        if weights.ndim != 1 or not len(weights) or len(weights) != len(self.laws):
            raise InputError(f"weights of shape {weights.shape} for {count(len(self.laws), 'law')}; expected one each")
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) <= ROUNDING):
            raise InputError(f"weights from {weights.min():g}, which add up to {weights.sum():g}; expected shares of 1")
        sizes = sorted({law.n_items for law in self.laws})
        if len(sizes) > 1:
            raise InputError(f"laws of {sizes[0]} and of {sizes[-1]} items; expected the same items in all of them")
        object.__setattr__(self, "weights", read_only(weights / weights.sum()))
        object.__setattr__(self, "laws", tuple(self.laws))

    def __repr__(self) -> str:
        return f"WeightedKernel({count(self.n_items, 'item')}, {count(self.n_segments, 'segment')})"

    @property
    def n_items(self) -> int:
        return self.laws[0].n_items

    @property
    def n_segments(self) -> int:
        return len(self.laws)

    @property
    def log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    @cached_property
    def log_normalisers(self) -> Floats:
        """−log P_c(∅), what log det(I + L_c) is of a DPP."""
        return read_only(np.array([-law.log_empty() for law in self.laws]))

    @cached_property
    def marginals(self) -> Floats:
        """P(i ∈ Y given segment c), (n_segments, n_items)."""
        return read_only(np.array([law.marginals() for law in self.laws]))

    @cached_property
    def log_empty(self) -> float:
        """log P(∅)."""
        return float(np.logaddexp.reduce(self.log_weights - self.log_normalisers))
