"""Natural-gradient EM: its angles are score over information, its rotation rotates, and a step that falls is halved."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import statistics
from dpplearn.learners.symmetric.em import LARGEST_ANGLE, e_step, natural_angles
from helpers.problems import PROBLEMS, random_kernel

BASKETS = PROBLEMS["sampled from a DPP"]


def with_eigenvalues(*lam: float) -> SpectralDPP:
    return SpectralDPP(np.array(lam), random_kernel(np.random.default_rng(7)).eigenvectors)


def score_over_information(kernel: SpectralDPP, baskets: Baskets) -> np.ndarray:
    """Θ_ba = s_ab / I_ab, one pair of eigenvectors at a time; zero where the information is."""
    lam, odds, V = kernel.eigenvalues, kernel.odds, kernel.eigenvectors
    stats = statistics(kernel, baskets)
    M = V.T @ (stats.delta / stats.weight) @ V
    angles = np.zeros_like(M)
    for a, b in itertools.permutations(range(len(lam)), 2):
        score = 2 * M[a, b] * (odds[a] - odds[b])
        information = 4 * (lam[a] * (1 - lam[b]) + lam[b] * (1 - lam[a]))
        angles[b, a] = score / information if information else 0
    return angles


@pytest.mark.parametrize(
    "kernel",
    [with_eigenvalues(0.2, 0.3, 0.4, 0.5, 0.6, 0.7), with_eigenvalues(0, 0, 0.4, 0.5, 0.6, 0.9)],
    ids=["inside", "two at 0"],
)
def test_angles_are_score_over_information(kernel: SpectralDPP) -> None:
    baskets = BASKETS.subset(BASKETS.sizes <= 4)
    expected = score_over_information(kernel, baskets)
    angles = natural_angles(kernel.eigenvalues, e_step(kernel, statistics(kernel, baskets)))
    np.testing.assert_allclose(angles, expected * min(1, LARGEST_ANGLE / np.abs(expected).max()), atol=1e-12)
    np.testing.assert_array_equal(angles, -angles.T)
    assert np.abs(angles).max() > 0.01
    empty = kernel.eigenvalues == 0
    np.testing.assert_array_equal(angles[np.ix_(empty, empty)], 0)
