"""Draws given Y ≠ ∅, by counts over all subsets, also where almost every unconditioned draw would be empty."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np
import pytest
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.kernel import FactoredKernel, coupling
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.interface import Law
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.kernels.weighted.law import WeightedLaw
from scipy.stats import chisquare

from dpplearn import Baskets, InputError
from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.spectral import SpectralDPP

N, DRAWS, LEVEL = 5, 4000, 1e-6
NONEMPTY = list(chain.from_iterable(combinations(range(N), size) for size in range(1, N + 1)))
RARE = -14.0  # added to all log-odds, this makes P(Y ≠ ∅) about 1e-6


def symmetric(log_odds: float) -> Law:
    B = np.random.default_rng(0).standard_normal((N, N)) / 2
    return SymmetricLaw(SpectralDPP.from_L(np.exp(log_odds) * B @ B.T))


def dense(log_odds: float) -> Law:
    rng = np.random.default_rng(1)
    U, A = rng.standard_normal((N, 2)) / 2, rng.standard_normal((N, N)) / 2
    interaction = np.eye(N) + U @ U.T + A - A.T
    return MixtureLaw(MixtureKernel(np.array([0.3, 0.7]), rng.normal(-1, 1, (2, N)) + log_odds, interaction[None]))


def low_rank(log_odds: float, n_items: int = N) -> Law:
    """Items after the first five have odds of e⁻⁶⁰ and are never drawn; they select the sampler for many items."""
    rng = np.random.default_rng(2)
    Z = np.zeros((n_items, 3))
    Z[: N - 1] = 1.5 * rng.standard_normal((N - 1, 3))
    x = np.full((2, n_items), -60.0)
    x[:, :N] = rng.normal(-1, 0.5, (2, N)) + log_odds
    return FactoredLaw(FactoredKernel(np.array([0.4, 0.6]), x, Z, coupling(1, 1)[None]))


def stacked(log_odds: float) -> Law:
    laws = (symmetric(log_odds), dense(log_odds + 1), low_rank(log_odds))
    return WeightedLaw(WeightedKernel(np.array([0.2, 0.3, 0.5]), laws))


LAWS: dict[str, Callable[[float], Law]] = {
    "symmetric": symmetric,
    "dense": dense,
    "low-rank": low_rank,
    "low-rank, many items": lambda log_odds: low_rank(log_odds, 200),
    "stack": stacked,
}


def given_nonempty(law: Law) -> Floats:
    """P(Y | Y ≠ ∅) of the subsets of the first five items, by normalising over them."""
    P = np.exp(law.log_prob(Baskets.from_lists(NONEMPTY, n_items=law.n_items)))
    return np.asarray(P / P.sum())


def p_value(drawn: list[Ints], P: Floats) -> float:
    """Chi-square of the counts of sets, those that are expected fewer than five times taken together."""
    counts = np.bincount([NONEMPTY.index(tuple(each.tolist())) for each in drawn], minlength=len(P))
    rare = P * len(drawn) < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(P[~rare], P[rare].sum()) * len(drawn)
    if expected[-1] < 5:  # too few even together
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    return float(chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("log_odds", [0.0, RARE])
@pytest.mark.parametrize("kind", LAWS)
def test_draws_given_nonempty_are_as_frequent_as_they_are_likely(kind: str, log_odds: float) -> None:
    law = LAWS[kind](log_odds)
    P = given_nonempty(law)
    drawn = law.sample(DRAWS, None, 1, nonempty=True)
    assert p_value(drawn, P) > LEVEL
    assert p_value(WithEmptyShare(law).sample(DRAWS, None, 2, 1), P) > LEVEL
    again = law.sample(100, None, 1, 2, nonempty=True)
    assert [each.tolist() for each in again] == [each.tolist() for each in law.sample(100, None, 1, 1, nonempty=True)]


@pytest.mark.parametrize("kind", LAWS)
def test_empty_draws_replaced_by_a_random_item_are_rejected(kind: str) -> None:
    law, rng = LAWS[kind](-1.0), np.random.default_rng(0)
    sets = [each if len(each) else rng.integers(N, size=1) for each in law.sample(DRAWS, None, 1)]
    assert p_value(sets, given_nonempty(law)) < LEVEL


@pytest.mark.parametrize("kind", LAWS)
def test_the_empty_set_is_as_frequent_as_its_share(kind: str) -> None:
    drawn = WithEmptyShare(LAWS[kind](RARE), 0.25).sample(DRAWS, None, 3)
    n_empty = sum(not len(each) for each in drawn)
    assert abs(n_empty - DRAWS / 4) < 5 * np.sqrt(DRAWS * 0.25 * 0.75)
    assert all(len(each) for each in WithEmptyShare(LAWS[kind](RARE), 0.25).sample(50, None, 3, nonempty=True))


def test_an_eigenvalue_of_one_leaves_no_empty_set_to_condition_on() -> None:
    kernel = SpectralDPP(
        np.array([0.2, 0.0, 0.5, 0.3, 1.0]), np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0]
    )
    law = SymmetricLaw(kernel)
    assert p_value(law.sample(DRAWS, None, 0, nonempty=True), given_nonempty(law)) > LEVEL


def test_a_model_of_empty_sets_alone_has_no_nonempty_draw() -> None:
    law = SymmetricLaw(SpectralDPP.from_K(np.zeros((2, 2))))
    with pytest.raises(InputError):
        law.sample(3, None, 0, nonempty=True)
    assert [each.tolist() for each in WithEmptyShare(law, 1.0).sample(3, None, 0)] == [[], [], []]
