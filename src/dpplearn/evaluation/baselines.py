"""What a model is measured against, and how models and baselines answer the same questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.fitting.prior import SMOOTHING
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.families import law_of
from dpplearn.kernels.independent import chances
from dpplearn.kernels.interface import Law
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.models.training import Training

INDEPENDENT, POPULARITY, ITEM_TO_ITEM, COSINE, EASE = (
    "independent items",
    "popularity",
    "item-to-item",
    "cosine",
    "EASE",
)
BASELINES = (INDEPENDENT, POPULARITY, ITEM_TO_ITEM, COSINE, EASE)
# Of EASE, per training basket: within 0.3 points of the best percentile rank on 14 data sets, on which it was chosen.
USUAL_RIDGE = 0.3


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model or a baseline.

    `scores` ranks every item as the next of a partial basket; all NaN if that is impossible. Those that have no
    probabilities of pairs, or of sets, have None for them.
    """

    scores: Callable[[Ints], Floats]
    pair_probabilities: Floats | None = None  # (n_items, n_items) P(i ∈ Y given a ∈ Y), row a; NaN if unknown
    law: Law | None = None

    def log_prob(self, baskets: Baskets) -> Floats | None:
        """log P(Y) of every basket."""
        return None if self.law is None else self.law.log_probabilities(baskets)


def never_empty(law: Law) -> Law:
    """The law given that sets are not empty, itself where they never are."""
    return law if law.log_empty() == -np.inf else WithEmptyShare(law)


def of_model(law: Law) -> Predictor:
    """A model, which ranks as `recommend` does: by P(A ∪ i)/P(A), or by P(i ∈ Y given A ⊆ Y) where P(A) is zero."""

    def scores(basket: Ints) -> Floats:
        try:
            score, probability = law.next_item(basket)
        except InputError:
            return np.full(law.n_items, np.nan)
        return probability if np.isnan(score).any() else score

    marginals = law.marginals()[:, None]
    given = np.divide(law.pairs(), marginals, out=np.full((law.n_items,) * 2, np.nan), where=marginals > 0)
    return Predictor(scores, np.clip(given, 0, 1), law)


def independent_items(probabilities: Floats, *, nonempty: bool = False) -> Predictor:
    n = len(probabilities)
    law = law_of(Kernel(np.clip(probabilities, 0, 1), np.eye(n)), nonempty=nonempty)
    return Predictor(lambda basket: probabilities, np.broadcast_to(probabilities, (n, n)), law)


def popularity(frequencies: Floats) -> Predictor:
    return Predictor(lambda basket: frequencies)


def item_to_item(pair_frequencies: Floats) -> Predictor:
    """The mean over the items a of the basket of m_ai/m_a: how often those who had one of them had i as well.

    An item that never occurred says nothing, and m_i stands in for its share.
    """
    m = pair_frequencies.diagonal()
    with np.errstate(invalid="ignore"):
        share = np.where(m[:, None] > 0, pair_frequencies / m[:, None], m)
    return Predictor(lambda basket: share[basket].mean(axis=0) if len(basket) else m, share)


def cosine(pair_frequencies: Floats) -> Predictor:
    """The sum over the items a of the basket of m_ai/√(m_a m_i), the cosine of two columns of baskets. [SKKR01]"""
    m = pair_frequencies.diagonal()
    lengths = np.sqrt(np.where(m > 0, m, 1))
    return _linear(pair_frequencies / np.outer(lengths, lengths), m)


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


def baselines_of(training: Training, *, nonempty: bool = False, ridge: float = USUAL_RIDGE) -> dict[str, Predictor]:
    m = training.pair_frequencies()
    return {
        INDEPENDENT: independent_of(training, nonempty=nonempty),
        POPULARITY: popularity(training.frequencies),
        ITEM_TO_ITEM: item_to_item(m),
        COSINE: cosine(m),
        EASE: ease(m, ridge),
    }


def baselines_without_training(law: Law, *, nonempty: bool = False) -> dict[str, Predictor]:
    """Where the training data are not known, the marginals of a model stand in for the frequencies of items; with
    `nonempty`, they are those of sets that are not empty."""
    marginals = law.marginals()
    p = chances(marginals, 1, nonempty=nonempty)
    return {INDEPENDENT: independent_items(p, nonempty=nonempty), POPULARITY: popularity(marginals)}
