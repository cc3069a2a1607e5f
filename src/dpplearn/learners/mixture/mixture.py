"""The learner of mixtures."""

from __future__ import annotations

from collections.abc import Iterator

from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture.climbing import climb
from dpplearn.learners.mixture.parameters import Parameters
from dpplearn.learners.mixture.problem import MixtureProblem


def mixture(kernel: MixtureKernel, problem: MixtureProblem) -> Iterator[Step]:
    """From the kernel, on numbers scaled by the frequencies that its segments give the items."""
    at = Parameters.from_kernel(kernel, problem.shape, problem.penalty)
    scale = problem.scale_at(at)
    return climb(problem.objective, at.flat(problem.shape) * scale, scale)
