"""What every kind of components must answer, compared with a table of the probabilities of all subsets.

A test module runs every check of CHECKS on each of its cases.

The table has one row per component. Entry b of a row is the probability of the items that are the bits of b, the order
of `helpers.oracle.subsets`. Impossible sets must have the probability 0 in the table, because every answer is also
compared with the table in whether it is zero.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import chisquare

from dpplearn import InputError
from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.components import TopQuery, sets_of
from golden import reference
from helpers.oracle import index, membership, subsets

N_DRAWS = 4000  # the control of `check_samples` shows that these are enough
LEVEL = 1e-6  # of the tests of samplers
MIN_EXPECTED = 5  # draws of a set, for the chi-square approximation; rarer sets are counted together


@dataclass(frozen=True)
class Case:
    """Components, the probabilities of all subsets, and how far the answers may be from them."""

    components: Any
    table: Floats  # (m, 2^n)
    rtol: float = 1e-9
    atol: float = 1e-14

    @cached_property
    def n(self) -> int:
        return self.components.n_items

    @cached_property
    def holds(self) -> Bools:
        """Which items a subset has, (2^n, n)."""
        return membership(self.n)

    def including(self, items: Any) -> Floats:
        """P_c(items ⊆ Y), (m,)."""
        return self.table[:, self.holds[:, list(items)].all(axis=1)].sum(axis=1)

    def compare(self, found: Floats, expected: Floats) -> None:
        """Compare probabilities: equal up to the tolerances, and zero in the same places."""
        np.testing.assert_allclose(found, expected, rtol=self.rtol, atol=self.atol)
        np.testing.assert_array_equal(found == 0, expected == 0)


def probabilities(components: Any) -> Floats:
    """The table of components: P_c(Y) for all subsets, (m, 2^n)."""
    found = components.log_prob(sets_of(subsets(components.n_items), components.n_items))
    assert found.shape == (2**components.n_items, components.m)
    return np.exp(found.T)


def events(n: int) -> Iterator[tuple[Ints, Ints]]:
    """Disjoint sets of items that are in and items that are out: random ones, some large."""
    rng = np.random.default_rng(0)
    for number in range(60):
        order, a, b = rng.permutation(n), number % 3, number // 3 % 3
        yield order[:a], order[a : a + b]
    for cut in range(n):
        order = rng.permutation(n)
        yield order[:cut], order[cut + 1 :]
        yield order[: cut + 1], order[cut + 2 :]


def check_probabilities(case: Case) -> None:
    components, table = case.components, case.table
    assert (components.m, components.n_items) == (len(table), np.log2(table.shape[1]))
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-9)
    case.compare(probabilities(components), table)
    case.compare(np.exp(components.log_empty()), table[:, 0])
    case.compare(components.marginals(), table @ case.holds)
    every, log_mass = sets_of(subsets(case.n), case.n), np.log(np.arange(1.0, len(table) + 1)) - 3
    case.compare(np.exp(components.log_prob(every, threads=1).T), table)
    case.compare(np.exp(components.log_mixture(log_mass, every)), np.exp(log_mass) @ table)


def check_inclusion(case: Case) -> None:
    found = case.components.log_inclusion(sets_of(subsets(case.n), case.n))
    assert found.shape == (2**case.n, len(case.table))
    case.compare(np.exp(found.T), np.array([case.including(A) for A in subsets(case.n)]).T)


def check_top(case: Case) -> None:
    """The best items of `top` are those of the highest `next`, best first, with the probabilities of inclusion."""
    sets, log_mass, candidate = sets_of(subsets(case.n), case.n), np.zeros(len(case.table)), np.arange(case.n) != 1
    (log_p, scale, x), (log_q, scale_q, y) = (case.components.next(of, log_mass, sets) for of in (False, True))
    for k in (0, 2, case.n):
        best = case.components.top(TopQuery(log_mass, sets, k, candidate, inclusion=True))
        np.testing.assert_allclose(np.exp(best.log_p), np.exp(log_p).sum(axis=1), rtol=case.rtol)
        np.testing.assert_allclose(np.exp(best.log_q), np.exp(log_q).sum(axis=1), rtol=case.rtol)
        for row in range(len(sets)):
            of_row = np.where(candidate, np.exp(scale[row]) * x[row], 0)
            expected = np.sort(of_row[of_row > 0])[::-1][:k]
            n, chosen = len(expected), best.items[row, : len(expected)]
            assert len({*chosen.tolist()}) == n
            assert np.all(best.items[row, n:] == -1)
            for found in (of_row[chosen], np.exp(best.log_x[row, :n])):
                np.testing.assert_allclose(found, expected, rtol=case.rtol)
            including = np.exp(scale_q[row]) * y[row, chosen]
            np.testing.assert_allclose(np.exp(best.log_y[row, :n]), including, rtol=case.rtol)


def check_next(case: Case) -> None:
    alone = np.array([case.table[:, index(A)] for A in subsets(case.n)])
    _check_next(case, False, alone, lambda Y: case.table[:, index(Y)])
    _check_next(case, True, np.array([case.including(A) for A in subsets(case.n)]), case.including)


def _check_next(case: Case, inclusion: bool, alone: Floats, probability: Callable[[Any], Floats]) -> None:
    """Compare P_c(A) and Σ_c e^mass_c P_c(A ∪ i) for all A at once, all i and some."""
    m, n, every = len(case.table), case.n, subsets(case.n)
    joint = np.array([[probability({*A, i}) * (i not in A) for i in range(n)] for A in every])  # (s, n, m)
    some = np.random.default_rng(0).permutation(n)[: n // 2 + 1]
    for log_mass in (np.log(np.arange(1.0, m + 1)), -800.0 - np.arange(m)):
        for items in (None, np.tile(some, (2**n, 1)), np.vstack([np.roll([*some, -1], A) for A in range(2**n)])):
            log_prob, scale, x = case.components.next(inclusion, log_mass, sets_of(every, n), items)
            width = n if items is None else items.shape[-1]
            assert (log_prob.shape, scale.shape, x.shape) == ((2**n, m), (2**n,), (2**n, width))
            case.compare(np.exp(log_prob), alone)
            top = log_mass.max()  # the scale contains it
            expected = joint @ np.exp(log_mass - top)
            if items is not None:
                expected = np.where(items < 0, 0, np.take_along_axis(expected, np.maximum(items, 0), axis=1))
            case.compare(np.exp(np.where(x.any(axis=1), scale - top, 0))[:, None] * x, expected)


def check_condition(case: Case) -> None:
    for include, exclude in events(case.n):
        event = case.holds[:, include].all(axis=1) & ~case.holds[:, exclude].any(axis=1)
        joint = case.table[:, event]  # in the order of the subsets of the other items
        expected = joint.sum(axis=1)
        evidence, rest = case.components.condition(include, exclude)
        assert rest.n_items == case.n - len(include) - len(exclude)
        case.compare(np.exp(evidence), expected)
        possible = expected > 0
        if possible.any() and rest.n_items:
            table = joint[possible] / expected[possible, None]
            case.compare(probabilities(rest)[possible], table)
            case.compare(rest.marginals()[possible], table @ membership(rest.n_items))


def check_tilt(case: Case) -> None:
    rng = np.random.default_rng(0)
    for n_excluded in (0, 1, min(2, case.n - 1)):
        for spread in (0.0, 2.0):
            log_odds = spread * rng.standard_normal(case.n)
            log_odds[rng.permutation(case.n)[:n_excluded]] = -np.inf
            weights = np.exp(np.where(case.holds, log_odds, 0).sum(axis=1))
            expected = case.table @ weights
            evidence, tilted = case.components.tilt(log_odds)
            assert tilted.n_items == case.n
            case.compare(np.exp(evidence), expected)
            possible = expected > 0
            if possible.any():
                table = case.table[possible] * weights / expected[possible, None]
                case.compare(probabilities(tilted)[possible], table)
                case.compare(tilted.marginals()[possible], table @ case.holds)


def check_extreme_tilt(case: Case) -> None:
    """Odds beyond what a square can hold: the evidence, and items that are certain or absent."""
    for item, log_odds in ((0, 700.0), (case.n - 1, -700.0)):
        g = np.zeros(case.n)
        g[item] = log_odds
        with np.errstate(divide="ignore"):
            log_table = np.log(case.table)
        expected = np.logaddexp.reduce(log_table + case.holds @ g, axis=1)
        evidence, tilted = case.components.tilt(g)
        np.testing.assert_allclose(evidence, expected, rtol=1e-12, atol=1e-9)
        table = np.exp(log_table + case.holds @ g - expected[:, None])
        np.testing.assert_allclose(tilted.marginals(), table @ case.holds, rtol=case.rtol, atol=1e-12)


def check_restrict(case: Case) -> None:
    order = np.random.default_rng(1).permutation(case.n).astype(np.int64)
    for items in (order, order[: case.n // 2 + 1], order[: case.n - 1], order[:1]):
        if not len(items):
            continue
        expected = np.array([reference.restrict(row, items) for row in case.table])
        case.compare(probabilities(case.components.restrict(items)), expected)


def check_extend(case: Case) -> None:
    p = np.array([0.3, 0.01])
    log_none, extended = case.components.extend(p)
    assert extended.n_items == case.n + 2
    np.testing.assert_allclose(log_none, np.log1p(-p).sum(), rtol=1e-12)
    new = np.where(membership(2), p, 1 - p).prod(axis=1)
    case.compare(probabilities(extended), np.einsum("cs,t->cts", case.table, new).reshape(len(case.table), -1))


def check_copy(case: Case) -> None:
    """Without the copy nothing changes, and item and copy are exchangeable. Components without P(∅) may refuse."""
    for item in range(case.n):
        try:
            log_none, copied = case.components.with_copy(item)
        except InputError:
            assert not np.all(case.table[:, 0] > 0)
            continue
        new = probabilities(copied)
        assert copied.n_items == case.n + 1
        without = new[:, : 2**case.n]
        case.compare(without / without.sum(axis=1, keepdims=True), case.table)
        both = membership(case.n + 1)
        both[:, [item, case.n]] = both[:, [case.n, item]]
        case.compare(new[:, both @ (1 << np.arange(case.n + 1))], new)
        case.compare(np.exp(log_none), new[:, 0] / (new[:, 0] + new[:, 2**case.n]))


def check_sizes(case: Case) -> None:
    sizes = case.holds.sum(axis=1)
    expected = np.array([np.bincount(sizes, row) for row in case.table])
    case.compare(np.exp(case.components.log_sizes()), expected)
    present = np.flatnonzero((expected > 0).any(axis=0))
    assert case.components.size_range == range(present[0], present[-1] + 1)
    for k in range(1, case.n):
        case.compare(np.exp(case.components.log_rare_size(k)), expected[:, k])


def p_value(drawn: list[Ints], P: Floats) -> float:
    """Chi-square of the counts of sets, those expected less than MIN_EXPECTED times taken together."""
    rows = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
    places = np.bincount(rows, 2.0 ** np.concatenate(drawn), len(drawn))
    counts = np.bincount(places.astype(np.int64), minlength=len(P))
    assert not counts[P == 0].any()
    common = P * len(drawn) >= MIN_EXPECTED
    observed, expected = counts[common], P[common] * len(drawn)
    rest = len(drawn) - expected.sum()
    if rest >= MIN_EXPECTED:
        observed, expected = np.append(observed, counts[~common].sum()), np.append(expected, rest)
    expected *= observed.sum() / expected.sum()
    return float(chisquare(observed, expected).pvalue) if len(observed) > 1 else 1.0


def check_samples(case: Case) -> None:
    """Draws of every component are as frequent as they are likely; a perturbed table is rejected."""
    sizes = case.holds.sum(axis=1)
    size = int(case.components.size_range[len(case.components.size_range) // 2])
    for c, row in enumerate(case.table):
        for k, nonempty in ((None, False), (None, True), (size, False)):
            P = np.where(sizes == k, row, 0) if k is not None else np.where(sizes > 0, row, 0) if nonempty else row
            if not P.sum() > 0:
                continue
            P = P / P.sum()
            which = np.full(N_DRAWS, c)
            drawn = case.components.sample(which, np.random.default_rng(c), k=k, nonempty=nonempty)
            assert all(each.dtype == np.int64 and each.tolist() == sorted({*each.tolist()}) for each in drawn)
            assert p_value(drawn, P) > LEVEL
            perturbed = P * np.exp(np.random.default_rng(1).standard_normal(len(P)))
            if np.sort(P)[-2] > 0.05:  # otherwise a table of almost one set, which hardly changes
                assert p_value(drawn, perturbed / perturbed.sum()) < LEVEL


def check_stored(case: Case) -> None:
    """Arrays and pickles give back the same components; parts of them are those asked for."""
    components, m = case.components, len(case.table)
    case.compare(probabilities(type(components).from_arrays(components.arrays())), case.table)
    case.compare(probabilities(pickle.loads(pickle.dumps(components))), case.table)
    kept = np.arange(m)[::-1] if m > 1 else np.zeros(1, np.int64)
    case.compare(probabilities(components.take(kept)), case.table[kept])
    if m > 1:
        case.compare(probabilities(components.take(kept[:1])), case.table[kept[:1]])


CHECKS: list[Callable[[Case], None]] = [each for name, each in [*globals().items()] if name.startswith("check_")]
