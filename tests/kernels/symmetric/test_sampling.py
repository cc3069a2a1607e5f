"""Exact samplers by counts over all subsets, each with a wrong sampler of the same marginals that the test rejects."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise, product

import numpy as np
import pytest
from dpplearn.kernels.symmetric.sampling import SAMPLERS, inclusion_table, sample_sets
from dpplearn.kernels.symmetric.sizes import inclusion_given_size
from scipy import fft, stats

from dpplearn import DPP, InputError
from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.compiled.eigenvector_sampling import choose_k
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import SPECTRA, exact

N_DRAWS = 20_000
REJECT = 1e-4
some_spectra = pytest.mark.parametrize(
    "spectrum", ["inside", "two at 0", "one at 1, two at 0", "two at 1", "one at 1 - 1e-12", "all kinds"]
)


def counts_of(sets: list[Ints], n_items: int) -> Ints:
    """How often each subset was drawn, in the order of `oracle.subsets`."""
    draws = np.repeat(np.arange(len(sets)), [len(Y) for Y in sets])
    places = np.bincount(draws, 2.0 ** np.concatenate(sets), len(sets))
    return np.bincount(places.astype(np.int64), minlength=2**n_items)


def p_value(counts: Ints, P: Floats) -> float:
    """Of the chi-square test; subsets expected less than five times count as one, and impossible ones not at all."""
    if counts[P == 0].any():
        return 0.0
    expected = counts.sum() * P
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    return float(stats.chisquare(observed[kept], expected[kept] * observed.sum() / expected[kept].sum()).pvalue)


def item_p_value(sets: list[Ints], marginals: Floats) -> float:
    """Whether every item was drawn as often as its marginal says: the smallest of the binomial tests, corrected."""
    counts = np.bincount(np.concatenate(sets), minlength=len(marginals))
    tests = [stats.binomtest(int(c), len(sets), min(p, 1)).pvalue for c, p in zip(counts, marginals, strict=True)]
    return min(tests) * len(tests)


def independent_sets(marginals: Floats, rng: np.random.Generator) -> list[Ints]:
    return [np.flatnonzero(row) for row in rng.random((N_DRAWS, len(marginals))) < marginals]


def systematic_sets(marginals: Floats, rng: np.random.Generator) -> list[Ints]:
    """Sets of one size with given inclusion probabilities, but pairs of their own. [Madow 1949]"""
    bounds = np.concatenate([[0], np.cumsum(marginals)])
    bounds[-1] = round(bounds[-1])
    steps = np.arange(round(bounds[-1]))
    return list(np.searchsorted(bounds, rng.random((N_DRAWS, 1)) + steps, side="right") - 1)


@some_spectra
def test_draws_have_the_enumerated_law_and_independent_items_of_the_same_marginals_do_not(spectrum: str) -> None:
    truth = exact(spectrum)
    drawn = sample_sets(truth.kernel, N_DRAWS, rng=1)
    assert p_value(counts_of(drawn, 6), truth.P) > REJECT
    marginals = truth.kernel.K.diagonal()
    wrong = independent_sets(marginals, np.random.default_rng(2))
    assert item_p_value(drawn, marginals) > REJECT
    assert item_p_value(wrong, marginals) > REJECT
    assert p_value(counts_of(wrong, 6), truth.P) < REJECT


@some_spectra
def test_draws_of_a_size_have_the_enumerated_law_and_systematic_samples_of_the_same_marginals_do_not(
    spectrum: str,
) -> None:
    truth = exact(spectrum)
    for k in (2, 3, 4):
        if k not in truth.kernel.possible_sizes or len(truth.kernel.possible_sizes) == 1:
            continue
        P = oracle.k_dpp(truth.P, k)
        drawn = sample_sets(truth.kernel, N_DRAWS, k, rng=k)
        assert {len(Y) for Y in drawn} == {k}
        assert p_value(counts_of(drawn, 6), P) > REJECT
        marginals = oracle.item_marginals(P)
        wrong = systematic_sets(marginals, np.random.default_rng(k))
        assert item_p_value(wrong, marginals) > REJECT
        assert p_value(counts_of(wrong, 6), P) < REJECT


def test_the_elementary_process_of_eigenvalues_at_one_is_drawn_exactly() -> None:
    truth = exact("three at 1, three at 0")
    for k in (None, 3):
        assert p_value(counts_of(sample_sets(truth.kernel, N_DRAWS, k, rng=5), 6), truth.P) > REJECT


def test_a_draw_does_not_depend_on_the_one_before() -> None:
    """Sizes of successive draws, in blocks and across their borders."""
    sizes = np.array([len(Y) for Y in sample_sets(exact("inside").kernel, N_DRAWS, rng=3)])
    pairs = np.array(list(pairwise(sizes)))
    for of_interest in (np.arange(len(pairs)) % 32 != 31, np.arange(len(pairs)) % 32 == 31):
        correlation = stats.pearsonr(*pairs[of_interest].T)
        assert correlation.pvalue > REJECT


def near_duplicates() -> SpectralDPP:
    """Five items, the first two alike up to 1e-5."""
    X = np.random.default_rng(0).standard_normal((5, 5))
    X[1] = X[0] + 1e-5 * X[1]
    return SpectralDPP.from_L(4 * X @ X.T)


@pytest.mark.parametrize("k", [None, 1, 2, 3, 4])
def test_two_near_duplicates_are_never_drawn_together(k: int | None) -> None:
    drawn = sample_sets(near_duplicates(), 5000, k, rng=0)
    held = np.array([[0 in Y, 1 in Y] for Y in drawn])
    assert not held.all(axis=1).any()
    assert held.any(axis=1).mean() > 0.05
    assert abs(held[:, 0].sum() - held[:, 1].sum()) < 5 * np.sqrt(held.sum())


def test_an_item_beside_its_exact_double_is_never_drawn() -> None:
    X = np.random.default_rng(0).standard_normal((100, 100))
    X[50:] = X[:50]
    for Y in sample_sets(SpectralDPP.from_L(X @ X.T), 300, rng=0):
        assert len(np.unique(Y % 50)) == len(Y)


def test_items_that_are_certain_are_in_every_draw_and_impossible_ones_in_none() -> None:
    K = np.zeros((5, 5))
    K[0, 0] = 1
    K[1:4, 1:4] = [[0.5, 0.2, 0.1], [0.2, 0.5, 0.2], [0.1, 0.2, 0.5]]
    for k in (None, 1, 2, 4):
        for Y in sample_sets(SpectralDPP.from_K(K), 2000, k, rng=0):
            assert 0 in Y
            assert 4 not in Y


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_eigenvalues_at_one_are_active_in_every_draw_and_at_zero_in_none(spectrum: str) -> None:
    kernel = exact(spectrum).kernel
    sizes = np.bincount([len(Y) for Y in sample_sets(kernel, 3000, rng=0)], minlength=7)
    assert not sizes[: kernel.possible_sizes[0]].any()
    assert not sizes[kernel.rank + 1 :].any()
    for k in kernel.possible_sizes:
        assert {len(Y) for Y in sample_sets(kernel, 40, k, rng=0)} == {k}


def large_kernel(lam: Floats) -> SpectralDPP:
    return SpectralDPP(lam, fft.dct(np.eye(len(lam)), norm="ortho"))


def test_2000_items_and_draws_of_200_are_stable() -> None:
    lam = np.random.default_rng(0).permutation(np.geomspace(1e-12, 0.95, 2000))
    kernel = large_kernel(lam)
    table = inclusion_table(lam, 200)
    assert np.all((table >= 0) & (table <= 1 + 1e-9))
    chosen, offsets = SAMPLERS["k-dpp"](kernel, 200)(500, np.random.default_rng(0))
    np.testing.assert_array_equal(np.diff(offsets), 200)
    expected = 500 * inclusion_given_size(kernel, 200)
    groups = np.digitize(lam, [1e-6, 1e-3, 1e-2, 0.05, 0.1, 0.3, 0.6])
    for group in range(8):
        observed = np.isin(chosen, np.flatnonzero(groups == group)).sum()
        assert abs(observed - expected[groups == group].sum()) < 5 * np.sqrt(expected[groups == group].sum()) + 1
    for Y in sample_sets(kernel, 20, 200, rng=0):
        assert len(Y) == 200
        assert np.all(np.diff(Y) > 0)
        assert 0 <= Y[0] < Y[-1] < 2000


def test_2000_items_drawn_freely_have_the_expected_size() -> None:
    lam = np.random.default_rng(0).permutation(np.geomspace(1e-3, 0.95, 2000)) / 3
    sizes = np.array([len(Y) for Y in sample_sets(large_kernel(lam), 100, rng=1)])
    deviation = np.sqrt((lam * (1 - lam)).sum())
    assert abs(sizes.mean() - lam.sum()) < 4 * deviation / 10
    assert 0.7 < sizes.std() / deviation < 1.3


def test_no_uniform_number_however_large_leaves_a_draw_short_of_eigenvectors() -> None:
    lam = np.random.default_rng(0).permutation(np.concatenate([np.geomspace(1e-15, 0.5, 50), np.zeros(10)]))
    largest_uniform = np.full((1, 60), np.nextafter(1, 0))
    for k in range(1, 51):
        chosen = np.full((1, k), -1)
        choose_k(inclusion_table(lam, k), largest_uniform, chosen)
        assert chosen[0, 0] >= 0
        assert np.all(np.diff(chosen[0]) > 0)
        assert np.all(lam[chosen[0]] > 0)


@pytest.mark.parametrize("k", [None, 3])
def test_the_same_seed_gives_the_same_draws_whatever_the_number_of_threads(k: int | None) -> None:
    dpp = exact("inside").dpp
    alone = dpp.sample(150, k, rng=7, threads=1)
    for threads in (1, 2, 5):
        assert dpp.sample(150, k, rng=7, threads=threads) == alone
    assert dpp.sample(150, k, rng=7) == alone
    assert dpp.sample(150, k, rng=np.random.default_rng(7)) == alone


@pytest.mark.parametrize("k", [None, 3])
def test_other_seeds_no_seed_and_a_generator_used_again_give_other_draws(k: int | None) -> None:
    dpp = exact("inside").dpp
    rng = np.random.default_rng(7)
    draws = [dpp.sample(50, k, rng=seed) for seed in (7, 8, None, None, rng, rng)]
    assert draws[0] == draws[4]
    assert len({str(each) for each in draws}) == 5


def test_blocks_of_draws_differ() -> None:
    drawn = exact("inside").dpp.sample(96, rng=0)
    assert drawn[:32] != drawn[32:64] != drawn[64:]


def test_no_draws_one_draw_and_draws_of_nothing() -> None:
    dpp = DPP(exact("inside").kernel, items=list("abcdef"))
    assert dpp.sample(0, rng=0) == dpp.sample(0, k=2, rng=0) == []
    assert dpp.sample(3, k=0, rng=0) == [[], [], []]
    assert dpp.sample(k=0, rng=0) == []
    one = dpp.sample(k=2, rng=0)
    assert len(one) == 2
    assert all(isinstance(item, str) for item in one)
    assert dpp.sample(1, k=2, rng=0) == [one]
    assert dpp.sample(33, k=6, rng=0) == [list("abcdef")] * 33


def test_what_cannot_be_drawn_is_refused() -> None:
    dpp = exact("two at 1").dpp
    with pytest.raises(InputError, match=r"\bn\b.*-1\b"):
        dpp.sample(-1)
    with pytest.raises(InputError, match=r"\b1\b.*\b2\b.*\b6\b"):
        dpp.sample(5, k=1)
    with pytest.raises(InputError, match=r"threads.*\b0\b"):
        dpp.sample(5, threads=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on POSIX alone")
def test_a_forked_process_draws_instead_of_waiting_for_threads_it_does_not_have() -> None:
    """The child ends itself by an alarm if it waits."""
    code = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import dpplearn as dl
dpp = dl.DPP.from_K([[0.5, 0.2], [0.2, 0.5]])
expected = dpp.sample(200, rng=0, threads=2)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if dpp.sample(200, rng=0, threads=2) == expected else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_chooses_eigenvectors_with_their_law(sampler: str) -> None:
    """Sets of eigenvectors by counts, against independent flips given how many may come up."""
    kernel = SpectralDPP(np.array([0.1, 0.4, 0.6, 0.9]), np.eye(4))
    k, sizes = {"dpp": (None, range(5)), "nonempty": (None, range(1, 5)), "k-dpp": (2, range(2, 3))}[sampler]
    flips = np.array(list(product([False, True], repeat=4)))
    law = np.where(flips, kernel.eigenvalues, 1 - kernel.eigenvalues).prod(axis=1)
    law[~np.isin(flips.sum(axis=1), sizes)] = 0
    law /= law.sum()
    n = 20_000
    chosen, offsets = SAMPLERS[sampler](kernel, k)(n, np.random.default_rng(0))
    drawn = np.zeros((n, 4), dtype=bool)
    drawn[np.repeat(np.arange(n), np.diff(offsets)), chosen] = True
    counts = np.bincount(drawn @ [8, 4, 2, 1], minlength=16)
    assert not counts[law == 0].any()
    assert stats.chisquare(counts[law > 0], n * law[law > 0]).pvalue > 1e-4
    uniform = np.full(np.count_nonzero(law), n / np.count_nonzero(law))
    assert stats.chisquare(counts[law > 0], uniform).pvalue < 1e-10  # the test can fail
