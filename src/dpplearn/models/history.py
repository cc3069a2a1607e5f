"""How learning went, one entry per iteration."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.arrays import Floats


@dataclass(frozen=True)
class History:
    """One entry per iteration; the first is the start.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> history = dl.fit(baskets, "em", "wishart", rng=0, max_iter=3).history
    >>> len(history), bool(history.log_likelihood[-1] > history.log_likelihood[0])
    (4, True)
    """

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats
    evaluations: Floats  # of the statistics, so far
    validation: Floats  # the mean log-likelihood of the baskets set aside; NaN where none are

    def __len__(self) -> int:
        return len(self.log_likelihood)

    @property
    def columns(self) -> dict[str, Floats]:
        """All of it by name, as a model file keeps it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
