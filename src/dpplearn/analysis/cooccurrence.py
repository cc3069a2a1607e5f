"""Which pairs of items occur together less often, or more often, than independent items would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.pair_counts import pair_counts
from dpplearn.data.weights import effective_number
from dpplearn.distributions.independent import before_truncation
from dpplearn.errors import InputError

LEVEL = 0.05
AT_ONCE = 1_000_000  # possible counts of pairs that are looked at together
FEW = 1000  # items that occur, of which every pair is tested
WORTH_TESTING = 3.0  # meetings expected by chance; of more items, a pair that expects fewer is tested only if it met
MOST_PAIRS = 5_000_000  # that met; of more, those that met least often are left out
WIDE = 6  # standard deviations, and counts more, on either side of what is looked at: all but 1e-9 of the chances


class Pair(NamedTuple):
    """Two items, how many baskets hold both, how many would by chance, and how surprising that is."""

    first: Label
    second: Label
    observed: float
    expected: float
    p: float
    information: float  # nats per basket

    @property
    def ratio(self) -> float:
        """Observed to expected; NaN where nothing was expected."""
        return self.observed / self.expected if self.expected > 0 else float("nan")


class Strength(NamedTuple):
    """How far a side departs from chance, summed over pairs, in nats per basket; and how far chance alone strays.

    What chance alone shows is taken off, so that it is below zero where pairs lean this way even less than that.
    """

    nats: float
    standard_error: float

    @property
    def clear(self) -> bool:
        """More than two standard errors above what chance alone shows."""
        return self.nats > 2 * self.standard_error


@dataclass(frozen=True, eq=False, repr=False)
class PairTests:
    """Every pair of items that occur, against chance; of a large catalogue, those that met or were expected to.

    `p` is two-sided: twice the smaller tail with half of the count observed, given how often each item occurs.
    """

    catalogue: Catalogue
    n: int  # baskets that were counted; of weights that are not counts, as many as they are worth
    nonempty: bool  # whether chance is that of independent items given that a basket is not empty
    probability_empty: float  # of independent items; what was cut off, if `nonempty`
    n_possible: int  # pairs of items that occur, all of which are allowed for
    pairs: Ints  # (n_pairs, 2)
    observed: Ints  # (n_pairs,)
    expected: Floats  # (n_pairs,)
    p: Floats  # (n_pairs,)
    repels: Bools  # (n_pairs,) occurs less often than by chance, the number of pairs allowed for
    attracts: Bools  # (n_pairs,)
    could_repel: Bools  # (n_pairs,) would have been told to repel, had the items never met
    information: Floats  # (n_pairs,) of observed against expected, nats per basket
    repelling: Strength
    attracting: Strength

    def __len__(self) -> int:
        return len(self.pairs)

    def strongest(self, side: Bools, k: int) -> list[Pair]:
        """The pairs of one side that depart from chance most.

        Parameters
        ----------
        side
            `repels` or `attracts`.
        k
            How many pairs at most.

        Returns
        -------
        list of Pair
            The most information comes first.

        Examples
        --------
        >>> from dpplearn import Baskets
        >>> tests = pair_tests(Baskets.from_lists([["cot"], ["crib"], ["bib", "cot"], ["bib", "crib"]] * 30))
        >>> [(pair.first, pair.second, pair.observed) for pair in tests.strongest(tests.repels, 1)]
        [('cot', 'crib', 0.0)]
        """
        found = np.flatnonzero(side)
        best = found[np.argsort(-self.information[found], kind="stable")][:k]
        columns = (self.observed, self.expected, self.p, self.information)
        labels = self.catalogue.labels
        return [
            Pair(labels[i], labels[j], *(float(column[row]) for column in columns))
            for row, (i, j) in zip(best, self.pairs[best], strict=True)
        ]


def pair_tests(
    baskets: Baskets,
    level: float = LEVEL,
    *,
    max_dense_items: int = FEW,
    max_pairs: int = MOST_PAIRS,
    batch_size: int = AT_ONCE,
) -> PairTests:
    """Test every pair of items that occur against independence, given how often each occurs.

    Tails are those of the hypergeometric law, and errors are held to `level` over all pairs by the rule of Benjamini
    and Hochberg [BH95]. Where no basket is empty, chance is that of independent items given that they are not all
    absent: their odds ratio is 1 − P(all others absent) and not 1, for whoever lacks all others must hold one of the
    two. Whole-numbered weights are counts; other weights stand for their effective number of baskets [Kish65].

    Of more than a thousand items, a pair that never met and would by chance have met less than three times is not
    looked at: it could not be told from chance. The rule allows for all pairs, and strengths are then of those that
    were expected to meet so often.

    Parameters
    ----------
    baskets
        At least one of positive weight.
    level
        Of the pairs called repelling or attracting, the share that may be by mistake.
    max_dense_items
        Up to so many items that occur, every pair is tested.
    max_pairs
        Number of co-occurring pairs that are counted; of more, those that co-occurred least often are left out.
    batch_size
        Number of possible counts in memory at a time.

    Returns
    -------
    PairTests
        Of the pairs of items that occur.

    Examples
    --------
    >>> from dpplearn import Baskets
    >>> tests = pair_tests(Baskets.from_lists([["cot"], ["crib"], ["bib", "cot"], ["bib", "crib"]] * 30))
    >>> len(tests), int(tests.repels.sum())
    (3, 1)
    """
    from scipy.stats import false_discovery_control

    if not 0 < level < 1:
        raise InputError(f"level is {level}; expected a number between 0 and 1")
    n, count = _counts(baskets)
    possible = int(np.count_nonzero(count)) * (int(np.count_nonzero(count)) - 1) // 2
    pairs, observed = _tested(baskets, n, count, max_dense_items, max_pairs)
    nonempty = bool(baskets.sizes[baskets.weights > 0].min(initial=1) > 0)
    chances, odds, empty = _chance(count / n, pairs, nonempty)
    first, second = count[pairs].T
    margins = _Margins(observed, first, second, n, n * chances, odds)
    null = _null(margins, batch_size)
    adjusted = false_discovery_control(null.p) * (possible / len(pairs)) if len(pairs) else null.p
    told = adjusted <= level
    enough = level * (told.sum() + 1) / max(possible, 1)  # for one pair more to be told
    fewer = margins.observed < margins.expected
    # Pairs that are tested because they met say nothing of how often such pairs do.
    fair = (margins.expected >= WORTH_TESTING) | (len(pairs) == possible)
    return PairTests(
        catalogue=baskets.catalogue,
        n=n,
        nonempty=nonempty,
        probability_empty=empty,
        n_possible=possible,
        pairs=read_only(pairs),
        observed=read_only(margins.observed),
        expected=read_only(margins.expected),
        p=read_only(null.p),
        repels=read_only(told & fewer),
        attracts=read_only(told & ~fewer),
        could_repel=read_only(null.p_at_least <= enough),
        information=read_only(null.information / n),
        repelling=_strength(null, fair, fewer, 0, n),
        attracting=_strength(null, fair, ~fewer, 1, n),
    )


def _counts(baskets: Baskets) -> tuple[int, Ints]:
    """How many baskets there are, and how many hold each item."""
    n = round(effective_number(baskets.weights)) if len(baskets) else 0
    if n < 1:
        raise InputError(
            f"there is nothing to count: {len(baskets)} baskets of total weight {baskets.total_weight:g}; "
            "expected at least one basket of positive weight"
        )
    return n, np.rint(baskets.frequencies() * n).astype(np.int64)


def _tested(baskets: Baskets, n: int, count: Ints, max_dense_items: int, max_pairs: int) -> tuple[Ints, Ints]:
    """The pairs that are looked at, (n_pairs, 2), in the order of the catalogue; and how many baskets hold both."""
    met, n_items = pair_counts(baskets, max_pairs), baskets.n_items
    counted = count[met.pairs].all(axis=1)  # a weight that is worth less than half a basket may count nothing
    keys = met.pairs[counted].astype(np.int64) @ [n_items, 1]
    least = 0.0 if np.count_nonzero(count) <= max_dense_items else WORTH_TESTING * n
    every = np.union1d(keys, _products_above(count, least) @ [n_items, 1])
    together = np.full(len(every), max(met.least - 1, 0.0))  # what was left out may have met so often
    together[np.searchsorted(every, keys)] = met.weights[counted]
    observed = np.rint(together * (n / baskets.total_weight)).astype(np.int64)
    return np.column_stack(np.divmod(every, n_items)), observed


def _products_above(count: Ints, least: float) -> Ints:
    """The pairs of items that occur, (n_pairs, 2), of which the product of counts is at least so large."""
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    sorted_ = count[order]
    last = np.searchsorted(-sorted_, -least / sorted_, side="right")  # for each, where the others become too few
    more = np.maximum(last - np.arange(1, len(order) + 1), 0)
    first = np.repeat(np.arange(len(order)), more)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(more) - more, more)
    return np.sort(np.column_stack([order[first], order[second]]), axis=1)


def _chance(m: Floats, pairs: Ints, nonempty: bool) -> tuple[Floats, Floats, float]:
    """What independence makes of frequencies m: of every pair the probability of both, and the odds ratio; and P(∅).

    Given that not all items are absent, P(i and j) = p_i p_j/P(Y ≠ ∅), with p the chances before that was known.
    """
    p = before_truncation(m) if nonempty else m
    empty = float((1 - p).prod())
    first, second = pairs.T
    if not nonempty:
        return m[first] * m[second], np.ones(len(pairs)), empty
    both_absent = (1 - p[first]) * (1 - p[second])
    others_absent = np.divide(empty, both_absent, out=np.zeros_like(both_absent), where=both_absent > 0)
    return m[first] * p[second], np.clip(1 - others_absent, 0, 1), empty


class _Margins(NamedTuple):
    """Of every pair: how many baskets hold both, the first, the second; all baskets; and what chance expects."""

    observed: Ints
    first: Ints
    second: Ints
    n: int
    expected: Floats
    odds: Floats

    def part(self, rows: slice) -> _Margins:
        return _Margins(
            self.observed[rows], self.first[rows], self.second[rows], self.n, self.expected[rows], self.odds[rows]
        )

    @property
    def least(self) -> Ints:
        return np.asarray(np.maximum(self.first + self.second - self.n, 0))

    @property
    def most(self) -> Ints:
        return np.minimum(self.first, self.second)


class _Null(NamedTuple):
    """What chance makes of every pair."""

    p: Floats  # (n_pairs,)
    p_at_least: Floats  # (n_pairs,) p had the items met as seldom as they can
    information: Floats  # (n_pairs,) n KL(observed table | expected table)
    mean: Floats  # (n_pairs, 2) of the information by chance, where fewer meet than expected, and where more
    variance: Floats  # (n_pairs, 2)


def _strength(null: _Null, fair: Bools, side: Bools, column: int, n: int) -> Strength:
    """The information of one side, of the pairs chosen whatever they did, beyond what chance shows of it."""
    excess = null.information[fair & side].sum() - null.mean[fair, column].sum()
    return Strength(float(excess) / n, float(np.sqrt(null.variance[fair, column].sum())) / n)


def _null(margins: _Margins, batch_size: int) -> _Null:
    """Part by part, as all possible counts of all pairs would not fit."""
    parts = [_null_of(margins.part(rows)) for rows in _parts(margins, batch_size)]
    none = _Null(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)))
    return _Null(*(np.concatenate(columns) for columns in zip(none, *parts, strict=True)))


def _window(margins: _Margins) -> tuple[Ints, Ints]:
    """The first and the last count that matter: those around the expected and the observed one."""
    spread = np.sqrt(margins.expected) + 1  # no less than the standard deviation
    wide = np.ceil(WIDE * spread).astype(np.int64)
    expected = np.rint(margins.expected).astype(np.int64)
    first = np.maximum(np.minimum(margins.observed, expected) - wide, margins.least)
    last = np.minimum(np.maximum(margins.observed, expected) + wide, margins.most)
    return np.minimum(first, margins.most), np.maximum(last, margins.least)


def _parts(margins: _Margins, batch_size: int) -> Iterator[slice]:
    first, last = _window(margins)
    ends = np.cumsum(last - first + 1)
    cuts = np.searchsorted(ends, np.arange(batch_size, ends[-1] if len(ends) else 0, batch_size)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(ends)]]))
    return (slice(start, stop) for start, stop in pairwise(edges.tolist()))


def _null_of(margins: _Margins) -> _Null:
    first, last = _window(margins)
    lengths = last - first + 1
    starts = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(len(lengths)), lengths)
    count = np.arange(len(row)) - np.repeat(starts - first, lengths)  # (n_counts,) the counts of one pair after another

    def summed(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, starts))

    log_weight = _log_weight(margins, row, count)
    largest = np.maximum.reduceat(log_weight, starts)
    weight = np.exp(log_weight - largest[row])
    total = summed(weight)
    probability = weight / total[row]
    observed = margins.observed[row]
    here = summed(probability * (count == observed)) / 2
    lower, upper = summed(probability * (count < observed)) + here, summed(probability * (count > observed)) + here
    log_least = _log_weight(margins, np.arange(len(lengths)), margins.least) - largest - np.log(total)

    information = np.where(probability > 0, _information(margins, row, count), 0)
    sides = [information * side for side in (count < margins.expected[row], count >= margins.expected[row])]
    mean = np.column_stack([summed(probability * side) for side in sides])
    square = np.column_stack([summed(probability * side**2) for side in sides])
    return _Null(
        p=np.minimum(2 * np.minimum(lower, upper), 1),
        p_at_least=np.exp(np.minimum(log_least, 0)),  # twice half of its probability
        information=_information(margins, np.arange(len(lengths)), margins.observed),
        mean=mean,
        variance=np.maximum(square - mean**2, 0),
    )


def _log_weight(margins: _Margins, row: Ints, x: Ints) -> Floats:
    """log of C(c_i, x) C(n − c_i, c_j − x) ψ^x up to a constant: Fisher's noncentral hypergeometric law, odds ψ."""
    from scipy.special import gammaln, xlogy

    a, b, n = margins.first[row], margins.second[row], margins.n
    ways = gammaln(x + 1) + gammaln(a - x + 1) + gammaln(b - x + 1) + gammaln(n - a - b + x + 1)
    return np.asarray(xlogy(x - margins.least[row], margins.odds[row]) - ways)


def _information(margins: _Margins, row: Ints, x: Ints) -> Floats:
    """n KL of the 2 × 2 table with x in both, against that of chance."""
    from scipy.special import rel_entr

    a, b, both, n = margins.first[row], margins.second[row], margins.expected[row], margins.n
    cells = ((x, both), (a - x, a - both), (b - x, b - both), (n - a - b + x, np.maximum(n - a - b + both, 0)))
    return np.asarray(sum(rel_entr(seen, chance) for seen, chance in cells))
