"""Results of learners: a symmetric DPP, or segments with mixing weights; and their distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError
from dpplearn.learners.starts import positions_in
from dpplearn.models.model import SetModel


@dataclass(frozen=True, eq=False)
class Segments:
    """The components of a mixture and their weights P(c), before any condition on the empty set."""

    weights: Floats  # (m,)
    components: ScaledDPPs

    @classmethod
    def dense(cls, weights: Floats, log_odds: Floats, X: Floats) -> Segments:
        """Return segments that share a dense interaction X, (n_items, n_items)."""
        return cls(weights, ScaledDPPs(log_odds, Dense(np.ascontiguousarray(X)[None])))

    @classmethod
    def low_rank(cls, weights: Floats, log_odds: Floats, Z: npt.NDArray[Any], core: Floats) -> Segments:
        """Return segments that share the interaction Z Ω Zᵀ, in single precision."""
        Z, log_odds = Z.astype(np.float32), log_odds.astype(np.float32)
        return cls(weights, ScaledDPPs(log_odds, LowRank(Z, core[None])))

    @classmethod
    def adapted(
        cls, model: SetModel, baskets: AnyBaskets, n: int, new_log_odds: Floats, noise: float, rng: np.random.Generator
    ) -> Segments:
        """Return n segments of a mixture over the items of the baskets, matched by label.

        They are those of largest weight, or all with additional random variants of them. New items start independent of
        all others, with the same log-odds in every segment.
        """
        distribution, here = model.distribution, positions_in(model.catalogue, baskets)  # −1 where an item is new
        components: Any = distribution.components
        if not hasattr(components, "interaction"):
            raise InputError("start is a mixture of given models; `fit_weights` learns the weights of these")
        weights = softmax(distribution.log_mass)
        order = np.arange(n) if len(weights) == n else np.argsort(-weights, kind="stable")
        chosen, new = order[np.arange(n) % len(order)], np.arange(n) >= len(order)
        log_odds = np.where(here >= 0, components.log_odds[:, here], new_log_odds)[chosen].astype(float)
        log_odds[new] += noise * rng.standard_normal((np.count_nonzero(new), baskets.n_items))
        share = weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
        interaction = components.interaction.extend(1).keep(here).take(chosen)  # the last item does not interact
        return cls(share / share.sum(), ScaledDPPs(log_odds, interaction))


Kernel = SpectralDPP | Segments | SetDistribution


def distribution_of(kernel: Any, *, nonempty: bool = False) -> SetDistribution:
    """Return the distribution of segments, or of a single component, if wanted given Y ≠ ∅."""
    make = SetDistribution.truncated if nonempty else SetDistribution.mixture
    return make(getattr(kernel, "weights", np.ones(1)), getattr(kernel, "components", kernel))
