"""New items of a model: with the average probability, with one predicted from features, or as copies of other items."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

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


def added(
    distribution: SetDistribution, catalogue: Catalogue, labels: Iterable[Label], features: Any, like: Like | None
) -> tuple[SetDistribution, Catalogue, str]:
    """Return the distribution and the catalogue with these items at the end, and a sentence about them."""
    new = Catalogue.of(labels)
    if new.named and not catalogue.named:  # labels of the command line are text
        new = Catalogue.of(labels_from_text([str(label) for label in new.labels]))
    if features is not None and like is not None:
        raise InputError("features and like are mutually exclusive")
    whole, note = Catalogue.of([*catalogue.labels, *new.labels]), f"{count(len(new), 'item')} added"
    if like is not None:
        named = {str(label): other for label, other in like.items()} if isinstance(like, Mapping) else None
        others = [like if named is None else named.get(str(label)) for label in new.labels]
        if None in others:
            raise InputError(f"like has no entry for {new.labels[others.index(None)]!r}; every new item needs one")
        for other in others:
            distribution = distribution.with_copy(catalogue.position(other))
        return distribution, whole, f"{note}, like {', '.join(dict.fromkeys(map(repr, others)))}"
    # P(i ∈ Y) without the condition Y ≠ ∅: new items are independent before that condition.
    p = np.asarray(softmax(distribution.log_mass) @ distribution.components.marginals())
    found, how = np.full(len(new), p.mean()), "at their average probability"
    if features is not None:
        predicted, r2 = predict(p, catalogue, new, features)
        if predicted is None:
            how = f"{how}, because the features predict no better (held-out R² {number(r2, 3)})"
            warnings.warn(f"new items are added {how}", InputWarning, stacklevel=3)
        else:
            found, how = predicted, f"with probabilities predicted from features (held-out R² {number(r2, 3)})"
    extended = distribution.extend(np.clip(found, MIN_P, MAX_P))
    return extended, whole, f"{note}, independent of the others, {how}"


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
    from scipy.special import expit, logit

    if len(p) < MIN_ITEMS:
        raise InputError(f"features need at least {MIN_ITEMS} items to learn from, got {len(p)}; leave features out")
    read = read_features(features, catalogue)
    encoded = read.encode(features, new.labels)
    inside = np.clip(p, MIN_P, MAX_P)
    y, centre = logit(inside), read.matrix.mean(axis=0)
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
    r2 = 1 - float(errors @ errors) / max(float(of_mean @ of_mean), MIN_VARIANCE * len(y))
    if not gains.mean() > MIN_GAIN * gains.std(ddof=1) / np.sqrt(len(y)):
        return None, r2
    shift = brentq(lambda shift: float(expit(F @ slopes + shift).mean() - p.mean()), -100, 100)
    return np.asarray(expit((encoded - centre) @ slopes + shift)), r2
