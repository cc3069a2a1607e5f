"""Natural-gradient EM: its angles are score over information, its rotation rotates, and a step that falls is halved."""

from __future__ import annotations

import numpy as np

from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import statistics
from dpplearn.learners.symmetric.em import LARGEST_ANGLE, e_step, natural_angles
from helpers.problems import PROBLEMS, random_kernel


def test_angles_are_score_over_information_and_bounded() -> None:
    """Θ_ba = s_ab / I_ab, and 0 where there is no information."""
    baskets = PROBLEMS["sampled from a DPP"].subset(PROBLEMS["sampled from a DPP"].sizes <= 4)
    for lam in (np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), np.array([0, 0, 0.4, 0.5, 0.6, 0.9])):
        kernel = SpectralDPP(lam, random_kernel(np.random.default_rng(7)).eigenvectors)
        stats, odds, V = statistics(kernel, baskets), kernel.odds, kernel.eigenvectors
        score = 2 * (V.T @ (stats.delta / stats.weight) @ V) * (odds[:, None] - odds)
        information = 4 * (np.outer(lam, 1 - lam) + np.outer(1 - lam, lam))
        expected = np.divide(score, information, out=np.zeros_like(score), where=information > 0).T
        angles = natural_angles(lam, e_step(kernel, stats))
        np.testing.assert_allclose(angles, expected * min(1, LARGEST_ANGLE / np.abs(expected).max()), atol=1e-12)
        np.testing.assert_array_equal(angles, -angles.T)
        assert np.abs(angles).max() > 0.01
