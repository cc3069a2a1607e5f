"""Kernels as functions of item features, and the posterior density of their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.features import Features
from dpplearn.distributions.statistics import logdet_under_L, sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.quality.distribution import QualityDistribution
from dpplearn.utils.text import count

KernelFunction = Callable[[Floats, Floats], Floats]  # from parameters and features to L

NUGGET = 0.01  # of an RBF kernel: dissimilarity of items with equal features
DIFFERENCE = 1e-5  # of parameters for the derivative of L, in standard deviations of the prior

CONSTANT_PRIOR, FEATURE_PRIOR, SHAPE_PRIOR = (-2.0, 2.0), (0.0, 1.0), (0.0, 1.0)  # mean and standard deviation
ASYMMETRY = 1e-8  # of L − Lᵀ relative to L, that rounding may leave


@dataclass(frozen=True, eq=False)
class ParametricKernel:
    """L as a function of parameters with independent normal priors."""

    function: KernelFunction
    X: Floats  # (n_items, n_features)
    names: tuple[str, ...]
    mean: Floats  # (n_parameters,)
    sd: Floats  # (n_parameters,)

    def L(self, theta: Floats) -> Floats:
        return np.ascontiguousarray(self.function(theta, self.X), dtype=float)

    def gradient(self, theta: Floats, by_L: Floats) -> Floats:
        """Return ⟨∂/∂L, ∂L/∂θ⟩, with ∂L/∂θ by differences, which needs no pass over the baskets."""
        found = np.empty(len(theta))
        for row, sd in enumerate(self.sd):
            move = np.zeros(len(theta))
            move[row] = DIFFERENCE * sd
            found[row] = np.vdot(by_L, self.L(theta + move) - self.L(theta - move)) / (2 * DIFFERENCE * sd)
        return found

    def log_prior(self, theta: Floats) -> float:
        """Return the log-density of the prior, up to a constant."""
        return -float((((theta - self.mean) / self.sd) ** 2).sum()) / 2

    def prior_gradient(self, theta: Floats) -> Floats:
        return np.asarray((self.mean - theta) / self.sd**2)


def with_quality(S: Floats, theta: Floats, X: Floats) -> Floats:
    """Return D S D; the first parameters are those of quality: a constant and one per feature."""
    d = np.exp(np.clip(theta[0] + X @ theta[1 : 1 + X.shape[1]], -60, 60) / 2)
    return np.asarray(d[:, None] * S * d)


def rbf(theta: Floats, X: Floats) -> Floats:
    """S_ij = exp(−|x_i − x_j|²/(2 ℓ²)), for items that differ .99 of it; the last parameter is log ℓ. [AFAT14]"""
    squares = (X**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)
    S = (1 - NUGGET) * np.exp(-apart / 2 * np.exp(-2 * np.clip(theta[-1], -20, 20)))
    np.fill_diagonal(S, 1)
    return with_quality(S, theta, X)


def linear(theta: Floats, X: Floats) -> Floats:
    """S = (1 − w) I + w cos(x_i, x_j); the last parameter is logit(w)."""
    lengths = np.sqrt((X**2).sum(axis=1))
    unit = X / np.maximum(lengths, 1e-12)[:, None]
    w = 1 / (1 + np.exp(-np.clip(theta[-1], -40, 40)))
    S = w * (unit @ unit.T)
    np.fill_diagonal(S, 1)
    return with_quality(S, theta, X)


NAMED: dict[str, tuple[KernelFunction, str]] = {"rbf": (rbf, "log length"), "linear": (linear, "logit strength")}


def parametric(
    kernel: str | KernelFunction,
    features: Features,
    names: Sequence[str] | None,
    prior: tuple[Sequence[float], Sequence[float]] | None,
) -> ParametricKernel:
    """Return one of the named kernels, or a function of parameters and features."""
    X = np.asarray(features.matrix)
    if isinstance(kernel, str):
        if kernel not in NAMED:
            raise InputError(f"kernel must be one of {', '.join(sorted(NAMED))} or a function, got {kernel!r}")
        if names is not None:
            raise InputError(f"names are only valid for a function, and kernel is {kernel!r}")
        function, shape = NAMED[kernel]
        names = ("(all items)", *features.names, shape)
        prior = prior or tuple(np.array([CONSTANT_PRIOR, *[FEATURE_PRIOR] * X.shape[1], SHAPE_PRIOR]).T.tolist())
    elif not callable(kernel):
        raise InputError(
            f"kernel must be one of {', '.join(sorted(NAMED))}, or a function from parameters and features to L, got a "
            f"{type(kernel).__name__}"
        )
    else:
        function = kernel
    if prior is None:
        raise InputError("prior=(means, standard deviations), with one of each per parameter, is needed for a function")
    mean, sd = _checked_prior(prior)
    names = [names] if isinstance(names, str) else names
    names = tuple(map(str, names)) if names is not None else tuple(f"parameter {row}" for row in range(len(mean)))
    if len(names) != len(mean):
        parameters = count(len(mean), "parameter")
        raise InputError(f"the prior has {parameters}, but there are {len(names)}: {', '.join(names)}")
    return ParametricKernel(function, X, names, mean, sd)


def _checked_prior(prior: Any) -> tuple[Floats, Floats]:
    try:
        mean, sd = (np.array(each, dtype=float) for each in prior)
    except (TypeError, ValueError):
        raise InputError("prior must be a pair of lists of numbers: (means, standard deviations)") from None
    if mean.ndim != 1 or mean.shape != sd.shape or not len(mean):
        raise InputError(
            f"prior must have one mean and one standard deviation per parameter, got shapes {mean.shape} and {sd.shape}"
        )
    if not (np.isfinite(mean).all() and np.isfinite(sd).all() and (sd > 0).all()):
        raise InputError(
            f"prior must be finite with positive standard deviations, got {mean.tolist()} and {sd.tolist()}"
        )
    return mean, sd


@dataclass(frozen=True, eq=False)
class Density:
    """log p(θ given baskets) = Σ w log det L_Y − n log Z + log p(θ), up to a constant."""

    kernel: ParametricKernel
    baskets: Baskets
    nonempty: bool
    threads: int | None = None

    @cached_property
    def weight(self) -> float:
        return self.baskets.total_weight

    def log_likelihood(self, theta: Floats) -> float:
        """Return the log-likelihood of all baskets; −inf where one is impossible, or L is not a kernel."""
        L = self.kernel.L(theta)
        distribution = self._distribution(L)
        if distribution is None:
            return -math.inf
        return logdet_under_L(L, self.baskets, self.threads) - self.weight * distribution.log_normaliser

    def __call__(self, theta: Floats) -> float:
        return self.log_likelihood(theta) + self.kernel.log_prior(theta)

    def with_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the density and its gradient, from ∂/∂L = Δ − n (L + I)⁻¹/c."""
        L = self.kernel.L(theta)
        distribution = self._distribution(L)
        if distribution is None:
            return -math.inf, np.zeros(len(theta))
        logdet, delta = sums_under_L(L, self.baskets, self.threads)
        by_L = delta - self.weight * distribution.by_similarity
        value = logdet - self.weight * distribution.log_normaliser + self.kernel.log_prior(theta)
        return value, self.kernel.gradient(theta, by_L) + self.kernel.prior_gradient(theta)

    def _distribution(self, L: Floats) -> QualityDistribution | None:
        """Return the distribution of L, a similarity of quality 1; None if L is not a kernel."""
        n = self.baskets.n_items
        if L.shape != (n, n):
            raise InputError(f"the kernel's function gave an array of shape {L.shape}; expected ({n}, {n})")
        if not np.isfinite(L).all():
            return None
        asymmetry = float(np.abs(L - L.T).max())
        if asymmetry > ASYMMETRY * float(np.abs(L).max()):
            raise InputError(
                f"the kernel's function gave an L that is not symmetric, by {asymmetry:.2g}; take (L + Lᵀ)/2"
            )
        try:
            return QualityDistribution.of(L, np.zeros(n), nonempty=self.nonempty)
        except np.linalg.LinAlgError:
            return None
