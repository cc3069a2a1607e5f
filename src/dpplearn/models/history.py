"""How learning went, one entry an iteration."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.arrays import Floats


@dataclass(frozen=True)
class History:
    """One entry an iteration; the first is the start."""

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats
    evaluations: Floats  # of the statistics, so far
    validation: Floats  # the mean log-likelihood of the baskets set aside; NaN where none are

    def __len__(self) -> int:
        return len(self.log_likelihood)

    @property
    def columns(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
