"""The two algorithms of [GKFT14] as printed: plain, one example at a time, at the paper's cost.

They are here to be read beside the paper and to hold the fast learners against, not to be run on much data.
Algorithm 1 (`k_ascent`) inverts an N×N matrix for every example, O(n N³) per step. Algorithm 2 (`em`) decomposes a k×k
matrix for every example, O(n N k²) per step. n is the number of examples, k the size of the largest, N that of the
ground set.

Notation: K = V diag(λ) Vᵀ, odds r² = λ / (1 − λ), R = diag(r), L = V R² Vᵀ; V_Y the rows of V in Y; I_Ȳ the identity
with zeros on its diagonal at the items of Y; B_i the columns of the identity for the items of Y_i.

Where the paper sums over examples these functions take the mean, with weights that need not sum to 1, as the authors'
program does: a first step of 1 would mean something else for a sum. Corrected here: the sum in the E-step marginal runs
over the |Y| nonzero eigenvectors, not N; the stopping rule is tested on the likelihood, the bound F being intractable;
and the line search has a floor.
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

CAP = 0.999  # EM keeps eigenvalues at or below this: at 1 the odds are infinite
SMALLEST_STEP = 1e-8  # where the line search gives up


@dataclass(frozen=True)
class Trace:
    """One run: the mean log-likelihood after every iteration, the step that led there, and the kernel it ended with.

    `objective[0]` is that of the start, and `step[0]` is 0; `step[t]` is also 0 where no step raised the objective.
    """

    objective: FloatArray  # (iterations + 1,)
    step: FloatArray  # (iterations + 1,)
    eigenvalues: FloatArray  # (N,)
    eigenvectors: FloatArray  # (N, N), one per column
    converged: bool  # the stopping rule was met, rather than max_iter reached

    @property
    def K(self) -> FloatArray:
        """K = V diag(λ) Vᵀ, the marginal kernel."""
        return compose(self.eigenvalues, self.eigenvectors)


def em(
    K_start: ArrayLike, sets: Sets, weights: ArrayLike, *, tol: float = 1e-4, max_iter: int = 1000, cap: float = CAP
) -> Trace:
    """λ ← mean of the E-step marginals, then V ← V exp[η (VᵀG − GᵀV)], in turn. [GKFT14, Algorithm 2]"""
    lam, V = project(K_start)
    if lam.max() >= 1:
        raise ValueError("the start has an eigenvalue of 1, whose odds are infinite; EM needs them all below 1")
    objective = [_of_start(log_likelihood(V, lam, sets, weights))]
    step = [0.0]
    while not _met(tol, objective) and len(objective) <= max_iter:
        new_lam = np.minimum(eigenvalue_update(V, lam, sets, weights), cap)
        V, eta = eigenvector_update(V, lam, new_lam, sets, weights)
        lam = new_lam
        objective.append(log_likelihood(V, lam, sets, weights))
        step.append(eta)
    return Trace(np.array(objective), np.array(step), lam, V, _met(tol, objective))


def k_ascent(K_start: ArrayLike, sets: Sets, weights: ArrayLike, *, tol: float = 1e-4, max_iter: int = 1000) -> Trace:
    """K ← K + η ∂/∂K, eigenvalues clipped to [0, 1], η from 1 in every iteration. [GKFT14, Algorithm 1]

    Where no step rises the objective stays as it was, which meets the stopping rule.
    """
    lam, V = project(K_start)
    objective = [_of_start(log_likelihood_of_K(compose(lam, V), sets, weights))]
    step = [0.0]
    while not _met(tol, objective) and len(objective) <= max_iter:
        (lam, V), eta = kernel_update(lam, V, sets, weights)
        objective.append(log_likelihood_of_K(compose(lam, V), sets, weights))
        step.append(eta)
    return Trace(np.array(objective), np.array(step), lam, V, _met(tol, objective))


def marginals_given(V: FloatArray, lam: FloatArray, Y: IndexSet) -> FloatArray:
    """q(j ∈ J | Y) = Σ_r v̂_r(j)², v̂_r the |Y| eigenvectors of R Vᵀ I_Y V R with nonzero eigenvalue. [GKFT14, E-step]

    That N×N matrix is A Aᵀ for A = R V_Yᵀ. Its dual AᵀA is |Y|×|Y|: from an eigenpair (γ, u) of AᵀA, v̂ = A u / √γ.
    """
    A = np.sqrt(odds(lam))[:, None] * V[Y].T  # (N, |Y|)
    gamma, U = np.linalg.eigh(A.T @ A)
    V_hat = A @ (U / np.sqrt(gamma))  # (N, |Y|)
    marginals: FloatArray = (V_hat**2).sum(axis=1)
    return marginals


def eigenvalue_update(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """λ'_j = mean_i q(j ∈ J | Y_i). [GKFT14, M-step for the eigenvalues]"""
    new_lam = np.zeros_like(lam)
    for Y, w in _weighted(sets, weights):
        new_lam += w * marginals_given(V, lam, Y)
    return new_lam


def eigenvector_gradient(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """G = mean_i 2 B_i (L_{Y_i})⁻¹ V_{Y_i} R², that of the bound F at its E-step. [GKFT14, M-step for the eigenvectors]

    It is the gradient of F at the V the E-step saw and at no other, hence one step of V per iteration.
    """
    G = np.zeros_like(V)
    for Y, w in _weighted(sets, weights):
        V_Y_R2 = V[Y] * odds(lam)  # (|Y|, N)
        G[Y] += w * 2 * np.linalg.solve(V_Y_R2 @ V[Y].T, V_Y_R2)
    return G


def eigenvector_update(
    V: FloatArray, lam: FloatArray, new_lam: FloatArray, sets: Sets, weights: ArrayLike
) -> tuple[FloatArray, float]:
    """V exp[η (VᵀG − GᵀV)] and its η; V itself and 0 where no η rises. [GKFT14, Algorithm 2]

    G is taken with the old eigenvalues; the likelihoods compared are those with the new.
    """
    G = eigenvector_gradient(V, lam, sets, weights)
    S = V.T @ G - G.T @ V
    return line_search(V, lambda eta: V @ expm(eta * S), lambda V: log_likelihood(V, new_lam, sets, weights))


def kernel_gradient(K: FloatArray, sets: Sets, weights: ArrayLike) -> FloatArray:
    """∂/∂K = mean_i (K − I_Ȳ_i)⁻¹, symmetrised. [GKFT14, projected gradient ascent]"""
    G = np.zeros_like(K)
    for Y, w in _weighted(sets, weights):
        G += w * np.linalg.inv(K - identity_outside(Y, len(K)))
    return (G + G.T) / 2


def kernel_update(
    lam: FloatArray, V: FloatArray, sets: Sets, weights: ArrayLike
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """(λ, V) of the projection of K + η ∂/∂K, and its η; unchanged and 0 where no η rises. [GKFT14, Algorithm 1]"""
    K = compose(lam, V)
    G = kernel_gradient(K, sets, weights)
    return line_search(
        (lam, V), lambda eta: project(K + eta * G), lambda pair: log_likelihood_of_K(compose(*pair), sets, weights)
    )


def log_likelihood(V: FloatArray, lam: FloatArray, sets: Sets, weights: ArrayLike) -> float:
    """mean_i log det L_{Y_i} + Σ_j log(1 − λ_j), with L_Y = V_Y R² V_Yᵀ; −inf where some Y_i cannot occur."""
    if max(map(len, sets)) > np.count_nonzero(lam):
        return -np.inf
    mean_log_det = sum(w * log_det((V[Y] * odds(lam)) @ V[Y].T) for Y, w in _weighted(sets, weights))
    return float(mean_log_det + np.log1p(-lam).sum())


def log_likelihood_of_K(K: FloatArray, sets: Sets, weights: ArrayLike) -> float:
    """mean_i log |det(K − I_Ȳ_i)|, which unlike that through L allows eigenvalues of 1. [GKFT14, background]"""
    return float(sum(w * _log_probability(K, Y) for Y, w in _weighted(sets, weights)))


def log_det(L_Y: FloatArray) -> float:
    """log det of a symmetric positive semidefinite matrix; −inf where a pivot is no more than rounding error."""
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
    """The first of move(1), move(1/2), move(1/4), ... over objective(start), with its step; else (start, 0)."""
    to_beat = objective(start)
    eta = 1.0
    while eta >= SMALLEST_STEP:
        candidate = move(eta)
        if objective(candidate) > to_beat:
            return candidate, eta
        eta /= 2
    return start, 0.0


def raise_capped(lam: FloatArray, cap: float = CAP) -> FloatArray:
    """λ with every entry at the cap raised to 1, as the authors' program does after its last iteration.

    The kernel this gives is not the one whose likelihood `em` last recorded.
    """
    return np.where(lam >= cap, 1.0, lam)


def odds(lam: FloatArray) -> FloatArray:
    """r² = λ / (1 − λ), the eigenvalues of L."""
    return lam / (1 - lam)


def project(K: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(λ, V) of K, eigenvalues clipped to [0, 1]: the nearest marginal kernel. [GKFT14, Algorithm 1]"""
    lam, V = np.linalg.eigh(np.asarray(K, dtype=np.float64))
    return np.clip(lam, 0.0, 1.0), V


def compose(lam: FloatArray, V: FloatArray) -> FloatArray:
    """K = V diag(λ) Vᵀ, symmetric to the last bit."""
    K = (V * lam) @ V.T
    return (K + K.T) / 2


def identity_outside(Y: IndexSet, n_items: int) -> FloatArray:
    """I_Ȳ, the N×N identity with zeros on its diagonal at the items of Y."""
    diagonal = np.ones(n_items)
    diagonal[Y] = 0
    return np.diag(diagonal)


def _log_probability(K: FloatArray, Y: IndexSet) -> float:
    """log |det(K − I_Ȳ)|; −inf where rounding has given that determinant the sign no probability has."""
    n_outside = len(K) - len(Y)
    sign, log_abs_det = np.linalg.slogdet(K - identity_outside(Y, len(K)))
    return float(log_abs_det) if sign == (-1) ** n_outside else -np.inf


def _weighted(sets: Sets, weights: ArrayLike) -> Iterator[tuple[IndexSet, float]]:
    """Every set with its weight, the weights divided by their sum."""
    w = np.asarray(weights, dtype=np.float64)
    return zip(sets, (w / w.sum()).tolist(), strict=True)


def _of_start(objective: float) -> float:
    if not np.isfinite(objective):
        raise ValueError(f"the start gives the examples a mean log-likelihood of {objective}; no step can leave that")
    return objective


def _met(tol: float, objective: Sequence[float]) -> bool:
    """|change| / max(|previous|, 1e-5) < tol, the change being that of the last iteration."""
    if len(objective) < 2:
        return False
    previous, last = objective[-2:]
    return abs(last - previous) / max(abs(previous), 1e-5) < tol
