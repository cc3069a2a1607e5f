"""check: recent baskets beside what a model expects."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets, as_baskets, known_baskets
from dpplearn.errors import InputError
from dpplearn.learners.result import FitResult
from dpplearn.models.model import SetModel
from dpplearn.upkeep.drawn_sets import draw_sets
from dpplearn.upkeep.drift import (
    IMPOSSIBLE_SHARE,
    ITEM_SHIFT,
    LEVEL,
    LIKELIHOOD_SHIFT,
    PICKS_SHIFT,
    SIZE_SHIFT,
    UNKNOWN_SHARE,
    Drift,
    ItemShift,
    Shift,
)

DRAWS = 2000  # of the model, for what it expects of log-likelihoods


def check(model: SetModel | FitResult[Any], baskets: Baskets | Iterable[Iterable[Any]], rng: Seed = 0) -> Drift:
    """Whether recent baskets are still what a model expects: how likely they are, their sizes, and their items.

    What is expected of likelihoods is that of sets drawn exactly from the model; of items and sizes, what they were in
    its training data, or under the model where it knows nothing of those. Drift is what is beyond chance and large
    enough to matter; docs/guide/updating.md has the rules, how often they raise a false alarm, and what they see.

    Parameters
    ----------
    model
        A DPP, a Mixture or the result of a fit.
    baskets
        Recent ones, not those that the model was learned from: `Baskets`, or a list of lists. Items that the model does
        not have are left out, and counted.
    rng
        Seed or generator of the sets drawn.

    Returns
    -------
    Drift
        With the verdict. Printed, it is a summary.

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
        raise InputError(f"none of {len(given)} baskets of some weight holds an item of the model; nothing to compare")
    learned_from = _learned_from(model)
    likelihood, impossible = _likelihood(model, recent, learned_from, rng)
    size = _size(model, recent, learned_from)
    moved, picks = _items(model, recent, learned_from)
    unknown = _unknown_share(model, given)
    alarms = {
        "likelihood": not likelihood.by_chance and abs(likelihood.difference) >= LIKELIHOOD_SHIFT * likelihood.spread,
        "impossible": _above(impossible, IMPOSSIBLE_SHARE, recent.totals.effective_number),
        "size": not size.by_chance and abs(size.difference) >= SIZE_SHIFT * size.expected,
        "items": picks >= PICKS_SHIFT,
        "unknown": _above(unknown, UNKNOWN_SHARE, given.totals.effective_number),
    }
    return Drift(
        recent.n_units,
        likelihood,
        size,
        moved,
        picks,
        left_out,
        unknown,
        impossible,
        _sizes_off_by(model, recent),
        tuple(name for name, alarm in alarms.items() if alarm),
    )


def _learned_from(model: SetModel) -> float:
    """How many baskets; infinitely many where nothing is known, as if the model were the truth."""
    known = model.training.weight if model.training is not None else model.learned.weight
    return math.inf if known is None else known


def _unknown_share(model: SetModel, given: Baskets) -> float:
    """Of the baskets, those that hold an item which the model does not have."""
    unknown = model.catalogue.translation(given.catalogue) < 0
    rows = np.repeat(np.arange(len(given)), given.sizes)[unknown[given.indices]]
    return float(given.weights[np.unique(rows)].sum() / given.total_weight)


def _likelihood(model: SetModel, recent: Baskets, learned_from: float, rng: Seed) -> tuple[Shift, float]:
    """Of the baskets that are possible, and the share of the others."""
    own = model.log_prob(draw_sets(model, DRAWS, rng))
    theirs, weights = model.log_prob(recent), recent.weights
    possible = np.isfinite(theirs)
    impossible = 1 - float(weights[possible].sum() / weights.sum())
    if not possible.any():
        return Shift(float(own.mean()), math.nan, float(own.std()), math.nan), impossible
    mean, spread = _moments(theirs[possible], weights[possible])
    spread = max(spread, float(own.std()))
    error = spread * math.sqrt(1 / recent.totals.effective_number + 1 / learned_from + 1 / DRAWS)
    return _shift(float(own.mean()), mean, spread, error), impossible


def _size(model: SetModel, recent: Baskets, learned_from: float) -> Shift:
    known = model.training
    expected = model.expected_size if known is None else float(known.frequencies.sum())
    mean, spread = _moments(recent.sizes.astype(float), recent.weights)
    spread = max(spread, _spread_of_sizes(model))
    error = spread * math.sqrt(1 / recent.totals.effective_number + 1 / learned_from)
    return _shift(expected, mean, spread, error)


def _spread_of_sizes(model: SetModel) -> float:
    law = model.size_distribution
    sizes = np.arange(len(law))
    return math.sqrt(max(float(law @ sizes**2 - (law @ sizes) ** 2), 0.0))


def _sizes_off_by(model: SetModel, recent: Baskets) -> float:
    law = model.size_distribution
    theirs = np.bincount(recent.sizes, recent.weights, len(law)) / recent.total_weight
    return float(np.abs(theirs - law).sum() / 2)


def _items(model: SetModel, recent: Baskets, learned_from: float) -> tuple[tuple[ItemShift, ...], float]:
    """Those that moved, and by how much of all picks."""
    expected = model.marginals() if model.training is None else model.training.frequencies
    found = recent.frequencies()
    p = _holm(_chances(found, recent.totals.effective_number, expected, learned_from))
    enough = (found >= (1 + ITEM_SHIFT) * expected) | (found <= expected / (1 + ITEM_SHIFT))
    shift = np.abs(found - expected)
    places = np.flatnonzero((p < LEVEL) & enough)
    places = places[np.argsort(-shift[places], kind="stable")]
    moved = tuple(
        ItemShift(model.items[place], float(expected[place]), float(found[place]), float(p[place])) for place in places
    )
    return moved, float(shift[places].sum() / expected.sum())


def _chances(found: Floats, n: float, expected: Floats, learned_from: float) -> Floats:
    """How likely chance makes a count as far off: of k in both, each is a recent one by a toss of a coin. It holds for
    rare items, where no normal law does; of frequent ones it is on the safe side."""
    from scipy.special import bdtr, bdtrc

    recent = np.round(found * n)
    if math.isinf(learned_from):
        of, coin = np.full(len(found), round(n)), expected
    else:
        of, coin = recent + np.round(expected * learned_from), np.full(len(found), n / (n + learned_from))
    at_most = bdtr(recent, of.astype(int), coin)
    at_least = np.where(recent > 0, bdtrc(np.maximum(recent - 1, 0), of.astype(int), coin), 1.0)
    return np.where(of > 0, np.minimum(2 * np.minimum(at_most, at_least), 1), 1.0)


def _holm(p: Floats) -> Floats:
    """p-values that hold for all items at once. [Holm79]"""
    order = np.argsort(p)
    held = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    found = np.empty_like(p)
    found[order] = np.minimum(held, 1)
    return found


def _above(found: float, allowed: float, n: float) -> bool:
    """Whether a share of n baskets is above what is allowed, by more than chance."""
    from scipy.special import bdtrc

    k = round(found * n)
    return bool(k > 0 and bdtrc(k - 1, round(n), allowed) < LEVEL)


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    mean = float(np.average(values, weights=weights))
    return mean, math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))


def _shift(expected: float, found: float, spread: float, error: float) -> Shift:
    z = abs(found - expected) / error if error > 0 else math.inf if found != expected else 0.0
    return Shift(expected, found, spread, math.erfc(z / math.sqrt(2)))
