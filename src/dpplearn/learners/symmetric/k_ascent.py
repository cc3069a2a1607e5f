"""The paper's baseline K-Ascent: projected gradient on K. [GKFT14, Algorithm 1]"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.determinants import eigh_apart
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import log_likelihood, statistics
from dpplearn.learners.loop import Step
from dpplearn.learners.symmetric.problem import SymmetricProblem, gradient_in_K, line_search


def k_ascent(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Step along the gradient in K, clip the eigenvalues to [0, 1], halve the step until the likelihood rises."""
    step_size, tried = 0.0, 0
    while True:
        stats = statistics(kernel, problem.baskets, problem.threads)
        before = log_likelihood(kernel, stats)
        yield Step(kernel, before, step_size, 1 + tried / 2)
        G = gradient_in_K(kernel, stats)
        found, step_size, tried = line_search(problem, partial(projected, kernel, G), before)
        if found is None:
            return
        kernel = found


def projected(kernel: SpectralDPP, G: Floats, step_size: float) -> SpectralDPP:
    """Return K + step_size G, G in the eigenbasis of K, with eigenvalues clipped to [0, 1]."""
    lam, Q = eigh_apart(np.diag(kernel.eigenvalues) + step_size * G)
    return SpectralDPP(np.clip(lam, 0, 1), kernel.eigenvectors @ Q)
