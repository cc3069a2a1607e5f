"""Items that no basket has held, added to a model: at the average item's quality, as features say, or like another."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue, Label, labels_from_text
from dpplearn.data.features import read_features
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count, number

RIDGES = 10.0 ** np.arange(-3, 5.5, 0.5)  # of standardised features, in items
SURE = 2.0  # standard errors by which features must beat the average
NEVER, ALWAYS = 1e-9, 1 - 1e-9  # chances beyond which log-odds say nothing
SAME = 1e-20  # the variance of log-odds that are all the same, but for rounding
FEWEST = 10  # items to learn from

Like = Label | Mapping[Any, Label]


@dataclass(frozen=True)
class Predicted:
    """Chances of items from features, and whether these are any better than the average.

    `r2` is the share of the variance of the items' log-odds that is explained, each item held out in turn.
    """

    chances: Floats  # of the new items
    r2: float
    ridge: float
    shown: bool  # whether the gain over the average is beyond chance, so that chances are by the features


@dataclass(frozen=True, eq=False)
class Addition:
    """A distribution over more items, their catalogue, and a sentence on what was added."""

    distribution: SetDistribution
    catalogue: Catalogue
    note: str


def added(
    distribution: SetDistribution, catalogue: Catalogue, labels: Iterable[Label], features: Any, like: Like | None
) -> Addition:
    """Return the distribution and the catalogue with these items at the end."""
    new = _catalogue_like(catalogue, labels)
    known = [label for label in new.labels if label in catalogue]
    if known:
        raise InputError(f"item {known[0]!r} is in the catalogue already; name items that are new")
    if features is not None and like is not None:
        raise InputError("both features and like are given; expected one of them, or neither")
    whole = Catalogue.of([*catalogue.labels, *new.labels])
    if like is not None:
        return _like(distribution, catalogue, new, whole, like)
    chances = untruncated_marginals(distribution)
    usual = float(chances.mean())
    note = f"{count(len(new), 'item')} added, independent of the others, at their average probability"
    p = np.full(len(new), usual)
    if features is not None:
        found = predicted(chances, catalogue, new, features)
        p, note = _by_features(found, new, note)
    return Addition(distribution.extend(np.clip(p, NEVER, ALWAYS)), whole, note)


def _catalogue_like(catalogue: Catalogue, labels: Iterable[Label]) -> Catalogue:
    """The labels as they are, or as integers where all others are and these are written as such."""
    new = Catalogue.of(labels)
    if catalogue.named or not new.named:
        return new
    return Catalogue.of(labels_from_text([str(label) for label in new.labels]))


def untruncated_marginals(distribution: SetDistribution) -> Floats:
    """Return P(i ∈ Y) of the components, without the condition Y ≠ ∅."""
    return np.asarray(softmax(distribution.log_mass) @ distribution.components.marginals())


def _by_features(found: Predicted, new: Catalogue, otherwise: str) -> tuple[Floats, str]:
    r2 = f"held-out R² {number(found.r2, 3)}"
    if not found.shown:
        warnings.warn(
            f"the features predict how likely items are no better than their average does ({r2}), which is taken "
            "instead",
            InputWarning,
            stacklevel=5,
        )
        return found.chances, f"{otherwise}, as the features predict no better ({r2})"
    return (
        found.chances,
        f"{count(len(new), 'item')} added, independent of the others, as likely as features say ({r2})",
    )


def _like(
    distribution: SetDistribution, catalogue: Catalogue, new: Catalogue, whole: Catalogue, like: Like
) -> Addition:
    if isinstance(like, Mapping):
        named = {str(label): other for label, other in like.items()}
        missing = [label for label in new.labels if str(label) not in named]
        if missing:
            raise InputError(f"like names no item that {missing[0]!r} is like; name one for every new item")
        others = [named[str(label)] for label in new.labels]
    else:
        others = [like] * len(new)
    for other in others:
        distribution = distribution.with_copy(catalogue.position(other))
    return Addition(
        distribution, whole, f"{count(len(new), 'item')} added, like {', '.join(dict.fromkeys(map(repr, others)))}"
    )


def predicted(chances: Floats, catalogue: Catalogue, new: Catalogue, features: Any) -> Predicted:
    """The chances of new items by a ridge regression of the log-odds of the others on features.

    Parameters
    ----------
    chances
        Of the items of the catalogue.
    catalogue, new
        The items that are there, and those that are to come.
    features
        A table with a row for each of both, as `read_features` takes it.

    Returns
    -------
    Predicted
        Where features do not predict items held out better than the average does, by twice the standard error of that,
        the average chance. Otherwise log-odds are shifted so that the chances of the others are right on average.

    Examples
    --------
    >>> labels, price = [f"toy {i}" for i in range(31)], np.arange(31.0)
    >>> table = {"item": labels, "price": price}
    >>> chances = 1 / (1 + np.exp(2 + price[:30] / 10))
    >>> found = predicted(chances, Catalogue.of(labels[:30]), Catalogue.of(labels[30:]), table)
    >>> found.shown, round(found.r2, 2), found.chances.round(4).tolist()
    (True, 1.0, [0.0067])
    """
    usual = float(chances.mean())
    if len(chances) < FEWEST:
        raise InputError(f"{count(len(chances), 'item')} are too few to learn from features; leave features out")
    made = read_features(features, catalogue)
    inside = np.clip(chances, NEVER, ALWAYS)
    y = np.log(inside) - np.log1p(-inside)
    held_out = [_held_out(made.matrix, y, ridge) for ridge in RIDGES]
    errors = np.array([(each**2).sum() for each in held_out])
    best = int(np.argmin(errors))
    of_mean = (y - y.mean()) * len(y) / (len(y) - 1)
    gains = of_mean**2 - held_out[best] ** 2
    total = float((of_mean**2).sum())
    r2 = 1 - float(errors[best]) / total if total > SAME * len(y) else 0.0
    shown = bool(gains.mean() > SURE * gains.std(ddof=1) / np.sqrt(len(y)))
    if not shown:
        made.encode(features, new.labels)  # a table that lacks an item is wrong in any case
        return Predicted(np.full(len(new), usual), r2, float(RIDGES[best]), False)
    middle, slope = _ridge(made.matrix, y, float(RIDGES[best]))
    shift = _shift(middle + made.matrix @ slope, usual)
    at = middle + shift + made.encode(features, new.labels) @ slope
    return Predicted(1 / (1 + np.exp(-at)), r2, float(RIDGES[best]), True)


def _ridge(F: Floats, y: Floats, ridge: float) -> tuple[float, Floats]:
    """The intercept, which is not shrunk, and the slopes."""
    centred = F - F.mean(axis=0)
    slope = np.linalg.solve(centred.T @ centred + ridge * np.eye(F.shape[1]), centred.T @ (y - y.mean()))
    return float(y.mean() - F.mean(axis=0) @ slope), slope


def _held_out(F: Floats, y: Floats, ridge: float) -> Floats:
    """y less what a regression on all other items says of it: the residual over 1 − leverage."""
    centred = F - F.mean(axis=0)
    solved = np.linalg.solve(centred.T @ centred + ridge * np.eye(F.shape[1]), centred.T)
    leverage = 1 / len(y) + np.einsum("ij,ji->i", centred, solved)
    return np.asarray((y - y.mean() - centred @ (solved @ (y - y.mean()))) / (1 - leverage))


def _shift(log_odds: Floats, mean: float) -> float:
    """What to add to log-odds for their chances to have a mean, by bisection."""
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-(log_odds + middle)))).mean() < mean else (low, middle)
    return middle
