"""Item-to-item mixed into the ranking of a model: large lifts of rare pairs are beyond what a model keeps of pairs.

The mixture is a score to rank by, not a law of sets: probabilities stay those of the model.
"""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.kernels.interface import Law
from dpplearn.models.training import Training

MOST_ASKED, FEWEST_ASKED = 2000, 300  # baskets that a weight is learned from
MOST_SCORES = 40_000_000  # that are looked at for it
STEPS = 200  # of EM
CONVERGED = 1e-6


def ranking_scores(law: Law, basket: Ints) -> Floats:
    """What a model ranks all items by: P(A ∪ i)/P(A), or P(i ∈ Y given A ⊆ Y) where P(A) is zero."""
    scores = law.scores(basket)
    return law.next_item(basket)[1] if np.isnan(scores).any() else scores


def blended(law: Law, training: Training, basket: Ints, weight: float, candidate: Bools) -> Floats:
    """(1 − w) · model + w · item-to-item of every item; 0 of those that are no candidates or cannot be added."""
    model, items = both_shares(law, training, basket, candidate)
    return np.asarray((1 - weight) * model + weight * items)


def both_shares(law: Law, training: Training, basket: Ints, candidate: Bools) -> tuple[Floats, Floats]:
    """Of the model and of item-to-item, each a share of its sum over the candidates."""
    model = np.where(candidate, ranking_scores(law, basket), 0)
    model[basket] = 0
    return _shares(model), _shares(np.where(model > 0, training.item_to_item(basket), 0))


def _shares(scores: Floats) -> Floats:
    return np.asarray(scores / max(scores.sum(), np.finfo(float).tiny))


def blend_weight(law: Law, training: Training, baskets: Baskets, rng: np.random.Generator) -> float | None:
    """How much of item-to-item is best mixed in, by EM on baskets that neither was learned from.

    Parameters
    ----------
    law
        Of the model.
    training
        What it was learned from.
    baskets
        Others, over the same items; of those with two or more, up to 2,000 are asked about, fewer where items are many.
    rng
        Draws them, and the item of each that is to be found.

    Returns
    -------
    float or None
        The weight under which the items to be found are likeliest, from 0 to 1; None where there is nothing to go by.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from dpplearn.kernels.factored.kernel import FactoredKernel
    >>> train = dl.Baskets.from_lists([["tea", "milk"], ["tea", "milk"], ["beer", "nuts"], ["beer"]] * 9)
    >>> apart = FactoredKernel.of_items(np.full(4, -1.0))  # knows nothing of pairs
    >>> blend_weight(dl.Mixture(apart).law, Training.of(train), train, np.random.default_rng(0)) > 0.9
    True
    """
    rows = np.flatnonzero((baskets.sizes >= 2) & (baskets.sizes < baskets.n_items) & (baskets.weights > 0))
    most = max(min(MOST_ASKED, MOST_SCORES // law.n_items), FEWEST_ASKED)
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    asked = [_likely(law, training, baskets.positions(row).astype(np.int64), rng) for row in rows.tolist()]
    found = np.array(asked).reshape(-1, 2)
    there = found.max(axis=1) > 0
    return _em(found[there], baskets.weights[rows][there]) if there.any() else None


def _likely(law: Law, training: Training, basket: Ints, rng: np.random.Generator) -> tuple[float, float]:
    """How likely an item of the basket is beside the others, by the model and by item-to-item."""
    at = int(rng.integers(len(basket)))
    rest, held = np.delete(basket, at), basket[at]
    try:
        model, items = both_shares(law, training, rest, np.ones(law.n_items, bool))
    except InputError:  # the others cannot be together
        return 0.0, 0.0
    return float(model[held]), float(items[held])


def _em(likely: Floats, weights: Floats) -> float:
    """The w that maximises Σ log((1 − w) a + w b)."""
    w = 0.5
    for _ in range(STEPS):
        by_items = w * likely[:, 1]
        before, w = w, float(np.average(by_items / ((1 - w) * likely[:, 0] + by_items), weights=weights))
        if abs(w - before) < CONVERGED or w in (0.0, 1.0):
            break
    return w
