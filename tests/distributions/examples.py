"""Components and distributions of every kind over a few items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpplearn.distributions.components import Stack
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank, repelling_and_attracting
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP

N = 5


def spectral(seed: int, ones: int = 0) -> SpectralDPP:
    X = np.random.default_rng(seed).standard_normal((N, N))
    dpp = SpectralDPP.from_L(X @ X.T / N)
    return SpectralDPP(np.append(dpp.eigenvalues[: N - ones], np.ones(ones)), dpp.eigenvectors)


def dense(m: int, g: int, seed: int = 0, spread: float = 1.0) -> ScaledDPPs:
    """m components with g interactions."""
    rng = np.random.default_rng(seed)
    U, A = rng.standard_normal((g, N, 2)) / 2, rng.standard_normal((g, N, N)) / 2
    X = U @ U.transpose(0, 2, 1) + A - A.transpose(0, 2, 1)
    return ScaledDPPs.checked(spread * rng.standard_normal((m, N)) - 0.5, Dense.checked(X))


def low_rank(m: int, g: int, seed: int = 0) -> ScaledDPPs:
    """m components with g interactions; one item does not interact."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((N, 5)) / 1.5
    Z[3] = 0
    twisted = rng.standard_normal((g, 5, 5)) / 3
    core = repelling_and_attracting(1, 2) + twisted - twisted.transpose(0, 2, 1)
    log_odds = (rng.standard_normal((m, N)) - 0.5).astype(np.float32)
    return ScaledDPPs.checked(log_odds, LowRank.checked(Z, core))


def without_interaction(rank: int) -> ScaledDPPs:
    log_odds = np.random.default_rng(rank).standard_normal((2, N)).astype(np.float32)
    return ScaledDPPs.checked(log_odds, LowRank.checked(np.zeros((N, rank)), np.eye(rank)[None]))


SHAPES = ((1, 1), (2, 1), (3, 3))  # numbers of components and interactions, by seed


KINDS: dict[str, Callable[[int], Any]] = {
    "symmetric": spectral,
    "dense": lambda seed: dense(*SHAPES[seed % 3], seed),
    "low-rank": lambda seed: low_rank(*SHAPES[seed % 3], seed),
    "without interaction": without_interaction,
    "stack": lambda seed: Stack((spectral(seed), spectral(seed, ones=1), dense(2, 1, seed), low_rank(1, 1, seed))),
    # a set that is possible with one certain item may be too small for two
    "certain items": lambda seed: Stack((spectral(seed, ones=1), spectral(seed, ones=2))),
}


def _mixture(kind: str, p_empty: float | None, seed: int) -> SetDistribution:
    components = KINDS[kind](seed)
    weights = np.random.default_rng(seed).dirichlet(np.ones(components.m))
    return SetDistribution.mixture(weights, components, p_empty)


def _restricted(kind: str, seed: int) -> SetDistribution:
    """Y ∩ S of a larger nonempty set: P(∅) differs between components."""
    components, more = KINDS[kind](seed), np.array([0.3, 0.8])
    extended = SetDistribution.truncated(np.full(components.m, 1 / components.m), components.extend(more)[1])
    return extended.restrict(np.arange(N))


EXAMPLES: dict[str, Callable[[int], SetDistribution]] = {
    f"{kind}, {name}": (lambda seed, kind=kind, p_empty=p_empty: _mixture(kind, p_empty, seed))
    for kind in KINDS
    for name, p_empty in (("as is", None), ("never empty", 0.0), ("seldom empty", 0.05))
    if not (kind == "certain items" and name != "as is")
}
EXAMPLES |= {f"{kind}, restricted": (lambda seed, kind=kind: _restricted(kind, seed)) for kind in KINDS}
