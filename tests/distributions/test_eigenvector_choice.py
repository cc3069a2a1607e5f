"""How many and which eigenvectors a symmetric DPP chooses, in exact arithmetic; and draws from thousands of items."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import fft

from dpplearn.arrays import Floats, Ints
from dpplearn.distributions import sampling as choice
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.sampling import inclusion_table, log_size_table
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle

MIXED = [0.0, 0.25, 0.5, 1.0, 0.125, 0.75, 0.0, 1.0]
UNEVEN = [1 - 1e-12, 1e-12, 0.5, 1e-3, 0.999, 1e-7, 0.3, 1 - 1e-7]


def draws(dpp: SpectralDPP, n: int, k: int | None = None, rng: int = 0) -> list[Ints]:
    return dpp.sample(np.zeros(n, np.int64), rng, k=k)


def log_of(value: Fraction) -> float:
    """The logarithm of a fraction that may be far below the smallest float."""
    return math.log(value.numerator) - math.log(value.denominator) if value else -math.inf


@pytest.mark.parametrize("lam", [MIXED, UNEVEN, np.random.default_rng(0).random(60).tolist()], ids=len)
def test_the_table_of_sizes_is_exact(lam: list[float]) -> None:
    rows = [[Fraction(1)] + [Fraction(0)] * len(lam)]
    for p in map(Fraction, lam):
        before = rows[-1]
        rows.append([before[k] * (1 - p) + (before[k - 1] * p if k else 0) for k in range(len(before))])
    expected = [[log_of(p) for p in row] for row in rows]
    np.testing.assert_allclose(log_size_table(np.array(lam), len(lam)), expected, rtol=1e-13, atol=1e-12)
    sizes = SpectralDPP(np.array(lam), np.eye(len(lam))).log_sizes()[0]
    np.testing.assert_allclose(sizes, expected[-1], rtol=1e-13, atol=1e-12)


def chosen_with(table: Floats) -> Floats:
    """The probability of every eigenvector to be chosen, from the last to the first, by an `inclusion_table`."""
    found, needed = np.zeros(len(table)), np.eye(table.shape[1])[-1]  # how many more are needed
    for n in reversed(range(len(table))):
        taken = needed * table[n]
        found[n] = taken.sum()
        needed -= taken
        needed[:-1] += taken[1:]
    return found


@pytest.mark.parametrize("lam", [MIXED, UNEVEN, [0.5] * 8], ids=["mixed", "uneven", "equal"])
def test_eigenvectors_are_chosen_with_the_enumerated_probability_given_the_size(lam: list[float]) -> None:
    exactly = [
        math.prod(Fraction(p) if j in J else 1 - Fraction(p) for j, p in enumerate(lam)) for J in oracle.subsets(8)
    ]
    flips = np.array([float(p) for p in exactly])
    for k in SpectralDPP(np.array(lam), np.eye(8)).size_range:
        expected = oracle.item_marginals(oracle.k_dpp(flips, k))
        found = chosen_with(inclusion_table(np.array(lam), k))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


def test_no_uniform_number_leaves_a_draw_short_of_eigenvectors() -> None:
    lam = np.random.default_rng(0).permutation(np.concatenate([np.geomspace(1e-15, 0.5, 50), np.zeros(10)]))
    for k in range(1, 51):
        chosen = np.full((1, k), -1)
        loops("sampling").choose_k(inclusion_table(lam, k), np.full((1, 60), np.nextafter(1, 0)), chosen)
        assert chosen[0, 0] >= 0
        assert np.all(np.diff(chosen[0]) > 0)
        assert np.all(lam[chosen[0]] > 0)


def test_draws_from_2000_items_have_the_expected_size_and_eigenvectors() -> None:
    lam, V = np.random.default_rng(0).permutation(np.geomspace(1e-12, 0.95, 2000)), fft.dct(np.eye(2000), norm="ortho")
    table = inclusion_table(lam, 200)
    assert np.all((table >= 0) & (table <= 1 + 1e-9))
    chosen, offsets = choice.choose_k(table, 500, np.random.default_rng(0))
    np.testing.assert_array_equal(np.diff(offsets), 200)
    groups = np.digitize(lam, [1e-6, 1e-3, 1e-2, 0.05, 0.1, 0.3, 0.6])
    observed = np.bincount(groups[chosen], minlength=8)
    expected = np.bincount(groups, 500 * chosen_with(table))
    assert np.all(np.abs(observed - expected) < 5 * np.sqrt(expected) + 1)
    for Y in draws(SpectralDPP(lam, V), 5, 200):
        assert len(Y) == 200
        assert np.all(np.diff(Y) > 0)
    lam = lam / 3
    sizes = np.array([len(Y) for Y in draws(SpectralDPP(lam, V), 50)])
    assert abs(sizes.mean() - lam.sum()) < 5 * np.sqrt((lam * (1 - lam)).sum() / 50)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on POSIX only")
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
