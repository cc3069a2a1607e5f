"""Baselines and models as predictors that answer the same questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.evaluation.metrics import PERCENTILE_RANK, weighted_mean
from dpplearn.evaluation.protocol import ALL_BUT_ONE, Predictor, answer, ask, can_be_ranked, column_name
from dpplearn.models.blending import blended
from dpplearn.models.record import Training

BASELINES = ("independent items", "popularity", "item-to-item", "EASE")
INDEPENDENT, POPULARITY, ITEM_TO_ITEM, EASE = BASELINES
MAX_EASE_ITEMS = 5000  # the regression of every item on all others takes time cubic in the number of items
# Ridges per training basket that are tried; the largest of those that rank equally well is used.
RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
RIDGES_OF_MANY = (0.01, 0.003, 0.001)  # with more than MAX_EASE_ITEMS items each takes seconds
DEFAULT_RIDGE = 0.3  # within 0.3 points of the best percentile rank on 14 data sets
DEFAULT_RIDGE_OF_MANY = 0.001
VALIDATION_FRACTION = 0.2
MIN_VALIDATION, MAX_VALIDATION = 10, 2000  # baskets of at least two items


def model_predictor(distribution: SetDistribution) -> Predictor:
    """Return the predictor of a model: by P(A ∪ i)/P(A), or by P(i ∈ Y | A ⊆ Y) where P(A) is zero."""

    def scores(partial: Sequence[Ints]) -> Floats:
        # P(A ∪ i) up to a factor that is the same for all i.
        sets = sets_of(partial, distribution.n_items)
        log_p, _, x = distribution.components.next(False, distribution.log_mass, sets)
        impossible = np.flatnonzero(np.isneginf((distribution.log_mass + log_p).max(axis=1)))
        if len(impossible):
            x = np.array(x)
            x[impossible] = probabilities([partial[row] for row in impossible.tolist()])
        return x

    def probabilities(partial: Sequence[Ints]) -> Floats:
        return distribution.next_probabilities(sets_of(partial, distribution.n_items))

    return Predictor(scores, probabilities, distribution)


def blend_predictor(distribution: SetDistribution, training: Training, weight: float) -> Predictor:
    """Return the predictor of a model with item-to-item mixed into its ranking; it has no probabilities."""
    n_items = distribution.n_items
    return Predictor(lambda partial: blended(distribution, training, sets_of(partial, n_items), weight))


def _by_scores(score: Callable[[Ints], Floats]) -> Predictor:
    return Predictor(lambda partial: np.stack([score(basket) for basket in partial]))


def independent_items(probabilities: Floats, *, nonempty: bool = False) -> Predictor:
    """Return independent items. P(i ∈ Y | A ⊆ Y) = p_i for i outside A, because sets that contain A are nonempty."""

    def predict(partial: Sequence[Ints]) -> Floats:
        return np.broadcast_to(probabilities, (len(partial), len(probabilities)))

    return Predictor(predict, predict, IndependentItems(np.clip(probabilities, 0, 1), nonempty))


def ease(training: Training, ridge: float, max_items: int = MAX_EASE_ITEMS) -> Predictor:
    """Return EASE over the most frequent items; the other items rank below them, by frequency.

    The score is Σ_{a∈A} B_ai with B = I − P diag(1/diag P), P = (XᵀX + λI)⁻¹ and X the 0/1 matrix of n baskets
    [Steck19]. B does not change if XᵀX and λ are divided by n: `ridge` is λ/n.
    """
    items = np.sort(np.argsort(-training.item_weights, kind="stable")[:max_items])
    m = training.frequencies
    P = np.linalg.inv(training.pair_counts_among(items) / training.weight + ridge * np.eye(len(items)))
    B = -P / P.diagonal()
    np.fill_diagonal(B, 0)
    place = np.full(len(m), -1)
    place[items] = np.arange(len(items))

    def score(basket: Ints) -> Floats:
        known = place[basket][place[basket] >= 0]
        if not len(known):
            return m
        frequent = B[known].sum(axis=0)
        found = m + (frequent.min() - 1 - m.max())
        found[items] = frequent
        return np.asarray(found)

    return _by_scores(score)


def choose_ridge(train: Baskets, rng: np.random.Generator) -> float | None:
    """Return the ridge of EASE with the best percentile rank, all but one, on a fifth of the training baskets.

    None if fewer than 10 of these have two items.
    """
    if train.n_units * VALIDATION_FRACTION < MIN_VALIDATION:
        return None
    kept, validation = train.split(1 - VALIDATION_FRACTION, rng)
    if len(validation) > MAX_VALIDATION:
        validation = validation.subset(np.sort(rng.choice(len(validation), MAX_VALIDATION, replace=False)))
    if np.count_nonzero(can_be_ranked(validation)) < MIN_VALIDATION:
        return None
    questions = ask(validation, rng, (ALL_BUT_ONE,))
    training = Training.of(kept)
    ridges = RIDGES if train.n_items <= MAX_EASE_ITEMS else RIDGES_OF_MANY
    column = column_name(PERCENTILE_RANK, ALL_BUT_ONE)
    found = (answer(ease(training, ridge), questions, ()).columns[column] for ridge in ridges)
    return ridges[int(np.argmax([weighted_mean(ranks, validation.weights) for ranks in found]))]


@dataclass(frozen=True)
class Learned:
    """Training data of the baselines, the ridge of EASE, and notes for the output."""

    training: Training | None
    ridge: float = DEFAULT_RIDGE
    notes: tuple[str, ...] = ()


def learn_baselines(train: Baskets | Training, rng: np.random.Generator) -> Learned:
    """Return what baselines need: counts, and the ridge of EASE, chosen on validation data if baskets are given."""
    training = train if isinstance(train, Training) else Training.of(train)
    many = len(training.item_weights) > MAX_EASE_ITEMS
    ridge, how = (DEFAULT_RIDGE_OF_MANY if many else DEFAULT_RIDGE), "the default"
    if isinstance(train, Training):
        how += "; pass the training baskets (train=, --train) to choose it on validation data"
    elif (chosen := choose_ridge(train, rng)) is not None:
        ridge, how = chosen, "chosen on a fifth of them"
    notes = [f"Baselines: {training.weight:,.0f} training baskets; ridge of EASE {ridge:g} per basket, {how}."]
    if many:
        notes.append(f"EASE uses the {MAX_EASE_ITEMS:,} most frequent items; the others rank below, by popularity.")
    if training.least:
        notes.append(f"Item-to-item uses the pairs that co-occurred at least {training.least:g} times.")
    return Learned(training, ridge, tuple(notes))


def baselines(learned: Learned, distribution: SetDistribution, *, nonempty: bool = False) -> dict[str, Predictor]:
    """Return all baselines; without training data, those that the marginals of the first model allow.

    Independent items are smoothed, so that an item that does not occur in training is not impossible. With `nonempty`,
    their probabilities are such that nonempty sets have the training frequencies.
    """
    training = learned.training
    if training is None:
        marginals = distribution.marginals()
        p = chances(marginals, 1, nonempty=nonempty)
        return {INDEPENDENT: independent_items(p, nonempty=nonempty), POPULARITY: _by_scores(lambda basket: marginals)}
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    return {
        INDEPENDENT: independent_items(p, nonempty=nonempty),
        POPULARITY: _by_scores(lambda basket: training.frequencies),
        # The mean over the given items a of m_ai/m_a, the share of baskets with a that contain i.
        ITEM_TO_ITEM: _by_scores(training.item_to_item),
        EASE: ease(training, learned.ridge),
    }
