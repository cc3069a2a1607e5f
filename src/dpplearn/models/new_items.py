"""New items of a model: with the average probability, with one predicted from features, or as copies of other items."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue, Label, labels_from_text
from dpplearn.data.features import read_features
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count, number

RIDGES = 10.0 ** np.arange(-3, 5.5, 0.5)  # candidates for the ridge penalty on standardised features
MIN_GAIN = 2.0  # standard errors by which features must predict better than the average
MIN_P, MAX_P = 1e-9, 1 - 1e-9  # probabilities are clipped here before log-odds are taken
MIN_VARIANCE = 1e-20  # of log-odds; below, they are equal up to rounding
MIN_ITEMS = 10  # to learn from

Like = Label | Mapping[Any, Label]


class Addition(NamedTuple):
    """A distribution over more items, their catalogue, and a sentence about the new items."""

    distribution: SetDistribution
    catalogue: Catalogue
    note: str


def added(
    distribution: SetDistribution, catalogue: Catalogue, labels: Iterable[Label], features: Any, like: Like | None
) -> Addition:
    """Return the distribution and the catalogue with these items at the end."""
    new = Catalogue.of(labels)
    if new.named and not catalogue.named:  # labels of the command line are text
        new = Catalogue.of(labels_from_text([str(label) for label in new.labels]))
    known = [label for label in new.labels if label in catalogue]
    if known:
        raise InputError(f"item {known[0]!r} is in the catalogue already; name items that are new")
    if features is not None and like is not None:
        raise InputError("features and like are mutually exclusive")
    whole, note = Catalogue.of([*catalogue.labels, *new.labels]), f"{count(len(new), 'item')} added"
    if like is not None:
        others = _originals(new, like)
        for other in others:
            distribution = distribution.with_copy(catalogue.position(other))
        return Addition(distribution, whole, f"{note}, like {', '.join(dict.fromkeys(map(repr, others)))}")
    # P(i ∈ Y) without the condition Y ≠ ∅: new items are independent before that condition.
    p = np.asarray(softmax(distribution.log_mass) @ distribution.components.marginals())
    found, note = np.full(len(new), p.mean()), f"{note}, independent of the others"
    predicted, r2 = (None, 0.0) if features is None else predict(p, catalogue, new, features)
    if predicted is not None:
        found, note = predicted, f"{note}, with probabilities predicted from features (held-out R² {number(r2, 3)})"
    else:
        note = f"{note}, at their average probability"
        if features is not None:
            reason = f"the features predict no better (held-out R² {number(r2, 3)})"
            note = f"{note}, because {reason}"
            warnings.warn(f"new items get the average probability: {reason}", InputWarning, stacklevel=3)
    return Addition(distribution.extend(np.clip(found, MIN_P, MAX_P)), whole, note)


def _originals(new: Catalogue, like: Like) -> list[Label]:
    """Return the item that each new item copies."""
    if not isinstance(like, Mapping):
        return [like] * len(new)
    named = {str(label): other for label, other in like.items()}
    missing = [label for label in new.labels if str(label) not in named]
    if missing:
        raise InputError(f"like has no entry for {missing[0]!r}; every new item needs one")
    return [named[str(label)] for label in new.labels]


def predict(p: Floats, catalogue: Catalogue, new: Catalogue, features: Any) -> tuple[Floats | None, float]:
    """Return the probabilities of new items by a ridge regression of log-odds on features, and the held-out R².

    The ridge minimises the leave-one-out error. Predictions are shifted so that the known items have the right mean
    probability. None is returned instead if the features do not predict held-out items better than the average, by two
    standard errors.

    Examples
    --------
    >>> labels, price = [f"toy {i}" for i in range(31)], np.arange(31.0)
    >>> table = {"item": labels, "price": price}
    >>> p = 1 / (1 + np.exp(2 + price[:30] / 10))
    >>> found, r2 = predict(p, Catalogue.of(labels[:30]), Catalogue.of(labels[30:]), table)
    >>> round(r2, 2), found.round(4).tolist()
    (1.0, [0.0067])
    """
    from scipy.optimize import brentq

    if len(p) < MIN_ITEMS:
        raise InputError(f"features need at least {MIN_ITEMS} items to learn from, got {len(p)}; leave features out")
    read = read_features(features, catalogue)
    encoded = read.encode(features, new.labels)
    inside = np.clip(p, MIN_P, MAX_P)
    y, centre = np.log(inside) - np.log1p(-inside), read.matrix.mean(axis=0)
    F, residual = read.matrix - centre, y - y.mean()

    def held_out(ridge: float) -> tuple[Floats, Floats]:
        """Return the slopes, and the leave-one-out errors: residuals divided by 1 − leverage."""
        solved = np.linalg.solve(F.T @ F + ridge * np.eye(F.shape[1]), F.T)
        leverage = 1 / len(y) + np.einsum("ij,ji->i", F, solved)
        slopes = solved @ residual
        return slopes, (residual - F @ slopes) / (1 - leverage)

    slopes, errors = min(map(held_out, RIDGES), key=lambda each: float(each[1] @ each[1]))
    of_mean = residual * len(y) / (len(y) - 1)
    gains = of_mean**2 - errors**2
    total = float(of_mean @ of_mean)
    r2 = 1 - float(errors @ errors) / total if total > MIN_VARIANCE * len(y) else 0.0
    if not gains.mean() > MIN_GAIN * gains.std(ddof=1) / np.sqrt(len(y)):
        return None, r2

    def mean_p(shift: float) -> float:
        return float((1 / (1 + np.exp(-(F @ slopes + shift)))).mean())

    shift = brentq(lambda shift: mean_p(shift) - float(p.mean()), -100, 100)
    return np.asarray(1 / (1 + np.exp(-((encoded - centre) @ slopes + shift)))), r2
