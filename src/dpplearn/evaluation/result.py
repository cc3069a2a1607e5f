"""What an evaluation tells: of every model and baseline, and of the differences between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.data.times import Times
from dpplearn.errors import InputError
from dpplearn.evaluation.by_basket import by_basket
from dpplearn.evaluation.calibration import Reliability
from dpplearn.evaluation.intervals import Difference, Estimate, difference, estimate
from dpplearn.evaluation.metrics import weighted_mean
from dpplearn.evaluation.outcomes import LOG_LIKELIHOOD
from dpplearn.evaluation.over_time import OverTime, over_time


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How models and baselines did on the same baskets.

    `outcomes[name][measure]` has one value per basket, NaN where there is none: "log_likelihood", "percentile_rank",
    "recall@k", "ndcg@k" and "auc". `reliability[name]` tells whether the probabilities of other items, given one, come
    true, and `size_distance[name]` how far the predicted sizes of baskets are from theirs, from 0 to 1 (total
    variation), of all that have such. Printed, it is a table; docs/guide/evaluation.md has the formulas.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> found = dl.evaluate(dpp, [["cot"], ["crib"]] * 10)
    >>> found.names, found.n_baskets
    (('model', 'independent items', 'popularity'), 20)
    """

    models: tuple[str, ...]
    baselines: tuple[str, ...]
    outcomes: Mapping[str, Mapping[str, Floats]]
    weights: Floats  # of the baskets
    n_items: int
    k: tuple[int, ...]
    nonempty: bool
    reliability: Mapping[str, Reliability]
    size_distance: Mapping[str, float]
    n_ranked: int
    unranked: Mapping[str, int]  # of those, how many left a partial basket that is impossible, so that all items tied
    notes: tuple[str, ...] = ()
    folds: Ints | None = None  # which fold a basket was tested in; None without cross-validation
    rows: Ints | None = None  # which basket that was, again and again where its count is spread over folds; likewise
    ids: npt.NDArray[Any] | None = None  # what each basket is called
    times: Times | None = None  # when each came about

    @property
    def names(self) -> tuple[str, ...]:
        """The models, then the baselines."""
        return self.models + self.baselines

    def measures(self, name: str) -> tuple[str, ...]:
        """What was measured of a model or baseline.

        Parameters
        ----------
        name
            One of `names`.

        Returns
        -------
        tuple of str
            Baselines without probabilities have no "log_likelihood".

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> found = dl.evaluate(dpp, [["cot"], ["crib"]] * 10)
        >>> "log_likelihood" in found.measures("model"), "log_likelihood" in found.measures("popularity")
        (True, False)
        """
        return tuple(self._columns(name))

    def estimate(self, name: str, measure: str = LOG_LIKELIHOOD) -> Estimate:
        """The mean over the baskets, with its interval.

        Parameters
        ----------
        name
            One of `names`.
        measure
            One of its `measures`.

        Returns
        -------
        Estimate
            With a normal 95 % confidence interval.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> found = dl.evaluate(dpp, [["cot"], ["crib"]] * 10)
        >>> round(found.estimate("model").value, 3)  # either has probability 0.41
        -0.892
        """
        return estimate(self._column(name, measure), self.weights)

    def difference(self, name: str, other: str, measure: str = LOG_LIKELIHOOD) -> Difference:
        """The mean of one less that of another.

        Parameters
        ----------
        name, other
            Two of `names`.
        measure
            What both have.

        Returns
        -------
        Difference
            With a 95 % confidence interval from the paired differences.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> found = dl.evaluate(dpp, [["cot"], ["crib"]] * 10)
        >>> found.difference("model", "independent items").verdict
        'better'
        """
        return difference(self._column(name, measure), self._column(other, measure), self.weights)

    def fold_means(self, name: str, measure: str = LOG_LIKELIHOOD) -> Floats:
        """The mean over the baskets of each fold, after `cross_validate`.

        Parameters
        ----------
        name
            One of `names`.
        measure
            One of its `measures`.

        Returns
        -------
        array of float
            One per fold.

        Examples
        --------
        >>> import dpplearn as dl
        >>> found = dl.cross_validate([["cot"], ["crib"]] * 10, folds=2, learner="em", max_iter=3)
        >>> len(found.fold_means("model"))
        2
        """
        if self.folds is None:
            raise InputError("there are no folds: this evaluation does not come from cross_validate")
        column = self._column(name, measure)
        folds = range(int(self.folds.max()) + 1)
        return np.array([weighted_mean(column[self.folds == fold], self.weights[self.folds == fold]) for fold in folds])

    def over_time(self, by: str = "month", name: str | None = None) -> OverTime:
        """How a model did from period to period, by the times of the baskets.

        Parameters
        ----------
        by
            "day", "week", "month", "quarter" or "year".
        name
            One of `models`, by default the first.

        Returns
        -------
        OverTime
            One row per period in which there are baskets. Printed, it is a table.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> baskets = dl.Baskets.from_lists([["cot"], ["crib"]] * 10, times=["2026-01-31", "2026-02-01"] * 10)
        >>> [(row.period, row.n_baskets) for row in dl.evaluate(dpp, baskets).over_time("month")]
        [('2026-01', 10), ('2026-02', 10)]
        """
        name = self.models[0] if name is None else name
        self._column(name, LOG_LIKELIHOOD)  # what ranks alone has no likelihood
        return over_time(self, by, name)

    def to_table(self) -> dict[str, npt.NDArray[Any]]:
        """One row per basket and model: what the basket is called, and how the model did on it.

        Returns
        -------
        dict of arrays
            The columns basket (its id or number), weight, time if there is one, model, and the measures.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> baskets = dl.Baskets.from_lists([["cot"], ["crib", "cot"]], ids=["a7", "b2"])
        >>> dl.evaluate(dpp, baskets).to_table()["basket"].tolist()
        ['a7', 'b2']
        """
        return by_basket(self)

    def impossible(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which baskets of positive weight have probability zero.

        Parameters
        ----------
        name
            One of `names`.

        Returns
        -------
        array of bool
            One per basket.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.5], [0.5, 0.5]], ["cot", "crib"])  # never both
        >>> dl.evaluate(dpp, [["cot"], ["cot", "crib"]]).impossible("model").tolist()
        [False, True]
        """
        column = self._columns(name).get(LOG_LIKELIHOOD, np.zeros(len(self.weights)))
        return np.isneginf(column) & (self.weights > 0)

    def _columns(self, name: str) -> Mapping[str, Floats]:
        if name not in self.outcomes:
            raise InputError(f"{name!r} was not evaluated; there are {', '.join(map(repr, self.names))}")
        return self.outcomes[name]

    def _column(self, name: str, measure: str) -> Floats:
        columns = self._columns(name)
        if measure not in columns:
            raise InputError(f"{name!r} has no {measure!r}; it has {', '.join(columns)}")
        return columns[measure]

    @property
    def n_baskets(self) -> int:
        """How many baskets there are; one whose count is spread over folds is one."""
        return len(self.weights) if self.rows is None else len(np.unique(self.rows))

    @property
    def weight(self) -> float:
        """The total weight of the baskets."""
        return float(self.weights.sum())

    def mean_of_possible(self, name: str) -> float:
        """The mean log-likelihood of the baskets that are not impossible.

        Parameters
        ----------
        name
            One of `names`.

        Returns
        -------
        float
            NaN for what has no log-likelihood.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.5], [0.5, 0.5]], ["cot", "crib"])  # one of them, never both
        >>> round(dl.evaluate(dpp, [["cot"], ["cot", "crib"]]).mean_of_possible("model"), 3)
        -0.693
        """
        column = self._columns(name).get(LOG_LIKELIHOOD)
        return np.nan if column is None else weighted_mean(column, np.where(self.impossible(name), 0, self.weights))

    @property
    def compared(self) -> tuple[tuple[str, str, str], ...]:
        """A model, what it is compared with, and a measure: the first model and every baseline, in all both have."""
        return tuple(
            (name, other, measure)
            for name in self.models
            for other in (*(self.models[:1] if name != self.models[0] else ()), *self.baselines)
            for measure in self.measures(name)
            if measure in self.measures(other)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation without the outcomes of single baskets, as data for JSON.

        Returns
        -------
        dict
            "rows" has one entry per model and baseline, "differences" one per comparison and measure.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
        >>> found = dl.evaluate(dpp, [["cot"], ["crib"]] * 10)
        >>> [row["name"] for row in found.to_dict()["rows"]]
        ['model', 'independent items', 'popularity']
        """
        return {
            "n_baskets": self.n_baskets,
            "weight": self.weight,
            "n_items": self.n_items,
            "n_ranked": self.n_ranked,
            "nonempty": self.nonempty,
            "k": list(self.k),
            "rows": [self._row(name) for name in self.names],
            "differences": [
                {"model": name, "against": other, "measure": measure, **asdict(found), "verdict": found.verdict}
                for name, other, measure in self.compared
                for found in [self.difference(name, other, measure)]
            ],
            "notes": list(self.notes),
        }

    def _row(self, name: str) -> dict[str, Any]:
        impossible, reliability = self.impossible(name), self.reliability.get(name)
        in_folds = self.folds is not None and LOG_LIKELIHOOD in self.measures(name)
        return {
            "name": name,
            "baseline": name in self.baselines,
            **{measure: asdict(self.estimate(name, measure)) for measure in self.measures(name)},
            "n_impossible": int(impossible.sum()),
            "weight_impossible": float(self.weights[impossible].sum()),
            "log_likelihood_of_possible": self.mean_of_possible(name),
            "n_unranked": self.unranked[name],
            "calibration": None if reliability is None else asdict(reliability),
            "size_distance": self.size_distance.get(name),
            "folds": self.fold_means(name).tolist() if in_folds else None,
        }

    def __repr__(self) -> str:
        from dpplearn.evaluation.text import as_text

        return as_text(self)
