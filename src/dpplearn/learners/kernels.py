"""What learners return: a symmetric DPP, or segments with mixing weights; and the distributions that these give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
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
        if not isinstance(distribution.components, ScaledDPPs):
            raise InputError("start is a mixture of given models; `fit_weights` learns the weights of these")
        return cls(softmax(distribution.log_mass), distribution.components)

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
        interaction = self.components.dense().interaction
        assert isinstance(interaction, Dense)
        if interaction.g == 1:
            return np.asarray(interaction.X[0])
        return np.asarray(np.einsum("c,cij->ij", self.weights, interaction.X))

    @property
    def factors(self) -> LowRank | None:
        """The interaction if it is low-rank and shared."""
        interaction = self.components.interaction
        return interaction if isinstance(interaction, LowRank) and interaction.g == 1 else None


Kernel = SpectralDPP | Segments | SetDistribution


def distribution_of(kernel: Kernel, *, nonempty: bool = False) -> SetDistribution:
    """Return the distribution of a kernel, if wanted given Y ≠ ∅."""
    if isinstance(kernel, SetDistribution):
        return kernel
    make = SetDistribution.truncated if nonempty else SetDistribution.mixture
    if isinstance(kernel, SpectralDPP):
        return make([1.0], kernel)
    return make(kernel.weights, kernel.components)
