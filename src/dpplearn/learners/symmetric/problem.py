"""SymmetricProblem: fitting a symmetric DPP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpplearn.distributions.independent import independent
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import INITIALISERS, adapted
from dpplearn.models.dpp import DPP


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    """The baskets and their distribution. Learners start from, and arrive at, a `SpectralDPP`."""

    model_type: ClassVar[Any] = DPP

    def baseline(self) -> SpectralDPP:
        """Return independent items with the frequencies of the baskets.

        Probabilities are at most 1 − 1e-5, as in all starts: that costs 1e-5 nats, and no set is impossible because it
        lacks an item.
        """
        kernel = independent(self.baskets, nonempty=self.nonempty)
        return SpectralDPP(np.minimum(kernel.eigenvalues, 1 - BORDER), kernel.eigenvectors)

    def initial(self, name: str, rng: np.random.Generator) -> SpectralDPP:
        return INITIALISERS[name](self.baskets, rng)

    def adapted(self, model: DPP, rng: np.random.Generator) -> SpectralDPP:
        return adapted(model.kernel, model.catalogue, self.baskets, rng)
