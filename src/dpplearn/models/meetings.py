"""How often two items meet in a set, under a model and by chance: how far the model keeps them apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints, read_only
from dpplearn.kernels.among import pairs_among
from dpplearn.kernels.independent import before_truncation
from dpplearn.kernels.interface import Law

NEVER_EMPTY = 0.25  # a model that has the empty set so much less often than independent items was made to
HARDLY_ANY = 0.05  # less room than this for a second item leaves no chance to compare with
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Together:
    """P(i, j ∈ Y) under the model, and by chance: were items independent, each as frequent as it is."""

    both: Floats  # (n_items, n_items)
    chance: Floats  # (n_items, n_items)

    @cached_property
    def substitution(self) -> Floats:
        """1 − both/chance, the share of the meetings by chance that the model does not have: 1 for items never
        together, 0 for independent ones, below 0 for those that are together more often. Zero on the diagonal, and for
        items of probability zero."""
        found = 1 - np.divide(self.both, self.chance, out=np.ones_like(self.both), where=self.chance > 0)
        np.fill_diagonal(found, 0)
        return read_only(found)

    @property
    def lift(self) -> Floats:
        """both/chance: 1 for independent items, on the diagonal, and for items of probability zero."""
        return 1 - self.substitution


@dataclass(frozen=True, eq=False)
class Chance:
    """What meetings by chance are: items are held with probability m, and two of them with q m_i m_j."""

    m: Floats  # (n_items,) given that sets are not empty, if chance is given that, too
    not_empty: float  # P(Y ≠ ∅), by which probabilities are divided then; otherwise 1
    q: float
    given_not_empty: bool

    def of(self, frequencies: Floats) -> float:
        """q for the frequencies of other sets of the same kind."""
        return _scale(frequencies) if self.given_not_empty else 1.0


def chance_of(law: Law, *, nonempty: bool) -> Chance:
    """A model of data without empty baskets keeps all items apart a little, only to say that no set is empty. There
    chance is that of independent items given that they are not all absent, and what a pair is kept apart beyond that
    is its own; so it is for models learned given that sets are not empty (`nonempty`). Where sets hold hardly more than
    one item nothing would be left to compare with, and chance is that of plain independence.
    """
    alone, empty = law.marginals(), math.exp(law.log_empty())
    if not nonempty and empty >= NEVER_EMPTY * np.prod(1 - alone):
        return Chance(alone, 1.0, 1.0, given_not_empty=False)
    m = np.minimum(alone / (1 - empty), 1)  # given that Y is not empty
    return Chance(m, 1 - empty, _scale(m), given_not_empty=True)


def _scale(m: Floats) -> float:
    """Given that Y is not empty, P(i, j ∈ Y) = p_i p_j/P(Y ≠ ∅) = q m_i m_j, with p = q m the chances before."""
    q = float(before_truncation(m).sum() / max(m.sum(), TINY))
    return q if q > HARDLY_ANY else 1.0


def together(law: Law, *, nonempty: bool = False, items: Ints | None = None) -> Together:
    """Of all items, or of some; chance as in `chance_of`."""
    chance = chance_of(law, nonempty=nonempty)
    m = chance.m if items is None else chance.m[items]
    both = law.pairs() if items is None else pairs_among(law, items)
    return Together(both / chance.not_empty, chance.q * np.outer(m, m))
