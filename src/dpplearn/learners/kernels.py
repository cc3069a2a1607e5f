"""What learners return: a symmetric DPP, or segments with mixing weights; and the distributions that these give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError


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
    def of(cls, distribution: SetDistribution) -> Segments:
        """Return the segments of a mixture that was learned."""
        components: Any = distribution.components
        if not hasattr(components, "interaction"):
            raise InputError("start is a mixture of given models; `fit_weights` learns the weights of these")
        return cls(softmax(distribution.log_mass), components)

    def with_segments(self, n: int, noise: float, rng: np.random.Generator) -> Segments:
        """Return the n segments of largest weight, or all with additional random variants of them."""
        order = np.arange(n) if self.n_segments == n else np.argsort(-self.weights, kind="stable")
        chosen = order[np.arange(n) % len(order)]
        log_odds = self.log_odds[chosen].astype(float)
        new = np.arange(n) >= len(order)
        log_odds[new] += noise * rng.standard_normal((np.count_nonzero(new), self.n_items))
        share = self.weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
        return Segments(share / share.sum(), ScaledDPPs(log_odds, self.components.interaction))

    def log_odds_over(self, here: Ints, new_log_odds: Floats) -> Floats:
        """Return the log-odds of other items; `here` is the position of each, or −1 where it is new."""
        log_odds = np.tile(new_log_odds, (self.n_segments, 1))
        log_odds[:, here >= 0] = self.log_odds[:, here[here >= 0]]
        return log_odds

    @property
    def n_segments(self) -> int:
        return self.components.m

    @property
    def n_items(self) -> int:
        return self.components.n_items

    @property
    def log_odds(self) -> npt.NDArray[Any]:
        return self.components.log_odds

    @property
    def X(self) -> Floats:
        """The interaction as one dense matrix: shared, or the weighted mean over segments."""
        interaction: Any = self.components.dense().interaction
        if interaction.g == 1:
            return np.asarray(interaction.X[0])
        return np.asarray(np.einsum("c,cij->ij", self.weights, interaction.X))

    @property
    def factors(self) -> LowRank | None:
        """The interaction if it is low-rank and shared."""
        interaction: Any = self.components.interaction
        return interaction if interaction.g == 1 and hasattr(interaction, "Z") else None


Kernel = SpectralDPP | Segments | SetDistribution


def distribution_of(kernel: Any, *, nonempty: bool = False) -> SetDistribution:
    """Return the distribution of segments, or of a single component, if wanted given Y ≠ ∅."""
    make = SetDistribution.truncated if nonempty else SetDistribution.mixture
    return make(getattr(kernel, "weights", np.ones(1)), getattr(kernel, "components", kernel))
