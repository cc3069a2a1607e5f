"""History: the course of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.arrays import Floats


@dataclass(frozen=True)
class History:
    """One entry per iteration; the first is the start.

    `log_likelihood` has one meaning for every learner: the mean over the training set, without penalties, under the
    model of that iteration. Learners of mixtures maximise a penalised likelihood, and may lower it in a step.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> history = dl.fit_dpp(baskets, "em", init="wishart", rng=0, max_iter=3).history
    >>> len(history), bool(history.log_likelihood[-1] > history.log_likelihood[0])
    (4, True)
    """

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats
    evaluations: Floats  # of the statistics, so far
    validation: Floats  # mean log-likelihood of the validation set; NaN without one

    def __len__(self) -> int:
        return len(self.log_likelihood)

    @property
    def columns(self) -> dict[str, Floats]:
        """All of it by name, as a model file keeps it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
