"""check: test whether recent baskets still follow a model.

A difference counts as drift if it is statistically significant, including the sampling error of the training data, and
large enough to matter: with many baskets, negligible differences are significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets, as_baskets, known_baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.unknown import LeftOut
from dpplearn.errors import InputError
from dpplearn.learners.fit import Model
from dpplearn.learners.result import FitResult
from dpplearn.lifecycle.update import draw_sets, fitted_model, recorded_weight
from dpplearn.utils.text import Part, Result, TextTable, count, listed, number, share

COMPARISONS = {
    "likelihood": "log-likelihood",
    "impossible": "share of impossible baskets",
    "size": "items per basket",
    "items": "share of changed items",
    "unknown": "share of baskets with unknown items",
}
FALSE_ALARM_RATE = 0.01  # of all comparisons together, by the union bound
LEVEL = FALSE_ALARM_RATE / len(COMPARISONS)  # significance level of each comparison
LIKELIHOOD_SHIFT = 0.15  # standard deviations of the log-likelihood of a basket
SIZE_SHIFT = 0.1  # of the mean size
ITEM_SHIFT, PICKS_SHIFT = 0.25, 0.02  # of how often an item is picked; and of all picks, for the items that moved
UNKNOWN_SHARE, IMPOSSIBLE_SHARE = 0.05, 0.01  # of the baskets
MIN_BASKETS = 100  # with fewer, only large shifts can be detected
MAX_ROWS_SHOWN = 10
N_DRAWS = 2000  # sets drawn for the expected log-likelihood


@dataclass(frozen=True)
class Comparison:
    """An expected and an observed value. Of shares the expected value is a limit."""

    expected: float
    found: float
    p: float  # of the difference, or of a share above the limit
    drifted: bool  # whether the difference is significant and large enough to matter


@dataclass(frozen=True)
class ItemShift:
    """An item whose frequency changed significantly and by more than a quarter."""

    item: Label
    expected: float  # share of the baskets
    found: float
    p: float  # corrected for all items


@dataclass(frozen=True)
class Drift(Result):
    """Recent baskets compared with what a model expects. Printed, it begins with the verdict.

    Examples
    --------
    >>> same = Comparison(-4.0, -4.1, 0.2, False)
    >>> print(Drift(500, same, same, same, same, same, (), LeftOut()).verdict)
    No drift in 500 baskets.
    """

    n_baskets: int
    likelihood: Comparison
    impossible: Comparison  # share of the baskets that have probability zero under the model
    size: Comparison
    items: Comparison  # sum of the changes of `moved`, relative to the expected number of items of a basket
    unknown: Comparison  # share of the baskets with items that the model does not have
    moved: tuple[ItemShift, ...]  # the largest shifts first
    left_out: LeftOut

    @property
    def alarms(self) -> tuple[str, ...]:
        """The comparisons that found drift."""
        return tuple(name for name in COMPARISONS if getattr(self, name).drifted)

    @property
    def drifted(self) -> bool:
        """Whether any comparison found drift."""
        return bool(self.alarms)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if not self.drifted:
            return f"No drift in {count(self.n_baskets, 'basket')}."
        return f"Drift: {listed([COMPARISONS[name] for name in self.alarms])}. Update the model (dpplearn update)."

    def tables(self) -> Iterator[Part]:
        """Yield the verdict, the comparisons and the items that changed most."""
        yield self.verdict
        found = [(label, getattr(self, name)) for name, label in COMPARISONS.items()]
        rows = [(label, number(x.expected, 3), number(x.found, 3), "drift" if x.drifted else "") for label, x in found]
        meaning = "Means per basket, and shares of the baskets or of all items in them; expected shares are limits."
        yield TextTable("Comparisons", meaning, ["", "expected>", "observed>", ""], rows)
        moved = [(str(each.item), share(each.expected, 1), share(each.found, 1)) for each in self.moved]
        if moved:
            meaning = "Expected and observed share of the baskets that contain the item."
            columns = ["item", "expected>", "observed>"]
            yield TextTable("Largest changes of items", meaning, columns, moved[:MAX_ROWS_SHOWN])
        yield f"Unknown items: {self.left_out}." if self.left_out else ""
        if self.n_baskets < MIN_BASKETS:
            yield f"With {count(self.n_baskets, 'basket')}, only large shifts can be detected."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON.

        Returns
        -------
        dict

        Examples
        --------
        >>> same = Comparison(-4.0, -4.1, 0.2, False)
        >>> Drift(500, same, same, same, same, same, (), LeftOut()).to_dict()["drifted"]
        False
        """
        values = {**asdict(self), "left_out": self.left_out.to_dict()}
        return {"verdict": self.verdict, "drifted": self.drifted, "alarms": list(self.alarms), **values}


def check(model: Model | FitResult[Any], baskets: Baskets | Iterable[Iterable[Any]], rng: Seed = 0) -> Drift:
    """Test whether recent baskets still follow a model: their likelihood, sizes and items.

    The expected log-likelihood is that of sets drawn from the model. The expected item frequencies and sizes are those
    of its training data, or of the model if it has no training record. See docs/guide/updating.md for the rules, their
    rate of false alarms and their power.

    Parameters
    ----------
    model
        A DPP, a Mixture or the result of a fit.
    baskets
        Recent baskets, not the training baskets: `Baskets` or a list of lists. Unknown items are dropped and counted.
    rng
        Seed or generator of the drawn sets.

    Returns
    -------
    Drift
        The verdict and all comparisons.

    Examples
    --------
    >>> import dpplearn as dl
    >>> model = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 50, shrinkage=0.1).model
    >>> check(model, [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 20).drifted
    False
    >>> print(check(model, [["cot", "bib"], ["crib", "bib"]] * 40).verdict)
    Drift: items per basket and share of changed items. Update the model (dpplearn update).
    """
    model, given = fitted_model(model), as_baskets(baskets)
    recent, left_out = known_baskets(given, model.catalogue, "drop")
    if not recent.total_weight > 0:
        raise InputError(f"none of the {len(given)} baskets has positive weight and an item of the model")
    learned_from = recorded_weight(model) or math.inf  # without a record, as if the model were exact
    drawn = draw_sets(model, N_DRAWS, rng)
    own, theirs = model.log_prob(drawn), model.log_prob(recent)
    possible = np.isfinite(theirs)
    likelihood = Comparison(float(own.mean()), math.nan, math.nan, False)
    if possible.any():
        samples, shown = (learned_from, N_DRAWS), recent.subset(possible)
        likelihood = _mean(own, float(own.mean()), theirs[possible], shown, samples, spreads=LIKELIHOOD_SHIFT)
    impossible = 1 - float(recent.weights[possible].sum() / recent.total_weight)
    size = model.expected_size if model.training is None else float(model.training.frequencies.sum())
    unknown = model.catalogue.translation(given.catalogue) < 0
    rows = np.repeat(np.arange(len(given)), given.sizes)[unknown[given.indices]]  # of the unknown items
    items, moved = _items(model, recent, learned_from)
    return Drift(
        recent.n_units,
        likelihood,
        _limited(impossible, IMPOSSIBLE_SHARE, recent),
        _mean(drawn.sizes, size, recent.sizes, recent, (learned_from,), least=SIZE_SHIFT * size),
        items,
        _limited(float(given.weights[np.unique(rows)].sum() / given.total_weight), UNKNOWN_SHARE, given),
        moved,
        left_out,
    )


def _mean(
    own: Any,
    expected: float,
    values: Any,
    recent: Baskets,
    samples: tuple[float, ...],
    least: float = 0.0,
    spreads: float = 0.0,
) -> Comparison:
    """Return the comparison of a weighted mean; `samples` are the sizes of the samples that the expected one is from.

    A difference matters from `least` and from so many standard deviations over baskets: those of sets drawn from the
    model, or of the recent ones where these vary more.
    """
    found = float(np.average(values, weights=recent.weights))
    spread = max(float(own.std()), math.sqrt(float(np.average((values - found) ** 2, weights=recent.weights))))
    error = spread * math.sqrt(sum(1 / n for n in (recent.totals.effective_number, *samples)))
    apart = abs(found - expected)
    p = math.erfc(apart / error / math.sqrt(2)) if error > 0 else float(apart == 0)
    return Comparison(expected, found, p, p < LEVEL and apart >= max(least, spreads * spread))


def _limited(found: float, limit: float, baskets: Baskets) -> Comparison:
    """Return whether a share of the baskets is significantly above a limit (binomial test)."""
    from scipy.special import bdtrc

    n = baskets.totals.effective_number
    p = float(bdtrc(round(found * n) - 1, round(n), limit))
    return Comparison(limit, found, p, p < LEVEL)


def _items(model: Model, recent: Baskets, learned_from: float) -> tuple[Comparison, tuple[ItemShift, ...]]:
    """Return the comparison of the sum of changes, and the items that changed."""
    expected = model.marginals() if model.training is None else model.training.frequencies
    found = recent.frequencies()
    p = _count_p_values(found, recent.totals.effective_number, expected, learned_from)
    p = np.minimum(len(p) * p, 1)  # Bonferroni
    enough = (found >= (1 + ITEM_SHIFT) * expected) | (found <= expected / (1 + ITEM_SHIFT))
    shift = np.abs(found - expected)
    places = np.flatnonzero((p < LEVEL) & enough)
    places = places[np.argsort(-shift[places], kind="stable")]
    columns = (model.catalogue.select(places), *(each[places].tolist() for each in (expected, found, p)))
    moved = tuple(ItemShift(*row) for row in zip(*columns, strict=True))
    changed = float(shift[places].sum() / expected.sum())
    return Comparison(PICKS_SHIFT, changed, float(p.min()), changed >= PICKS_SHIFT), moved


def _count_p_values(found: Floats, n: float, expected: Floats, learned_from: float) -> Floats:
    """Return p-values of a conditional binomial test: given the count of an item in both samples together, the recent
    count is binomial. Valid for rare items, where a normal approximation is not; conservative for frequent ones."""
    from scipy.special import bdtr, bdtrc

    recent = np.round(found * n)
    if math.isinf(learned_from):
        both, coin = np.full(len(found), round(n)), expected
    else:
        both, coin = recent + np.round(expected * learned_from), np.full(len(found), n / (n + learned_from))
    tails = bdtr(recent, both.astype(int), coin), bdtrc(recent - 1, both.astype(int), coin)
    return np.asarray(np.minimum(2 * np.minimum(*tails), 1))
