"""Evaluation: the outcomes of models and baselines, their means and differences, and tables of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.times import periods
from dpplearn.data.writing import result_table
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.calibration import Reliability
from dpplearn.evaluation.metrics import (
    LOG_LIKELIHOOD,
    PERCENTILE_RANK,
    Difference,
    Estimate,
    difference,
    estimate,
    ranking_measures,
    weighted_mean,
)
from dpplearn.evaluation.protocol import (
    ALL_BUT_ONE,
    Outcomes,
    Setting,
    can_be_ranked,
    column_name,
    n_calibrated,
    size_distance,
)
from dpplearn.utils.text import MISSING, Part, TextTable, as_text, count, number, signed

MAX_KS_ABREAST = 3  # columns of a table of 80 characters
# The columns of `to_table`: time is optional, and the measures depend on the models, the tasks and k.
COLUMNS = re.compile(r"basket,weight,(time,)?model(,(log_likelihood|(percentile_rank|(recall|ndcg)@\d+)_\w+))+")
SCORE_TABLE = result_table("a table of scores", lambda columns: bool(COLUMNS.fullmatch(",".join(columns))))


@dataclass(frozen=True)
class Period:
    """Means over the baskets of one period, with 95 % intervals."""

    period: str
    n_baskets: int
    weight: float
    log_likelihood: Estimate
    gain: Difference  # of the log-likelihood over independent items
    percentile_rank: Estimate  # all but one; NaN if no basket has two items


@dataclass(frozen=True, repr=False)
class OverTime:
    """A model from period to period.

    Examples
    --------
    >>> mean = Estimate(-2.0, -2.1, -1.9)
    >>> row = Period("2026-01", 10, 10.0, mean, Difference(0.5, 0.4, 0.6), Estimate(80.0, 70.0, 90.0))
    >>> print(OverTime("model", "month", (row,)))
    model by month
    Means per basket ± half of the 95% interval. Gain: log-likelihood minus that of
    independent items. Percentile rank: all but one.
      month    baskets  log-likelihood          gain  percentile rank
      2026-01       10         -2.0000  +0.50 ± 0.10      80.0 ± 10.0
    """

    model: str
    by: str
    rows: tuple[Period, ...]

    def __iter__(self) -> Iterator[Period]:
        return iter(self.rows)

    def tables(self) -> list[TextTable]:
        """Return one table with a row per period."""
        rows = []
        for each in self.rows:
            gain, rank = with_error(each.gain, 2, sign=True), with_error(each.percentile_rank, 1)
            rows.append((each.period, count(each.n_baskets), number(each.log_likelihood.value), gain, rank))
        meaning = (
            "Means per basket ± half of the 95% interval. Gain: log-likelihood minus that of independent items. "
            "Percentile rank: all but one."
        )
        columns = [self.by, "baskets>", "log-likelihood>", "gain>", "percentile rank>"]
        return [TextTable(f"{self.model} by {self.by}", meaning, columns, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return all periods as data for JSON."""
        return {"model": self.model, "by": self.by, "rows": [asdict(each) for each in self.rows]}

    def __repr__(self) -> str:
        return as_text(self.tables())


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Outcomes of models and baselines on the same baskets.

    `outcomes[name]` has one value per basket for "log_likelihood" and for each measure and task, such as
    "percentile_rank_all_but_one" or "recall@10_given_half"; NaN where there is none. `reliability[name][task]` compares
    predicted probabilities with observed frequencies, and `size_distance[name]` is the total variation distance between
    predicted and observed basket sizes; both exist for models and independent items.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> baskets = dl.Baskets.from_lists([["cot"], ["crib"]] * 10, times=["2026-01-31", "2026-02-01"] * 10)
    >>> found = dl.evaluate(dpp, baskets)
    >>> found.names, found.n_baskets
    (('model', 'independent items', 'popularity'), 20)
    >>> round(found.estimate("model").value, 3)  # each has probability 0.41
    -0.892
    >>> found.difference("model", "independent items").verdict
    'better'
    >>> [(row.period, row.n_baskets) for row in found.over_time("month")]
    [('2026-01', 10), ('2026-02', 10)]
    """

    models: tuple[str, ...]
    answers: Mapping[str, Outcomes]  # of the models, then of the baselines
    baskets: Baskets  # that were tested
    setting: Setting
    rows: Ints  # position of each basket in the data, repeated if its count is divided among folds
    notes: tuple[str, ...] = ()
    folds: Ints | None = None  # of each basket, after cross-validation

    @property
    def names(self) -> tuple[str, ...]:
        """The models, then the baselines."""
        return tuple(self.answers)

    @property
    def baselines(self) -> tuple[str, ...]:
        return tuple(name for name in self.answers if name not in self.models)

    @property
    def outcomes(self) -> dict[str, Mapping[str, Floats]]:
        return {name: each.columns for name, each in self.answers.items()}

    @cached_property
    def reliability(self) -> dict[str, dict[str, Reliability]]:
        return {
            name: {task: found.reliability() for task, found in each.calibration.items()}
            for name, each in self.answers.items()
            if each.calibration
        }

    @property
    def size_distance(self) -> dict[str, float]:
        return {name: size_distance(each.sizes) for name, each in self.answers.items() if each.sizes is not None}

    @property
    def weights(self) -> Floats:
        return self.baskets.weights

    @property
    def nonempty(self) -> bool:
        """Whether all likelihoods and sizes are conditional on nonempty baskets."""
        return self.setting.nonempty

    @property
    def n_ranked(self) -> int:
        """Number of baskets for which the ranking tasks were asked."""
        return int(can_be_ranked(self.baskets).sum()) if self.setting.tasks else 0

    def measures(self, name: str) -> tuple[str, ...]:
        """Return the columns of a model or baseline. Baselines without probabilities have no "log_likelihood"."""
        if name not in self.answers:
            raise InputError(f"{name!r} was not evaluated; expected one of {', '.join(map(repr, self.names))}")
        return tuple(self.answers[name].columns)

    def estimate(self, name: str, measure: str = LOG_LIKELIHOOD, task: str = ALL_BUT_ONE) -> Estimate:
        """Return the mean over the baskets, with a normal 95 % confidence interval.

        Parameters
        ----------
        name : str
            One of `names`.
        measure : str, default "log_likelihood"
            "log_likelihood", "percentile_rank", "recall@k" or "ndcg@k".
        task : {"given_one", "given_half", "all_but_one"}, default "all_but_one"
            Ranking task; ignored for the log-likelihood.
        """
        return estimate(self._column(name, measure, task), self.weights)

    def difference(self, name: str, other: str, measure: str = LOG_LIKELIHOOD, task: str = ALL_BUT_ONE) -> Difference:
        """Return the mean of `name` minus that of `other`, with the interval of the paired differences.

        Parameters
        ----------
        name, other : str
            Two of `names`.
        measure, task
            As in `estimate`.
        """
        return difference(self._column(name, measure, task), self._column(other, measure, task), self.weights)

    def fold_means(self, name: str, measure: str = LOG_LIKELIHOOD, task: str = ALL_BUT_ONE) -> Floats:
        """Return the mean over the baskets of each fold, after `cross_validate`."""
        if self.folds is None:
            raise InputError("there are no folds: this evaluation is not from cross_validate")
        column, weights = self._column(name, measure, task), self.weights
        folds = range(int(self.folds.max()) + 1)
        return np.array([weighted_mean(column[self.folds == fold], weights[self.folds == fold]) for fold in folds])

    def over_time(self, by: str = "month", name: str | None = None) -> OverTime:
        """Return the means of a model (by default the first) by "day", "week", "month", "quarter" or "year"."""
        name = self.models[0] if name is None else name
        ours, independent = (self._column(each, LOG_LIKELIHOOD, ALL_BUT_ONE) for each in (name, INDEPENDENT))
        ranks = self._values(name, column_name(PERCENTILE_RANK, ALL_BUT_ONE))
        names, which = periods(self.baskets.times, by)
        found = []
        for place, period in enumerate(names):
            here = np.flatnonzero(which == place)
            weights, n_baskets = self.weights[here], len(np.unique(self.rows[here]))
            gain = difference(ours[here], independent[here], weights)
            means = estimate(ours[here], weights), gain, estimate(ranks[here], weights)
            found.append(Period(period, n_baskets, float(weights.sum()), *means))
        return OverTime(name, by, tuple(found))

    def to_table(self) -> dict[str, npt.NDArray[Any]]:
        """Return one row per basket and model as columns: basket (id or position), weight, time, model, measures.

        A model that lacks a measure has NaN: a blend with item-to-item has no log-likelihood.
        """
        n, models, baskets = len(self.weights), self.models, self.baskets
        columns = {"basket": self.rows if baskets.ids is None else baskets.ids, "weight": self.weights}
        if baskets.times is not None:
            columns["time"] = baskets.times
        table = {name: np.tile(each, len(models)) for name, each in columns.items()}
        table["model"] = np.repeat(np.array(models, dtype=object), n)
        for measure in dict.fromkeys(measure for name in models for measure in self.measures(name)):
            table[measure] = np.concatenate([self._values(name, measure) for name in models])
        return table

    def impossible(self, name: str) -> Bools:
        """Return which baskets of positive weight have probability zero."""
        return np.isneginf(self._values(name, LOG_LIKELIHOOD)) & (self.weights > 0)

    def mean_of_possible(self, name: str) -> float:
        """Return the mean log-likelihood of the baskets of positive probability; NaN without a likelihood."""
        return weighted_mean(self._values(name, LOG_LIKELIHOOD), np.where(self.impossible(name), 0, self.weights))

    def _values(self, name: str, column: str) -> Floats:
        """Return a column; NaN if there is none."""
        return self.answers[name].columns.get(column, np.full(len(self.weights), np.nan))

    def _column(self, name: str, measure: str, task: str) -> Floats:
        measures = self.measures(name)
        found = measure if measure in measures else column_name(measure, task)
        if found not in measures:
            raise InputError(f"{name!r} has no {found!r}; it has {', '.join(measures)}")
        return self.answers[name].columns[found]

    @property
    def n_baskets(self) -> int:
        """Number of baskets; one whose count is divided among folds counts once."""
        return len(np.unique(self.rows))

    @property
    def weight(self) -> float:
        """The total weight of the baskets."""
        return float(self.weights.sum())

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Pairs that are compared: every model with the first model and with every baseline."""
        others = (self.models[0], *self.baselines)
        return tuple((name, other) for name in self.models for other in others if other != name)

    def to_dict(self) -> dict[str, Any]:
        """Return means, differences and calibration as data for JSON, without the outcomes of single baskets."""
        return {
            "n_baskets": self.n_baskets,
            "weight": self.weight,
            "n_items": self.baskets.n_items,
            "n_ranked": self.n_ranked,
            **asdict(self.setting),
            "rows": [self._row(name) for name in self.names],
            "differences": [
                {"model": name, "against": other, "measure": measure, **asdict(found), "verdict": found.verdict}
                for name, other in self.compared
                for measure in self.measures(name)
                if measure in self.measures(other)
                for found in [self.difference(name, other, measure)]
            ],
            "notes": self.remarks(),
        }

    def _row(self, name: str) -> dict[str, Any]:
        in_folds = self.folds is not None and LOG_LIKELIHOOD in self.measures(name)
        return {
            "name": name,
            "baseline": name in self.baselines,
            **{measure: asdict(self.estimate(name, measure)) for measure in self.measures(name)},
            "n_impossible": int(self.impossible(name).sum()),
            "log_likelihood_of_possible": self.mean_of_possible(name),
            "n_unranked": self.answers[name].n_impossible,
            "calibration": {task: asdict(found) for task, found in self.reliability.get(name, {}).items()},
            "size_distance": self.size_distance.get(name),
            "folds": self.fold_means(name).tolist() if in_folds else None,
        }

    def tables(self) -> list[Part]:
        """Return likelihoods, one table per ranking task, differences, calibration, and remarks."""
        ranked = [self._ranking(task) for task in self.setting.tasks if self.n_ranked]
        return [self._likelihoods(), *ranked, self._differences(), self._calibration(), *self.remarks()]

    def remarks(self) -> list[str]:
        """Return the notes, what was not checked, and which models gave probability zero to a basket."""
        baskets, tasks, found = self.baskets, self.setting.tasks, list(self.notes)
        empty = np.count_nonzero(baskets.sizes == 0)
        if tasks and not self.n_ranked:
            found.append("No basket has two or more items, so no item was held out and ranked.")
        checked = n_calibrated(len(baskets), baskets.n_items)
        if tasks and checked < len(baskets):
            found.append(f"Calibration was checked on {checked:,} of these baskets, drawn at random.")
        if self.nonempty:
            found.append("All likelihoods and sizes are conditional on the basket not being empty.")
        if self.nonempty and empty:
            found.append(f"{empty:,} baskets are empty, which the models exclude; leave them out.")
        if not self.nonempty and not empty:
            log_p = float(np.log1p(-np.minimum(baskets.frequencies(), 1 - EPSILON)).sum())
            found.append(
                f"No basket is empty, but independent items give the empty basket probability {np.exp(log_p):.1%}. "
                f"This explains {-np.log1p(-np.exp(log_p)):.3f} nats of a model's gain. Models fitted with "
                "nonempty=True (--nonempty) do not have this advantage."
            )
        for name, each in self.answers.items():
            n, possible = int(self.impossible(name).sum()), number(self.mean_of_possible(name))
            if n:
                zero = f"{name}: {count(n, 'basket')} of probability zero"
                found.append(f"{zero}; the mean log-likelihood of the others is {possible}.")
            if each.n_impossible:
                questions = count(each.n_impossible, "question")
                found.append(f"{name}: {questions} with an impossible partial basket; all candidates are tied there.")
        return found

    def __repr__(self) -> str:
        return as_text(self.tables())

    def _likelihoods(self) -> TextTable:
        names = [name for name in self.names if LOG_LIKELIHOOD in self.measures(name)]
        rows = [(name, with_error(self.estimate(name), 4), self._gap(name, INDEPENDENT, 4)) for name in names]
        title = f"{count(self.n_baskets, 'held-out basket')}, {count(self.baskets.n_items, 'item')}"
        meaning = "Mean log-likelihood per basket in nats, and gain over independent items, ± half of the 95% interval."
        return TextTable(title, meaning, ["", "log-likelihood>", "gain>"], rows)

    def _ranking(self, task: str) -> TextTable:
        ks, rows = self.setting.k[:MAX_KS_ABREAST], []
        for name in self.names:
            if name != INDEPENDENT:  # ranks as popularity does
                rank, *others = (self.estimate(name, measure, task) for measure in ranking_measures(ks))
                rows.append((name, with_error(rank, 1), *(number(each.value, 3) for each in others)))
        heads = [f"{name if k == ks[0] else ''}@{k}>" for name in ("recall", "NDCG") for k in ks]
        title = f"Ranking of held-out items, {_words(task)} ({count(self.n_ranked, 'basket')})"
        return TextTable(title, "", ["", "perc. rank>", *heads], rows)

    def _gap(self, name: str, other: str, digits: int, measure: str = LOG_LIKELIHOOD) -> str:
        """Format a difference, if both have the measure."""
        there = column_name(measure, ALL_BUT_ONE) in {*self.measures(name)} & {*self.measures(other)}
        shown = there and name != other
        return with_error(self.difference(name, other, measure), digits, sign=True) if shown else MISSING

    def _differences(self) -> TextTable:
        rows = []
        for name, other in self.compared:
            ranks = MISSING if other == INDEPENDENT else self._gap(name, other, 1, PERCENTILE_RANK)
            rows.append((f"{name} − {other}", self._gap(name, other, 3), ranks))
        meaning = "Paired differences ± half of the 95% interval; percentile rank: all but one."
        shown = [row for row in rows if row[1:] != (MISSING, MISSING)]
        return TextTable("Differences", meaning, ["", "log-likelihood>", "percentile rank>"], shown)

    def _calibration(self) -> TextTable:
        rows = []
        for name, tasks in self.reliability.items():
            for task, found in tasks.items():
                items = number(found.predicted_items, 2), number(found.observed_items, 2)
                rows.append((name, _words(task), number(found.error, 5), *items))
        distances = ", ".join(f"{name} {number(value, 3)}" for name, value in self.size_distance.items())
        meaning = (
            "Error: mean |observed − predicted| over bins of P(i in basket | given items). Further items: sum of these "
            f"probabilities, and number held out. Total variation distance of basket sizes: {distances}."
        )
        columns = ["", "task", "error>", "further items: predicted>", "observed>"]
        return TextTable("Calibration", meaning, columns, rows)


def with_error(each: Estimate, digits: int, *, sign: bool = False) -> str:
    """Format a mean with half of its interval, if it has one."""
    value, half = (signed if sign else number)(each.value, digits), number(each.high - each.value, digits)
    return value if MISSING in (value, half) else f"{value} ± {half}"


def _words(task: str) -> str:
    return task.replace("_", " ")
