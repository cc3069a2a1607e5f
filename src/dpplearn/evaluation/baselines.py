"""What a model is measured against, and how models and baselines answer the same questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.models.blending import blended, ranking_scores
from dpplearn.models.training import Training

INDEPENDENT, POPULARITY, ITEM_TO_ITEM, COSINE, EASE = (
    "independent items",
    "popularity",
    "item-to-item",
    "cosine",
    "EASE",
)
BASELINES = (INDEPENDENT, POPULARITY, ITEM_TO_ITEM, COSINE, EASE)
MOST_IN_EASE = 5000  # items; to regress every item on all others takes their number cubed
USUAL_RIDGE_OF_MANY = 0.001  # beyond so many items
# Of EASE, per training basket: within 0.3 points of the best percentile rank on 14 data sets, on which it was chosen.
USUAL_RIDGE = 0.3


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model or a baseline.

    `scores` ranks every item as the next of a partial basket; all NaN if that is impossible. Those that have no
    probabilities of pairs, or of sets, have None for them.
    """

    scores: Callable[[Ints], Floats]
    pair_probabilities: Callable[[Ints], Floats] | None = None  # P(i ∈ Y given a ∈ Y), a row per item a; NaN if unknown
    distribution: SetDistribution | IndependentItems | None = None

    def log_prob(self, baskets: Baskets) -> Floats | None:
        """log P(Y) of every basket."""
        return None if self.distribution is None else self.distribution.log_prob(baskets)


def of_model(distribution: SetDistribution) -> Predictor:
    """A model, which ranks as `recommend` does: by P(A ∪ i)/P(A), or by P(i ∈ Y given A ⊆ Y) where P(A) is zero."""

    def scores(basket: Ints) -> Floats:
        return ranking_scores(distribution, basket)

    def given(items: Ints) -> Floats:
        alone, both = distribution.marginals()[items, None], distribution.pair_marginals(items)
        found = np.divide(both, alone, out=np.full(both.shape, np.nan), where=alone > 0)
        return np.asarray(np.clip(found, 0, 1))

    return Predictor(scores, given, distribution)


def of_blend(distribution: SetDistribution, training: Training, weight: float) -> Predictor:
    """A model with item-to-item mixed into its ranking; it has no probabilities of its own."""
    everything = np.ones(distribution.n_items, bool)

    def scores(basket: Ints) -> Floats:
        return blended(distribution, training, basket, weight, everything)

    return Predictor(scores)


def independent_items(probabilities: Floats, *, nonempty: bool = False) -> Predictor:
    independent = IndependentItems(np.clip(probabilities, 0, 1), nonempty)
    given = lambda items: np.broadcast_to(probabilities, (len(items), len(probabilities)))  # noqa: E731
    return Predictor(lambda basket: probabilities, given, independent)


def popularity(frequencies: Floats) -> Predictor:
    return Predictor(lambda basket: frequencies)


def item_to_item(training: Training) -> Predictor:
    """The mean over the items a of the basket of m_ai/m_a: how often those who had one of them had i as well."""

    def given(items: Ints) -> Floats:
        return np.array([training.item_to_item(items[[row]]) for row in range(len(items))])

    return Predictor(training.item_to_item, given)


def cosine(training: Training) -> Predictor:
    """The sum over the items a of the basket of m_ai/√(m_a m_i), the cosine of two columns of baskets. [SKKR01]"""
    lengths = np.sqrt(np.where(training.item_weights > 0, training.item_weights, 1))

    def scores(basket: Ints) -> Floats:
        found = np.zeros(len(lengths))
        for item in basket.tolist():
            others, weights = training.met(item)
            found[others] += weights / (lengths[item] * lengths[others])
            found[item] += training.item_weights[item] > 0
        return found if len(basket) else training.frequencies

    return Predictor(scores)


def frequent_items(training: Training) -> Ints:
    """The items that EASE is over: all, or of many the most frequent."""
    most = np.argsort(-training.item_weights, kind="stable")[:MOST_IN_EASE]
    return np.sort(most)


def ease_of(training: Training, ridge: float) -> Predictor:
    """EASE over the most frequent items; the others come after them, by frequency."""
    items, m = frequent_items(training), training.frequencies
    inner = ease(training.pair_counts_among(items) / training.weight, ridge)
    if len(items) == len(m):
        return inner
    place = np.full(len(m), -1)
    place[items] = np.arange(len(items))

    def scores(basket: Ints) -> Floats:
        inside = place[basket][place[basket] >= 0]
        if not len(inside):
            return m
        of_frequent = inner.scores(inside)
        found = m + (of_frequent.min() - 1 - m.max())
        found[items] = of_frequent
        return np.asarray(found)

    return Predictor(scores)


def ease(pair_frequencies: Floats, ridge: float) -> Predictor:
    """The sum over the items a of the basket of B_ai, the regression of every item on all others. [Steck19]

    B = I − P diag(1/diag P), P = (XᵀX + λI)⁻¹ with X the 0/1 matrix of n baskets. As B does not change when XᵀX and λ
    are divided by n, `ridge` is λ/n.
    """
    m = pair_frequencies.diagonal()
    P = np.linalg.inv(pair_frequencies + ridge * np.eye(len(m)))
    B = -P / P.diagonal()
    np.fill_diagonal(B, 0)
    return _linear(B, m)


def _linear(weights: Floats, frequencies: Floats) -> Predictor:
    """Scores are x_A W; without any item to go by, frequencies."""
    return Predictor(lambda basket: weights[basket].sum(axis=0) if len(basket) else frequencies)


def independent_of(training: Training, *, nonempty: bool = False) -> Predictor:
    """Independent items are smoothed, so that an item that did not occur in training is not impossible; given that
    baskets are not empty, their chances are such that the baskets that are not have the frequencies."""
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    return independent_items(p, nonempty=nonempty)


def usual_ridge(training: Training) -> float:
    return USUAL_RIDGE if len(training.item_weights) <= MOST_IN_EASE else USUAL_RIDGE_OF_MANY


def baselines_of(training: Training, *, nonempty: bool = False, ridge: float = USUAL_RIDGE) -> dict[str, Predictor]:
    return {
        INDEPENDENT: independent_of(training, nonempty=nonempty),
        POPULARITY: popularity(training.frequencies),
        ITEM_TO_ITEM: item_to_item(training),
        COSINE: cosine(training),
        EASE: ease_of(training, ridge),
    }


def baselines_without_training(distribution: SetDistribution, *, nonempty: bool = False) -> dict[str, Predictor]:
    """Where the training data are not known, the marginals of a model stand in for the frequencies of items; with
    `nonempty`, they are those of sets that are not empty."""
    marginals = distribution.marginals()
    p = chances(marginals, 1, nonempty=nonempty)
    return {INDEPENDENT: independent_items(p, nonempty=nonempty), POPULARITY: popularity(marginals)}
