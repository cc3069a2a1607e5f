"""Kernels of few parameters: from features of items to L, with a prior for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.features import Features
from dpplearn.errors import InputError
from dpplearn.tools.words import count

KernelFunction = Callable[[Floats, Floats], Floats]  # from parameters and features to L

NUGGET = 0.01  # of an RBF kernel: how unlike items of equal features are
NEAR = 1e-5  # how far apart kernels are taken for a slope


@dataclass(frozen=True, eq=False)
class ParametricKernel:
    """L as a function of parameters that are normal beforehand, each with a mean and a standard deviation."""

    function: KernelFunction
    X: Floats  # (n_items, n_features)
    names: tuple[str, ...]
    mean: Floats  # (n_parameters,)
    sd: Floats  # (n_parameters,)

    def L(self, theta: Floats) -> Floats:
        return np.ascontiguousarray(self.function(theta, self.X), dtype=float)

    def slopes(self, theta: Floats, by_L: Floats) -> Floats:
        """⟨∂/∂L, ∂L/∂θ⟩, the kernel's slope by differences: that takes no look at baskets."""
        found = np.empty(len(theta))
        for place, sd in enumerate(self.sd):
            move = np.zeros(len(theta))
            move[place] = NEAR * sd
            found[place] = np.vdot(by_L, self.L(theta + move) - self.L(theta - move)) / (2 * NEAR * sd)
        return found

    def log_prior(self, theta: Floats) -> float:
        """But for a constant."""
        return -float((((theta - self.mean) / self.sd) ** 2).sum()) / 2

    def prior_slopes(self, theta: Floats) -> Floats:
        return np.asarray((self.mean - theta) / self.sd**2)

    def among(self, items: Ints) -> ParametricKernel:
        """Of other items, by their features."""
        return ParametricKernel(self.function, self.X[items], self.names, self.mean, self.sd)


def with_quality(S: Floats, theta: Floats, X: Floats) -> Floats:
    """D S D, the quality being of the first parameters: one for all items, and one per feature."""
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
OF_ALL, OF_FEATURE, OF_SHAPE = (-2.0, 2.0), (0.0, 1.0), (0.0, 1.0)  # mean and standard deviation beforehand


def parametric(
    kernel: str | KernelFunction,
    features: Features,
    names: Sequence[str] | None,
    prior: tuple[Sequence[float], Sequence[float]] | None,
) -> ParametricKernel:
    """One of the kernels that have names, or a function of parameters and features."""
    X = np.asarray(features.matrix)
    if isinstance(kernel, str):
        if kernel not in NAMED:
            raise InputError(f"kernel is {kernel!r}; expected one of {', '.join(sorted(NAMED))}, or a function")
        if names is not None:
            raise InputError(
                f"names are those of the parameters of a function, and kernel is {kernel!r}; leave them out"
            )
        function, shape = NAMED[kernel]
        names = ("(all items)", *features.names, shape)
        usual = np.array([OF_ALL, *[OF_FEATURE] * X.shape[1], OF_SHAPE]).T
    elif not callable(kernel):
        raise InputError(
            f"kernel is a {type(kernel).__name__}; expected one of {', '.join(sorted(NAMED))}, or a function that "
            "takes the parameters and the matrix of features and returns L"
        )
    elif prior is None:
        raise InputError(
            "kernel is a function, and what is known of its parameters beforehand is not said; pass prior=(means, "
            "standard deviations), one of each per parameter"
        )
    else:
        function, usual = kernel, np.zeros((2, 0))
    mean, sd = _checked_prior(usual if prior is None else prior)
    names = [names] if isinstance(names, str) else names
    names = tuple(map(str, names)) if names is not None else tuple(f"parameter {place}" for place in range(len(mean)))
    if len(names) != len(mean):
        raise InputError(
            f"the prior is of {count(len(mean), 'parameter')}, and there are {len(names)}: {', '.join(names)}"
        )
    return ParametricKernel(function, X, names, mean, sd)


def _checked_prior(prior: object) -> tuple[Floats, Floats]:
    try:
        mean, sd = (np.array(each, dtype=float) for each in prior)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InputError("prior is not a pair of lists of numbers; expected (means, standard deviations)") from None
    if mean.ndim != 1 or mean.shape != sd.shape or not len(mean):
        raise InputError(
            f"prior has means of shape {mean.shape} and standard deviations of shape {sd.shape}; expected one of each "
            "per parameter"
        )
    if not (np.isfinite(mean).all() and np.isfinite(sd).all() and (sd > 0).all()):
        raise InputError(
            f"prior has the means {mean.tolist()} and the standard deviations {sd.tolist()}; expected finite numbers, "
            "the latter positive"
        )
    return mean, sd
