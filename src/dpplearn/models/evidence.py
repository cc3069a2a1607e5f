"""What the baskets learned from say of pairs of items: how often they met, and whether chance explains it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.models.meetings import Chance
from dpplearn.models.training import Training

LEVEL = 0.05
INTERVAL = 0.9


class Evidence(NamedTuple):
    """Of pairs: the weight of the baskets that hold both, and of those that would by chance; NaN where not known.

    Counts are judged as those of a Poisson law, which strays further than counts given how often each item occurs do:
    what is told from chance by it is told surely.
    """

    met: Floats
    expected: Floats
    missed: float = 0.0  # how often those may have met that count as never together

    def interval(self) -> tuple[Floats, Floats]:
        """Where the counts put their ratio to chance, nine times in ten."""
        from scipy.special import gammaincinv

        met, expected = self.met, self.expected
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(met > 0, gammaincinv(met, (1 - INTERVAL) / 2) / expected, 0)
            high = gammaincinv(self._most + 1, (1 + INTERVAL) / 2) / expected
        return np.where(np.isnan(met), np.nan, low), high

    @property
    def _most(self) -> Floats:
        """How often they may have met."""
        return np.where(self.met == 0, self.missed, self.met)

    def fewer(self) -> Floats:
        """How likely chance brings together so few or fewer."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self._most + 1, self.expected))

    def more(self) -> Floats:
        """How likely chance brings together so many or more."""
        from scipy.special import gammainc

        never = self.met == 0
        return np.asarray(np.where(never, 1.0, gammainc(np.where(never, 1.0, self.met), self.expected)))


def evidence_with(training: Training | None, chance: Chance, item: int) -> Evidence:
    """Of one item with every other."""
    if training is None:
        unknown = np.full(len(chance.m), np.nan)
        return Evidence(unknown, unknown)
    expected = training.item_weights[item] * training.frequencies * chance.of(training.frequencies)
    return Evidence(training.pair_counts_of(item), expected, missed(training))


def evidence_among(training: Training | None, chance: Chance, items: Ints) -> Evidence:
    """Of every two of some items, (len(items), len(items))."""
    if training is None:
        unknown = np.full((len(items), len(items)), np.nan)
        return Evidence(unknown, unknown)
    scale = chance.of(training.frequencies)
    expected = scale * np.outer(training.item_weights[items], training.frequencies[items])
    return Evidence(training.pair_counts_among(items), expected, missed(training))


def missed(training: Training) -> float:
    """How often two items may have met whose pair was too rare to be kept."""
    return max(training.least - 1, 0.0)


def told(p: Floats, level: float, tests: int | None = None) -> Bools:
    """Which of these are not by chance: of those told, at most a share of `level` is by mistake. [BH95]

    Parameters
    ----------
    p
        How likely each is by chance; NaN, which is not known, is told.
    level
        Between 0 and 1.
    tests
        How many were looked at, if more than these.

    Returns
    -------
    array of bool
        In the shape of `p`.

    Examples
    --------
    >>> told(np.array([0.001, 0.04, 0.5]), 0.05).tolist()
    [True, False, False]
    """
    if isinstance(level, bool | str) or not 0 < level < 1:
        raise InputError(f"level is {level!r}; expected a number between 0 and 1, or None for all that the model has")
    known = np.sort(p[~np.isnan(p)])
    ranks = np.arange(1, len(known) + 1)
    enough = known[known <= level * ranks / max(tests or 0, len(known), 1)]
    return np.asarray(np.isnan(p) | (p <= (enough[-1] if len(enough) else -1.0)))


def told_pairs(found: Evidence, level: float = LEVEL) -> Bools:
    """Of a square of pairs, those that met more or less often than chance explains; none on the diagonal."""
    first, second = np.triu_indices(len(found.met), 1)
    of_each = Evidence(found.met[first, second], found.expected[first, second], found.missed)
    two_sided = np.minimum(2 * np.minimum(of_each.fewer(), of_each.more()), 1)
    square = np.zeros(found.met.shape, bool)
    square[first, second] = told(two_sided, level)
    return np.asarray(square | square.T)
