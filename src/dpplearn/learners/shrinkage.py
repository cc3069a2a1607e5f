"""Shrinkage of a learned symmetric DPP towards independent items.

Maximum likelihood overfits small samples: it gives probability zero to sets that the training data do not contain.
Shrinkage mixes the learned marginal kernel with that of independent items,

    K ← (1 − s) K + s diag(p),

where p are the smoothed item probabilities, and then rescales the odds of the items (L ← D L D) until every item has
its smoothed frequency m = (count + ½)/(n + 1). For 0 < s ≤ 1 all eigenvalues of K lie strictly between 0 and 1, so
every set has a positive probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from threading import Event
from typing import cast

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.loop import Stop, run
from dpplearn.learners.problem import FOLDS, Task
from dpplearn.learners.starts import moments_kernel, nearest_kernel
from dpplearn.utils.threads import map_over_threads, one_blas_thread

# Candidates for cross-validation: s/(1 − s) from 0.001 to 32 in equal ratios, and s = 1 (independent items).
PATH = np.append(1 / (1 + 10 ** np.linspace(3, -1.5, 19)), 1.0)
ENOUGH_HELD_OUT = 2000  # baskets; once the folds contain as many, further folds are not needed
FOLD_TOL = 1e-3  # nats per basket; folds learned to a smaller tolerance chose the same shrinkage
TIE = 1e-6  # nats per basket; of values that predict equally well, the largest is chosen
MAX_ROUNDS = 16  # of rescaling the odds of the items
FREQUENCY_TOL = 1e-6  # relative; the sampling error of any frequency is far larger


def shrink(kernel: SpectralDPP, baskets: AnyBaskets, s: float, *, nonempty: bool) -> SpectralDPP:
    """Return the kernel shrunk by `s` towards independent items with the frequencies of the baskets.

    With s = 0 the kernel is returned unchanged. `nonempty` says that the distribution is P(Y given Y ≠ ∅); the
    frequencies are then those of the items given Y ≠ ∅.
    """
    if s == 0:
        return kernel
    counted = baskets.frequencies(), baskets.total_weight
    p = chances(*counted, smoothing=SMOOTHING, nonempty=nonempty)
    K = (1 - s) * kernel.K + s * np.diag(p)
    K = with_frequencies(K, chances(*counted, smoothing=SMOOTHING), nonempty=nonempty)
    return nearest_kernel(K, EPSILON, 1 - EPSILON)  # rounding must not move an eigenvalue to 0 or 1


def with_frequencies(K: Floats, m: Floats, *, nonempty: bool) -> Floats:
    """Rescale the odds of the items until they have the frequencies m.

    The kernels D L D with diagonal D form an exponential family with the item indicators as sufficient statistics.
    Newton's method on log D² solves its moment equations: the Hessian is the covariance matrix of the indicators.
    Frequencies that add up to 1 or less are impossible given Y ≠ ∅; there the last round is returned.
    """
    for number in range(MAX_ROUNDS):
        # P(Y ≠ ∅) = 1 − det(I − K)
        q = -np.expm1(np.linalg.slogdet(np.eye(len(K)) - K)[1]) if nonempty else 1.0
        item = K.diagonal() / q
        if np.abs(item / m - 1).max() <= FREQUENCY_TOL:
            break
        # The first step, D² = m/marginals, is exact for items that were almost impossible before.
        step = newton_step(K, item, m, q) if number else np.log(m / item)
        K = scale_odds(K, np.exp(step))
    return K


def newton_step(K: Floats, item: Floats, m: Floats, q: float) -> Floats:
    """Return the change of log D² that moves the item frequencies from `item` to m, to first order."""
    # Cov(i, j) = P(i, j ∈ Y) − P(i ∈ Y) P(j ∈ Y), with P(i, j ∈ Y) = (K_ii K_jj − K_ij²)/q
    covariance = (np.outer(K.diagonal(), K.diagonal()) - K**2) / q - np.outer(item, item)
    # The small relative term keeps the matrix invertible where the size of a set is almost certain.
    np.fill_diagonal(covariance, item * (1 - item) + 1e-12 * item)
    step = np.linalg.solve(covariance, m - item)
    return np.asarray(step / max(1.0, np.abs(step).max()))  # odds change at most by a factor of e per round


def scale_odds(K: Floats, factors: Floats) -> Floats:
    """Return the marginal kernel of D L D, D² = diag(factors): D K (I + (D² − I) K)⁻¹ D, which needs no L."""
    d = np.sqrt(factors)
    M = np.eye(len(K)) + (factors - 1)[:, None] * K
    scaled = d[:, None] * np.linalg.solve(M.T, K).T * d
    return np.asarray((scaled + scaled.T) / 2)


def usual_shrinkage(baskets: AnyBaskets) -> float:
    """Return the shrinkage used where cross-validation is impossible: 8N/(n + 8N)."""
    return 8 * baskets.n_items / (baskets.total_weight + 8 * baskets.n_items)


def choose_shrinkage(
    task: Task, baskets: AnyBaskets, clock: Callable[[], float], rng: np.random.Generator
) -> float | None:
    """Return the value of `PATH` under which held-out baskets are most likely, by 5-fold cross-validation.

    Each fold is learned once and evaluated with every value. Return None where nothing can be held out, or where the
    time limit of the fit ends before all folds are learned. Each fold uses one thread, so that the result does not
    depend on the number of threads.
    """
    nonempty = task.problem.nonempty
    assert isinstance(baskets, Baskets)  # the settings reject "auto" for baskets in parts
    n_folds = min(FOLDS, baskets.n_units)
    if n_folds < 2:
        return None
    n_used = min(n_folds, ceil(ENOUGH_HELD_OUT * n_folds / baskets.n_units))
    limits = task.limits
    if not task.learner.as_published:  # their tolerance is relative
        limits = replace(limits, tol=max(limits.tol, FOLD_TOL))
    held_out = baskets.folds(n_folds, rng)[:n_used]  # (n_used, len(baskets)) weights
    cancelled = Event()

    def path_scores(weights: Floats) -> Floats | None:
        train = baskets.weighted(baskets.weights - weights).deduplicated()
        problem = replace(task.problem, baskets=train, threads=1)
        steps = task.learner.steps(moments_kernel(train), problem)
        end = run(steps, limits, clock, lambda _: cancelled.is_set(), at_end=task.learner.at_end)
        if end.stop is Stop.MAX_SECONDS:
            return None
        kernel = cast(SpectralDPP, end.step.kernel)
        test = baskets.weighted(weights)
        shrunk = (distribution_of(shrink(kernel, train, s, nonempty=nonempty), nonempty=nonempty) for s in PATH)
        return np.array([test.weights @ each.log_prob(test, 1) for each in shrunk])

    with one_blas_thread():
        try:
            scores = list(map_over_threads(path_scores, held_out, task.problem.threads))
        finally:  # after Ctrl-C, folds that are being learned stop after their current step
            cancelled.set()
    if any(each is None for each in scores):
        return None
    mean = np.sum(scores, axis=0) / held_out.sum()
    return float(PATH[mean >= mean.max() - TIE][-1])
