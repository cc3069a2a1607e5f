"""The weights of laws that are given: a concave problem with one optimum, which is known when it is reached. [KT11b]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.kernels.families import AnyKernel
from dpplearn.learners.loop import Step

RIDGE = 1e-12  # of second derivatives, relative to the largest: laws may be alike
HALVINGS = 30


@dataclass(frozen=True, eq=False)
class WeightsProblem:
    """ℓ(w) = Σ_i s_i log Σ_c w_c P_c(Y_i), s_i the share of basket i.

    Examples
    --------
    >>> problem = WeightsProblem.of(np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([3.0, 1.0]))
    >>> *_, last = weights_steps(problem, lambda w: w, tol=1e-10)
    >>> last.kernel.round(4).tolist()  # three of four baskets are 9 times as likely under the first
    [0.8125, 0.1875]
    """

    likelihoods: Floats  # (n_baskets, n_laws), over the largest of each row
    log_largest: Floats  # (n_baskets,)
    shares: Floats  # (n_baskets,)

    @classmethod
    def of(cls, log_probabilities: Floats, weights: Floats) -> WeightsProblem:
        """From log P_c(Y_i), (n_baskets, n_laws), finite in one law at least."""
        largest = log_probabilities.max(axis=1)
        return cls(np.exp(log_probabilities - largest[:, None]), largest, weights / weights.sum())

    def log_likelihood(self, w: Floats) -> float:
        return float(self.shares @ (np.log(self.likelihoods @ w) + self.log_largest))

    def gradient(self, w: Floats) -> Floats:
        """∂ℓ/∂w_c, 1 at the optimum where w_c > 0, and no more than 1 elsewhere."""
        return np.asarray(self.likelihoods.T @ (self.shares / (self.likelihoods @ w)))

    def excess(self, w: Floats) -> float:
        """max_c ∂ℓ/∂w_c − 1: as ℓ is concave, no weights gain more than this, in nats per basket."""
        return max(float(self.gradient(w).max()) - 1, 0.0)

    def newton(self, w: Floats) -> Floats:
        """Where the quadratic model of ℓ(w) − Σ w is highest over w ≥ 0, scaled to add up to 1.

        With r_i = Σ_c w'_c P_ic/P_i it is −½ Σ s_i (r_i − 2)² − Σ w' and a constant: least squares without negatives.
        """
        from scipy.optimize import nnls

        ratio = self.likelihoods / (self.likelihoods @ w)[:, None]
        H = ratio.T @ (self.shares[:, None] * ratio)
        R = np.linalg.cholesky(H + RIDGE * H.diagonal().max() * np.eye(len(w))).T
        found, _ = nnls(R, np.linalg.solve(R.T, 2 * self.gradient(w) - 1))
        return np.asarray(found / found.sum()) if found.sum() > 0 else w


def weights_steps(problem: WeightsProblem, kernel_at: Callable[[Floats], AnyKernel], tol: float) -> Iterator[Step]:
    """From equal weights, a step of EM and one of Newton's from there, until no more than `tol` is to be gained."""
    w = np.full(problem.likelihoods.shape[1], 1 / problem.likelihoods.shape[1])
    value, step_size, evaluations = problem.log_likelihood(w), 0.0, 1.0
    while True:
        yield Step(partial(kernel_at, w), value, step_size, evaluations, {"weights": w})
        if problem.excess(w) <= tol:
            return
        em = w * problem.gradient(w)
        w, step_size = _towards(problem, em / em.sum())
        value, evaluations = problem.log_likelihood(w), 2.0


def _towards(problem: WeightsProblem, w: Floats) -> tuple[Floats, float]:
    """Along Newton's step as far as ℓ rises; near the top, where rounding hides that, as far as the excess falls."""
    try:
        direction = problem.newton(w) - w
    except (RuntimeError, np.linalg.LinAlgError):
        return w, 0.0
    value, excess = problem.log_likelihood(w), problem.excess(w)
    rounding = 16 * EPSILON * max(1.0, abs(value))
    for halving in range(HALVINGS):
        there = np.maximum(w + 0.5**halving * direction, 0)
        with np.errstate(divide="ignore"):
            gain = problem.log_likelihood(there) - value
        if gain > rounding or (gain > -rounding and problem.excess(there) < excess):
            return there / there.sum(), 0.5**halving
    return w, 0.0
