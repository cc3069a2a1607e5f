"""Design: how the quality of items comes from weights, u = F θ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.features import Features

INTERCEPT = "(all items)"


@dataclass(frozen=True, eq=False)
class Design:
    """F has a row per item and a column per weight: features after a column of ones, or without any, one per item."""

    F: Floats  # (n_items, n_weights)
    names: tuple[str, ...]
    free: bool = False  # a weight per item: F is I

    @classmethod
    def of_items(cls, labels: tuple[object, ...]) -> Design:
        """A weight per item."""
        return cls(np.eye(len(labels)), tuple(map(str, labels)), free=True)

    @classmethod
    def of_features(cls, features: Features) -> Design:
        ones = np.ones((len(features.matrix), 1))
        return cls(np.hstack([ones, features.matrix]), (INTERCEPT, *features.names))

    @cached_property
    def shrunk(self) -> Bools:
        """Which weights a ridge draws to 0: those of features."""
        return np.array([not self.free and name != INTERCEPT for name in self.names], dtype=bool)

    def quality(self, theta: Floats) -> Floats:
        """u = F θ."""
        return theta if self.free else np.asarray(self.F @ theta)

    def slopes(self, by_item: Floats) -> Floats:
        """Fᵀ x."""
        return by_item if self.free else np.asarray(self.F.T @ by_item)

    def information(self, C: Floats) -> Floats:
        """Fᵀ C F."""
        return C if self.free else np.asarray(self.F.T @ C @ self.F)

    def among(self, items: Ints) -> Design:
        """Of some items alone: a weight per item for these, the same weights of features."""
        if self.free:
            return Design.of_items(tuple(self.names[i] for i in items))
        return Design(self.F[items], self.names)
