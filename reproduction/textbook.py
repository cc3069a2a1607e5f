"""Algorithms 1 and 2 of [GKFT14] as printed, one example at a time and at the cost that the paper states.

These functions are a reference: the tests compare the learners of dpplearn with them step by step, and the experiments
time them. `k_ascent` (Algorithm 1) inverts an N×N matrix per example, O(n N³) per iteration. `em` (Algorithm 2)
decomposes a |Y|×|Y| matrix per example, O(n N k²) per iteration. n is the number of examples, N the number of items,
and k the size of the largest example.

Notation: K = V diag(λ) Vᵀ is the marginal kernel, r² = λ / (1 − λ) the eigenvalues of L, R = diag(r), L = V R² Vᵀ.
V_Y are the rows of V at the items of Y. I_Ȳ is the identity with zeros on its diagonal at the items of Y. B_i are the
columns of the identity at the items of Y_i.

Differences from the printed text:

- Objective and gradients are weighted means over the examples, not sums. The authors' program does the same, and the
  initial step size of 1 depends on it.
- The sum in the E-step marginal runs over the |Y| eigenvectors with nonzero eigenvalue, not over N.
- The stopping rule uses the log-likelihood, because the bound F cannot be computed.
- The line search stops at a smallest step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm

FloatArray = NDArray[np.float64]
IndexSet = NDArray[np.integer[Any]]
Sets = Sequence[IndexSet]
Point = TypeVar("Point")

CAP = 0.999  # upper limit of EM's eigenvalues: at λ = 1 the odds λ / (1 − λ) are infinite
SMALLEST_STEP = 1e-8  # the line search gives up below this step


@dataclass(frozen=True)
class Trace:
    """A run of one algorithm: the objective after every iteration, the step sizes, and the final kernel.

    `objective[0]` belongs to the initial kernel and `step[0]` is 0. `step[t]` is 0 if no step increased the objective.
    """

    objective: FloatArray  # (iterations + 1,), mean log-likelihood
    step: FloatArray  # (iterations + 1,)
    eigenvalues: FloatArray  # (N,)
    eigenvectors: FloatArray  # (N, N), one per column
    converged: bool  # the tolerance was met; False if max_iter stopped the run

    @property
    def K(self) -> FloatArray:
        """The marginal kernel V diag(λ) Vᵀ."""
        return compose(self.eigenvalues, self.eigenvectors)


def em(
    K_start: ArrayLike, sets: Sets, weights: ArrayLike, *, tol: float = 1e-4, max_iter: int = 1000, cap: float = CAP
) -> Trace:
    """Run EM: alternate the eigenvalue update and one step of the eigenvectors. [GKFT14, Algorithm 2]"""
    lam, V = project(K_start)
    if lam.max() >= 1:
        raise ValueError(f"the eigenvalues of the initial kernel must be below 1, the largest is {lam.max()}")
    objective = [_check_initial(log_likelihood(V, lam, sets, weights))]
    step = [0.0]
    while not _has_converged(tol, objective) and len(objective) <= max_iter:
        new_lam = np.minimum(eigenvalue_update(V, lam, sets, weights), cap)
        V, eta = eigenvector_update(V, lam, new_lam, sets, weights)
        lam = new_lam
        objective.append(log_likelihood(V, lam, sets, weights))
        step.append(eta)
    return Trace(np.array(objective), np.array(step), lam, V, _has_converged(tol, objective))


def k_ascent(K_start: ArrayLike, sets: Sets, weights: ArrayLike, *, tol: float = 1e-4, max_iter: int = 1000) -> Trace:
    """Run projected gradient ascent on K. [GKFT14, Algorithm 1]

    If no step increases the objective, the kernel does not change, which meets the stopping rule.
    """
    lam, V = project(K_start)
    objective = [_check_initial(log_likelihood_of_K(compose(lam, V), sets, weights))]
    step = [0.0]
    while not _has_converged(tol, objective) and len(objective) <= max_iter:
        (lam, V), eta = kernel_update(lam, V, sets, weights)
        objective.append(log_likelihood_of_K(compose(lam, V), sets, weights))
        step.append(eta)
    return Trace(np.array(objective), np.array(step), lam, V, _has_converged(tol, objective))


def marginals_given(V: FloatArray, lam: FloatArray, Y: IndexSet) -> FloatArray:
    """Return q(j ∈ J | Y), the posterior probability that eigenvector j was selected. [GKFT14, E-step]

    q(j ∈ J | Y) = Σ_r v̂_r(j)², where v̂_r are the |Y| eigenvectors of R Vᵀ I_Y V R with nonzero eigenvalue. That N×N
    matrix is A Aᵀ with A = R V_Yᵀ. An eigenpair (γ, u) of the |Y|×|Y| matrix AᵀA gives v̂ = A u / √γ.
    """
    A = np.sqrt(odds(lam))[:, None] * V[Y].T  # (N, |Y|)
    gamma, U = np.linalg.eigh(A.T @ A)
    V_hat = A @ (U / np.sqrt(gamma))  # (N, |Y|)
    marginals: FloatArray = (V_hat**2).sum(axis=1)
    return marginals


def eigenvalue_update(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """Return λ'_j = mean_i q(j ∈ J | Y_i). [GKFT14, M-step for the eigenvalues]"""
    new_lam = np.zeros_like(lam)
    for Y, w in _weighted(sets, weights):
        new_lam += w * marginals_given(V, lam, Y)
    return new_lam


def eigenvector_gradient(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """Return G = mean_i 2 B_i (L_{Y_i})⁻¹ V_{Y_i} R². [GKFT14, M-step for the eigenvectors]

    G is the gradient of the bound F at the V of the E-step and at no other V. Hence EM takes one step per iteration.
    """
    G = np.zeros_like(V)
    for Y, w in _weighted(sets, weights):
        V_Y_R2 = V[Y] * odds(lam)  # (|Y|, N)
        G[Y] += w * 2 * np.linalg.solve(V_Y_R2 @ V[Y].T, V_Y_R2)
    return G


def eigenvector_update(
    V: FloatArray, lam: FloatArray, new_lam: FloatArray, sets: Sets, weights: ArrayLike
) -> tuple[FloatArray, float]:
    """Return V exp[η (VᵀG − GᵀV)] and η, or V and 0 if no step increases the likelihood. [GKFT14, Algorithm 2]

    G uses the old eigenvalues. The line search compares likelihoods at the new eigenvalues.
    """
    G = eigenvector_gradient(V, lam, sets, weights)
    S = V.T @ G - G.T @ V
    return line_search(V, lambda eta: V @ expm(eta * S), lambda V: log_likelihood(V, new_lam, sets, weights))


def kernel_gradient(K: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """Return the gradient mean_i (K − I_Ȳ_i)⁻¹, symmetrised. [GKFT14, projected gradient ascent]"""
    G = np.zeros_like(K)
    for Y, w in _weighted(sets, weights):
        G += w * np.linalg.inv(K - identity_outside(Y, len(K)))
    return (G + G.T) / 2


def kernel_update(
    lam: FloatArray, V: FloatArray, sets: Sets, weights: ArrayLike
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Return (λ, V) of the projection of K + η G and η, or the old (λ, V) and 0. [GKFT14, Algorithm 1]"""
    K = compose(lam, V)
    G = kernel_gradient(K, sets, weights)
    return line_search(
        (lam, V), lambda eta: project(K + eta * G), lambda pair: log_likelihood_of_K(compose(*pair), sets, weights)
    )


def log_likelihood(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> float:
    """Return mean_i log det L_{Y_i} + Σ_j log(1 − λ_j); −inf if a set has probability zero."""
    if max(map(len, sets)) > np.count_nonzero(lam):
        return -np.inf
    mean_log_det = sum(w * log_det((V[Y] * odds(lam)) @ V[Y].T) for Y, w in _weighted(sets, weights))
    return float(mean_log_det + np.log1p(-lam).sum())


def log_likelihood_of_K(K: FloatArray, sets: Sets, weights: ArrayLike) -> float:
    """Return mean_i log |det(K − I_Ȳ_i)|, which also exists for eigenvalues of 1. [GKFT14, background]"""
    return float(sum(w * _log_probability(K, Y) for Y, w in _weighted(sets, weights)))


def log_det(L_Y: FloatArray) -> float:
    """Return log det of a positive semidefinite matrix; −inf if a pivot is of the size of rounding errors."""
    try:
        pivots = np.diag(np.linalg.cholesky(L_Y)) ** 2
    except np.linalg.LinAlgError:
        return -np.inf
    if np.any(pivots <= len(L_Y) * np.finfo(np.float64).eps * np.diag(L_Y)):
        return -np.inf
    return float(np.log(pivots).sum())


def line_search(
    start: Point, move: Callable[[float], Point], objective: Callable[[Point], float]
) -> tuple[Point, float]:
    """Return the first of move(1), move(1/2), ... above objective(start), with its step; else (start, 0)."""
    to_beat = objective(start)
    eta = 1.0
    while eta >= SMALLEST_STEP:
        candidate = move(eta)
        if objective(candidate) > to_beat:
            return candidate, eta
        eta /= 2
    return start, 0.0


def raise_capped(lam: FloatArray, cap: float = CAP) -> FloatArray:
    """Return λ with every eigenvalue at the cap raised to 1, as the authors' program does after the last iteration.

    The resulting kernel is not the one whose likelihood `em` recorded last.
    """
    return np.where(lam >= cap, 1.0, lam)


def odds(lam: FloatArray) -> FloatArray:
    """Return r² = λ / (1 − λ), the eigenvalues of L."""
    return lam / (1 - lam)


def project(K: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return (λ, V) of the marginal kernel nearest to K: the eigenvalues clipped to [0, 1]. [GKFT14, Algorithm 1]"""
    lam, V = np.linalg.eigh(np.asarray(K, dtype=np.float64))
    return np.clip(lam, 0.0, 1.0), V


def compose(lam: FloatArray, V: FloatArray) -> FloatArray:
    """Return V diag(λ) Vᵀ, exactly symmetric."""
    K = (V * lam) @ V.T
    return (K + K.T) / 2


def identity_outside(Y: IndexSet, n_items: int) -> FloatArray:
    """Return I_Ȳ, the N×N identity with zeros on its diagonal at the items of Y."""
    diagonal = np.ones(n_items)
    diagonal[Y] = 0
    return np.diag(diagonal)


def _log_probability(K: FloatArray, Y: IndexSet) -> float:
    """Return log |det(K − I_Ȳ)|; −inf if rounding gave the determinant the wrong sign."""
    n_outside = len(K) - len(Y)
    sign, log_abs_det = np.linalg.slogdet(K - identity_outside(Y, len(K)))
    return float(log_abs_det) if sign == (-1) ** n_outside else -np.inf


def _weighted(sets: Sets, weights: ArrayLike) -> Iterator[tuple[IndexSet, float]]:
    """Iterate over the sets with their weights, normalised to sum 1."""
    w = np.asarray(weights, dtype=np.float64)
    return zip(sets, (w / w.sum()).tolist(), strict=True)


def _check_initial(objective: float) -> float:
    if not np.isfinite(objective):
        raise ValueError(f"the mean log-likelihood of the initial kernel must be finite, got {objective}")
    return objective


def _has_converged(tol: float, objective: Sequence[float]) -> bool:
    """Return whether the last relative change |change| / max(|previous|, 1e-5) is below `tol`."""
    if len(objective) < 2:
        return False
    previous, last = objective[-2:]
    return abs(last - previous) / max(abs(previous), 1e-5) < tol
