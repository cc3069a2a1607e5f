"""Low-rank mixtures over catalogues in which a few items are popular and most are rare."""

from __future__ import annotations

import numpy as np

from dpplearn.distributions.interaction import Dense, LowRank, repelling_and_attracting
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.learners.kernels import Segments


def catalogue(
    n_items: int, *, segments: int = 3, repelling: int = 2, attracting: int = 4, each: bool = False, seed: int = 0
) -> Segments:
    """About four items per set, lifts of up to ten, a fifth of the items without interaction; with `each`, an
    interaction per segment."""
    rng = np.random.default_rng(seed)
    popular = 1 / (np.arange(n_items) + 3.0)
    log_odds = np.log(4 * popular / popular.sum()) + rng.standard_normal((segments, n_items)) / 2
    Z = 0.3 * rng.standard_normal((n_items, repelling + 2 * attracting))
    Z[np.arange(n_items), rng.integers(repelling, Z.shape[1], n_items)] += 1.2
    Z[rng.random(n_items) < 0.2] = 0
    twisted = rng.standard_normal((segments if each else 1, Z.shape[1], Z.shape[1])) / 5
    core = repelling_and_attracting(repelling, attracting) + twisted - twisted.transpose(0, 2, 1)
    components = ScaledDPPs.checked(log_odds.astype(np.float32), LowRank.checked(Z, core))
    return Segments(rng.dirichlet(np.full(segments, 5.0)), components)


def dense_form(components: ScaledDPPs) -> ScaledDPPs:
    """The same components with a dense interaction."""
    return ScaledDPPs(components.log_odds.astype(float), Dense(components.interaction.X))
