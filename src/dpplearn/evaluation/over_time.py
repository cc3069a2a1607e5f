"""How a model did from period to period: the means of an evaluation, by when the baskets came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.arrays import Ints
from dpplearn.data.times import periods
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.intervals import Difference, Estimate, difference, estimate
from dpplearn.evaluation.outcomes import LOG_LIKELIHOOD, PERCENTILE_RANK
from dpplearn.evaluation.text import with_interval
from dpplearn.tools.tables import WIDTH, TextTable, as_plain_text
from dpplearn.tools.words import count, number, signed

if TYPE_CHECKING:
    from dpplearn.evaluation.result import Evaluation


@dataclass(frozen=True)
class Period:
    """The means over the baskets of one period, with 95 % intervals.

    Examples
    --------
    >>> lead, mean = Difference(0.5, 0.4, 0.6), Estimate(-2.0, -2.1, -1.9)
    >>> Period("2026-01", 10, 10.0, mean, lead, Estimate(80.0, 70.0, 90.0)).gain.verdict
    'better'
    """

    period: str
    n_baskets: int
    weight: float
    log_likelihood: Estimate
    gain: Difference  # of the log-likelihood over independent items
    percentile_rank: Estimate  # of an item held out; NaN where no basket has two


@dataclass(frozen=True, repr=False)
class OverTime:
    """One `Period` after another. Printed, it is a table.

    Examples
    --------
    >>> lead, mean = Difference(0.5, 0.4, 0.6), Estimate(-2.0, -2.1, -1.9)
    >>> print(OverTime("model", "month", (Period("2026-01", 10, 10.0, mean, lead, Estimate(80.0, 70.0, 90.0)),)))
    model by month
    Means per basket with 95% intervals. nats: the log-likelihood; lead: how far
    that is above independent items. A lead that shrinks says that people have
    changed.
      month    baskets     nats                  lead    percentile rank
      2026-01       10  -2.0000  +0.50 [+0.40, +0.60]  80.0 [70.0, 90.0]
    There is a single month, and nothing to compare it with.
    """

    model: str
    by: str
    rows: tuple[Period, ...]

    def __iter__(self) -> Iterator[Period]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> TextTable:
        """All periods, as words."""
        return TextTable(
            f"{self.model} by {self.by}",
            "Means per basket with 95% intervals. nats: the log-likelihood; lead: how far that is above independent "
            "items. A lead that shrinks says that people have changed.",
            [self.by, "baskets>", "nats>", "lead>", "percentile rank>"],
            [
                (
                    each.period,
                    count(each.n_baskets),
                    number(each.log_likelihood.value),
                    with_interval(each.gain, 2, sign=True),
                    with_interval(each.percentile_rank, 1),
                )
                for each in self.rows
            ],
        )

    @property
    def in_words(self) -> str:
        """Whether the model keeps its lead over independent items."""
        if len(self.rows) < 2:
            return f"There is a single {self.by}, and nothing to compare it with."
        first, last = self.rows[0], self.rows[-1]
        change = (
            f"from {signed(first.gain.value, 3)} in {first.period} to {signed(last.gain.value, 3)} in {last.period}"
        )
        if last.gain.high < first.gain.low:
            return f"The lead over independent items has shrunk, {change}: the model ages, and an update may pay."
        if last.gain.low > first.gain.high:
            return f"The lead over independent items has grown, {change}."
        return f"The lead over independent items went {change}, which chance can explain."

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON.

        Returns
        -------
        dict
            With one entry per period in "rows".

        Examples
        --------
        >>> OverTime("model", "month", ()).to_dict()
        {'model': 'model', 'by': 'month', 'rows': []}
        """
        return {"model": self.model, "by": self.by, "rows": [asdict(each) for each in self.rows]}

    def __repr__(self) -> str:
        return "\n".join([*as_plain_text(self.table), fill(self.in_words, WIDTH)])


def over_time(found: Evaluation, by: str, name: str) -> OverTime:
    """Of one model of an evaluation."""
    names, which = periods(found.times, by)
    rows = [np.flatnonzero(which == number) for number in range(len(names))]
    there = [(each, of) for each, of in zip(names, rows, strict=True) if found.weights[of].sum() > 0]
    return OverTime(name, by, tuple(_period(found, each, name, of) for each, of in there))


def _period(found: Evaluation, period: str, name: str, rows: Ints) -> Period:
    weights = found.weights[rows]
    ours, independent = (found.outcomes[each][LOG_LIKELIHOOD][rows] for each in (name, INDEPENDENT))
    n_baskets = len(rows) if found.rows is None else len(np.unique(found.rows[rows]))
    return Period(
        period,
        n_baskets,
        float(weights.sum()),
        estimate(ours, weights),
        difference(ours, independent, weights),
        estimate(found.outcomes[name][PERCENTILE_RANK][rows], weights),
    )
