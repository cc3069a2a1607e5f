"""Adam on the factor B of L = B Bᵀ, with all the data in every step. [KB15]"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.problem import FactorLikelihood, SymmetricProblem, factor

RATE = 0.05
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999
TINY = 1e-8


def adam(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield the best point so far after every step, because steps of a fixed rate do not always ascend."""
    likelihood = FactorLikelihood(problem)
    B = best = factor(prepared(kernel, problem.baskets))
    mean, square, step, highest = np.zeros_like(B), np.zeros_like(B), 0, -np.inf
    while True:
        value, gradient = likelihood(B)
        if value > highest:
            highest, best = value, B
        yield Step(partial(SpectralDPP.from_factor, best), highest, RATE if step else 0.0, 1)
        step += 1
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
        unbiased = np.sqrt(square / (1 - SQUARE_DECAY**step)) + TINY
        B = B + RATE * mean / (1 - MEAN_DECAY**step) / unbiased
