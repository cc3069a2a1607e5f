"""Where a mixture starts."""

from __future__ import annotations

import numpy as np

from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.mixture.parameters import Parameters
from dpplearn.learners.mixture.problem import MixtureProblem

NOISE = 0.3  # standard deviation
SPREAD = 0.7  # of the segments' likings: from those who buy little to those who buy much


def random_start(problem: MixtureProblem, rng: np.random.Generator) -> MixtureKernel:
    """Independent items, and beside them small random numbers for what segments and pairs may come to be."""
    shape = problem.shape
    n, m, r = shape.n_items, shape.segments, shape.rank
    theta = NOISE * rng.standard_normal((m, n)) + np.linspace(-SPREAD, SPREAD, m)[:, None]
    U = NOISE * rng.standard_normal((n, r)) / np.sqrt(max(r, 1))
    A = NOISE * rng.standard_normal(n * (n - 1) // 2 if shape.attraction else 0) / np.sqrt(n)
    gamma = problem.independent_items().log_odds[0] / 2
    at = Parameters(gamma, theta if m > 1 else np.zeros((1, n)), U, A, np.zeros(m))
    return at.kernel(shape)
