"""Draws without anything N × N by counts; samplers that forget a part of the law are the controls."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from dpplearn.kernels.factored import drawing, sampling
from dpplearn.kernels.factored.drawing import Segment
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from scipy.stats import chi2

from dpplearn import Baskets
from dpplearn.arrays import NO_ITEMS, Ints
from helpers.catalogues import catalogue

N, DRAWS = 5, 5000
SUBSETS = list(chain.from_iterable(combinations(range(N), size) for size in range(N + 1)))
ALL = Baskets.from_lists(SUBSETS, n_items=N)
BOUND = chi2.isf(1e-6, len(SUBSETS))


@pytest.fixture
def no_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SMALL", 0)


def strong(seed: int = 0, *, each: bool = False) -> FactoredKernel:
    """Five items of which every set is likely enough to be counted."""
    kernel = catalogue(N, segments=2, repelling=1, attracting=1, each=each, seed=seed)
    log_odds = np.random.default_rng(seed).uniform(-1.5, -0.5, (2, N))
    factors = 1.5 * np.random.default_rng(seed).standard_normal((N, 3)) * [0.5, 1, 1]
    factors[4] = 0
    return FactoredKernel(kernel.weights, log_odds, factors, kernel.coupling)


def distance(drawn: list[Ints], kernel: FactoredKernel, k: int | None = None) -> float:
    """χ² of the counts of sets."""
    P = np.exp(MixtureLaw(kernel.dense()).log_prob(ALL))
    if k is not None:
        P = np.where(ALL.sizes == k, P, 0) / P[ALL.sizes == k].sum()
    counts = np.zeros(len(SUBSETS))
    for each in drawn:
        counts[SUBSETS.index(tuple(each.tolist()))] += 1
    possible = P > 0
    assert not counts[~possible].any()
    return float(((counts - len(drawn) * P)[possible] ** 2 / (len(drawn) * P[possible])).sum())


@pytest.mark.usefixtures("no_small_ones")
@pytest.mark.parametrize(("few", "blocks"), [(64, 64), (1, 1), (2, 2)])
@pytest.mark.parametrize("each", [False, True])
def test_draws_are_as_frequent_as_they_are_likely(
    few: int, blocks: int, each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "FEW", few)
    monkeypatch.setattr(drawing, "BLOCKS", blocks)
    kernel = strong(each=each)
    law = FactoredLaw(kernel)
    assert distance(law.sample(DRAWS, None, 1), kernel) < BOUND
    assert len(law._drawn_from[0].starts) <= blocks + 1


@pytest.mark.usefixtures("no_small_ones")
@pytest.mark.parametrize("k", [1, 2, 4])
def test_draws_of_a_size_are_as_frequent_as_they_are_likely(k: int) -> None:
    kernel = strong()
    assert distance(FactoredLaw(kernel).sample(DRAWS, k, 1), kernel, k) < BOUND


@pytest.mark.usefixtures("no_small_ones")
@pytest.mark.parametrize("k", [None, 2])
def test_a_sampler_that_forgets_the_skew_part_is_told(k: int | None) -> None:
    kernel = strong()
    even = (kernel.coupling + kernel.coupling.transpose(0, 2, 1)) / 2
    forgetful = FactoredKernel(kernel.weights, kernel.log_odds, kernel.factors, even)
    assert distance(FactoredLaw(forgetful).sample(DRAWS, k, 1), kernel, k) > 2 * BOUND


@pytest.mark.usefixtures("no_small_ones")
@pytest.mark.parametrize("part", ["_independent", "_interacting"])
def test_a_sampler_that_forgets_one_of_the_two_parts_of_a_set_is_told(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Segment, part, lambda self, rng: NO_ITEMS)
    kernel = strong()
    assert distance(FactoredLaw(kernel).sample(DRAWS, None, 1), kernel) > 2 * BOUND


@pytest.mark.slow
@pytest.mark.parametrize("k", [None, 6])
def test_draws_from_many_items_have_the_marginals_of_the_law_whatever_the_threads(
    k: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of more items than are decided one by one."""
    monkeypatch.setattr(drawing, "BLOCKS", 4)
    monkeypatch.setattr(drawing, "FEW", 16)
    law, n = FactoredLaw(catalogue(500)), 2000 if k is None else 400
    drawn = law.sample(n, k, 0, 2)
    assert [each.tolist() for each in law.sample(70, k, 0, 2)] == [each.tolist() for each in law.sample(70, k, 0, 1)]
    assert all(np.all(np.diff(each) > 0) for each in drawn)
    assert k is None or {len(each) for each in drawn} == {k}
    p = law.marginals(k)
    often = n * p > 20
    counts = np.bincount(np.concatenate(drawn), minlength=500)
    z = (counts - n * p) / np.sqrt(n * p * (1 - p))
    assert np.abs(z[often]).max() < 5
    total, rare = counts[~often].sum(), n * p[~often].sum()
    assert abs(total - rare) < 8 * np.sqrt(rare)
    if k is None:
        sizes = np.array([len(each) for each in drawn])
        assert abs(sizes.mean() - law.expected_size) < 5 * sizes.std() / np.sqrt(n)


@pytest.mark.usefixtures("no_small_ones")
def test_no_interaction_all_items_none_and_two_items() -> None:
    law = FactoredLaw(FactoredKernel.of_items([0.3, -0.4]))
    assert {tuple(each.tolist()) for each in law.sample(200, None, 0)} == {(), (0,), (1,), (0, 1)}
    assert [each.tolist() for each in law.sample(2, 2, 0)] == [[0, 1]] * 2
    assert [each.tolist() for each in law.sample(2, 0, 0)] == [[]] * 2
    assert {tuple(each.tolist()) for each in law.sample(50, 1, 0)} == {(0,), (1,)}
    flat = FactoredLaw(FactoredKernel(np.ones(1), np.zeros((1, 3)), np.zeros((3, 3)), np.eye(3)[None]))
    assert np.concatenate(flat.sample(300, None, 0)).size == pytest.approx(450, abs=5 * np.sqrt(300 * 0.75))
