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
from dpplearn.learners.result import FitResult
from dpplearn.lifecycle.update import draw_sets, recorded_weight
from dpplearn.models.model import SetModel
from dpplearn.utils.text import Part, TextTable, as_text, count, number, share

FALSE_ALARM_RATE = 0.01  # of all comparisons together, by the union bound
ALARMS = ("likelihood", "impossible", "size", "items", "unknown")
LEVEL = FALSE_ALARM_RATE / len(ALARMS)  # significance level of each comparison
LIKELIHOOD_SHIFT = 0.15  # standard deviations of the log-likelihood of a basket
SIZE_SHIFT = 0.1  # of the mean size
ITEM_SHIFT, PICKS_SHIFT = 0.25, 0.02  # of how often an item is picked; and of all picks, for the items that moved
UNKNOWN_SHARE, IMPOSSIBLE_SHARE = 0.05, 0.01  # of the baskets
MIN_BASKETS = 100  # with fewer, only large shifts can be detected
MAX_ROWS_SHOWN = 10
N_DRAWS = 2000  # sets drawn for the expected log-likelihood


@dataclass(frozen=True)
class Shift:
    """The expected and the observed mean, with the p-value of the difference."""

    expected: float
    found: float
    spread: float  # the standard deviation over baskets
    p: float

    @property
    def difference(self) -> float:
        """Observed minus expected."""
        return self.found - self.expected

    @property
    def significant(self) -> bool:
        """Whether the difference is significant."""
        return self.p < LEVEL


@dataclass(frozen=True)
class ItemShift:
    """An item whose frequency changed significantly and by more than a quarter."""

    item: Label
    expected: float  # share of the baskets
    found: float
    p: float  # corrected for all items

    @property
    def ratio(self) -> str:
        """Observed by expected frequency, for a table."""
        return number(self.found / self.expected, 2) if self.expected else "new"


@dataclass(frozen=True)
class Drift:
    """Recent baskets compared with what a model expects. Printed, it begins with the verdict.

    Examples
    --------
    >>> same = Shift(-4.0, -4.1, 2.0, 0.2)
    >>> print(Drift(500, same, Shift(2.0, 2.02, 1.0, 0.7), (), 0.0, LeftOut(), 0.0, 0.0, ()).verdict)
    No drift: 500 baskets are consistent with the model.
    """

    n_baskets: int
    likelihood: Shift
    size: Shift
    moved: tuple[ItemShift, ...]  # the largest shifts first
    moved_picks: float  # sum of their changes, relative to the expected number of items of a basket
    left_out: LeftOut
    unknown: float  # share of the baskets with items that the model does not have
    impossible: float  # share of the baskets that have probability zero under the model
    alarms: tuple[str, ...]  # which of the comparisons found drift

    @property
    def drifted(self) -> bool:
        """Whether any comparison found drift."""
        return bool(self.alarms)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if not self.drifted:
            verb = "is" if self.n_baskets == 1 else "are"
            return f"No drift: {count(self.n_baskets, 'basket')} {verb} consistent with the model."
        likely = "less likely" if self.likelihood.difference < 0 else "more likely"
        words = {
            "likelihood": f"baskets are {likely} than expected",
            "impossible": f"{share(self.impossible, 1)} of the baskets are impossible under the model",
            "size": f"baskets are {'smaller' if self.size.difference < 0 else 'larger'}",
            "items": f"{count(len(self.moved), 'item')} moved",
            "unknown": f"{share(self.unknown)} of the baskets contain unknown items",
        }
        return f"Drift: {'; '.join(words[each] for each in self.alarms)}. Update the model (dpplearn update)."

    def tables(self) -> Iterator[Part]:
        """Yield the verdict, the comparisons and the items that changed most."""
        yield self.verdict
        likelihood, size = self.likelihood, self.size
        found = {
            "likelihood": ("log-likelihood", number(likelihood.expected, 3), number(likelihood.found, 3)),
            "impossible": ("impossible baskets", f"up to {share(IMPOSSIBLE_SHARE)}", share(self.impossible, 1)),
            "size": ("items", number(size.expected, 2), number(size.found, 2)),
            "items": ("changes of items", f"below {share(PICKS_SHIFT)}", share(self.moved_picks, 1)),
            "unknown": ("with unknown items", f"up to {share(UNKNOWN_SHARE)}", share(self.unknown, 1)),
        }
        rows = [(*row, "drift" if name in self.alarms else "") for name, row in found.items()]
        meaning = (
            "Means per basket; shares of the baskets; and the sum of the significant changes of items, relative to the "
            "expected number of items of a basket."
        )
        yield TextTable("Comparisons", meaning, ["of a basket", "expected>", "observed>", ""], rows)
        moved = [
            (str(each.item), share(each.expected, 1), share(each.found, 1), each.ratio)
            for each in self.moved[:MAX_ROWS_SHOWN]
        ]
        meaning = "Expected and observed share of the baskets that contain the item."
        if moved:
            yield TextTable("Largest changes of items", meaning, ["item", "expected>", "observed>", "ratio>"], moved)
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
        >>> same = Shift(-4.0, -4.1, 2.0, 0.2)
        >>> Drift(500, same, same, (), 0.0, LeftOut(), 0.0, 0.0, ()).to_dict()["drifted"]
        False
        """
        return {
            "verdict": self.verdict,
            "drifted": self.drifted,
            "alarms": list(self.alarms),
            "n_baskets": self.n_baskets,
            "log_likelihood": asdict(self.likelihood),
            "size": asdict(self.size),
            "moved": [asdict(each) for each in self.moved],
            "moved_picks": self.moved_picks,
            "unknown": {"share": self.unknown, **self.left_out.to_dict()},
            "impossible": self.impossible,
        }

    def __str__(self) -> str:
        return as_text(self.tables())


def check(model: SetModel | FitResult[Any], baskets: Baskets | Iterable[Iterable[Any]], rng: Seed = 0) -> Drift:
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
    Drift: baskets are larger; 1 item moved. Update the model (dpplearn update).
    """
    model = model.model if isinstance(model, FitResult) else model
    if not isinstance(model, SetModel):
        raise InputError(f"got a {type(model).__name__} as the model; expected a DPP, a Mixture or the result of a fit")
    given = as_baskets(baskets)
    recent, left_out = known_baskets(given, model.catalogue, "drop")
    if not recent.total_weight > 0:
        raise InputError(f"none of the {len(given)} baskets has positive weight and an item of the model")
    weight = recorded_weight(model)
    learned_from = math.inf if weight is None else weight  # without a record, as if the model were exact
    likelihood, impossible = _likelihood(model, recent, learned_from, rng)
    size = _size(model, recent, learned_from)
    moved, picks = _items(model, recent, learned_from)
    unknown = _unknown_share(model, given)
    raised = (  # one for each of ALARMS, which the level of each test depends on
        likelihood.significant and abs(likelihood.difference) >= LIKELIHOOD_SHIFT * likelihood.spread,
        _above(impossible, IMPOSSIBLE_SHARE, recent.totals.effective_number),
        size.significant and abs(size.difference) >= SIZE_SHIFT * size.expected,
        picks >= PICKS_SHIFT,
        _above(unknown, UNKNOWN_SHARE, given.totals.effective_number),
    )
    return Drift(
        recent.n_units,
        likelihood,
        size,
        moved,
        picks,
        left_out,
        unknown,
        impossible,
        tuple(name for name, alarm in zip(ALARMS, raised, strict=True) if alarm),
    )


def _unknown_share(model: SetModel, given: Baskets) -> float:
    """Return the share of the baskets that contain an unknown item."""
    unknown = model.catalogue.translation(given.catalogue) < 0
    rows = np.repeat(np.arange(len(given)), given.sizes)[unknown[given.indices]]
    return float(given.weights[np.unique(rows)].sum() / given.total_weight)


def _likelihood(model: SetModel, recent: Baskets, learned_from: float, rng: Seed) -> tuple[Shift, float]:
    """Return the shift for possible baskets, and the share of impossible ones."""
    own = model.log_prob(draw_sets(model, N_DRAWS, rng))
    theirs, weights = model.log_prob(recent), recent.weights
    possible = np.isfinite(theirs)
    impossible = 1 - float(weights[possible].sum() / weights.sum())
    if not possible.any():
        return Shift(float(own.mean()), math.nan, float(own.std()), math.nan), impossible
    mean, spread = _moments(theirs[possible], weights[possible])
    spread = max(spread, float(own.std()))
    error = spread * math.sqrt(1 / recent.totals.effective_number + 1 / learned_from + 1 / N_DRAWS)
    return _shift(float(own.mean()), mean, spread, error), impossible


def _size(model: SetModel, recent: Baskets, learned_from: float) -> Shift:
    known = model.training
    expected = model.expected_size if known is None else float(known.frequencies.sum())
    mean, spread = _moments(recent.sizes.astype(float), recent.weights)
    spread = max(spread, _spread_of_sizes(model))
    error = spread * math.sqrt(1 / recent.totals.effective_number + 1 / learned_from)
    return _shift(expected, mean, spread, error)


def _spread_of_sizes(model: SetModel) -> float:
    probabilities = model.size_distribution
    sizes = np.arange(len(probabilities))
    return math.sqrt(max(float(probabilities @ sizes**2 - (probabilities @ sizes) ** 2), 0.0))


def _items(model: SetModel, recent: Baskets, learned_from: float) -> tuple[tuple[ItemShift, ...], float]:
    """Return the items that changed, and the sum of their changes relative to the expected size of a basket."""
    expected = model.marginals() if model.training is None else model.training.frequencies
    found = recent.frequencies()
    p = _count_p_values(found, recent.totals.effective_number, expected, learned_from)
    p = np.minimum(len(p) * p, 1)  # Bonferroni
    enough = (found >= (1 + ITEM_SHIFT) * expected) | (found <= expected / (1 + ITEM_SHIFT))
    shift = np.abs(found - expected)
    places = np.flatnonzero((p < LEVEL) & enough)
    places = places[np.argsort(-shift[places], kind="stable")]
    moved = tuple(
        ItemShift(model.items[place], float(expected[place]), float(found[place]), float(p[place])) for place in places
    )
    return moved, float(shift[places].sum() / expected.sum())


def _count_p_values(found: Floats, n: float, expected: Floats, learned_from: float) -> Floats:
    """Return p-values of a conditional binomial test: given the count of an item in both samples together, the recent
    count is binomial. Valid for rare items, where a normal approximation is not; conservative for frequent ones."""
    from scipy.special import bdtr, bdtrc

    recent = np.round(found * n)
    if math.isinf(learned_from):
        of, coin = np.full(len(found), round(n)), expected
    else:
        of, coin = recent + np.round(expected * learned_from), np.full(len(found), n / (n + learned_from))
    at_most = bdtr(recent, of.astype(int), coin)
    at_least = np.where(recent > 0, bdtrc(np.maximum(recent - 1, 0), of.astype(int), coin), 1.0)
    return np.where(of > 0, np.minimum(2 * np.minimum(at_most, at_least), 1), 1.0)


def _above(found: float, allowed: float, n: float) -> bool:
    """Return whether a share of n baskets is significantly above a limit (binomial test)."""
    from scipy.special import bdtrc

    k = round(found * n)
    return bool(k > 0 and bdtrc(k - 1, round(n), allowed) < LEVEL)


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    mean = float(np.average(values, weights=weights))
    return mean, math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))


def _shift(expected: float, found: float, spread: float, error: float) -> Shift:
    z = abs(found - expected) / error if error > 0 else math.inf if found != expected else 0.0
    return Shift(expected, found, spread, math.erfc(z / math.sqrt(2)))
