"""What a model is measured against, and how models and baselines answer the same questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.fitting.prior import SMOOTHING
from dpplearn.kernels.independent import chances
from dpplearn.kernels.symmetric.conditioning import next_item
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.statistics import log_nonempty, log_probabilities
from dpplearn.models.training import Training

INDEPENDENT, POPULARITY, ITEM_TO_ITEM = "independent items", "popularity", "item-to-item"


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model or a baseline.

    `scores` ranks every item as the next of a partial basket; all NaN if that is impossible. Those that have no
    probabilities of pairs, or of sets, have None for them.
    """

    scores: Callable[[Ints], Floats]
    pair_probabilities: Floats | None = None  # (n_items, n_items) P(i ∈ Y given a ∈ Y), row a; NaN if unknown
    kernel: Kernel | None = None

    def log_prob(self, baskets: Baskets, *, nonempty: bool = False) -> Floats | None:
        """log P(Y) of every basket, or given that Y is not empty."""
        if self.kernel is None:
            return None
        return log_probabilities(self.kernel, baskets, nonempty=nonempty)


def of_model(kernel: Kernel) -> Predictor:
    """A DPP, which ranks as `DPP.recommend` does: by P(A ∪ i)/P(A), or by P(i ∈ Y given A ⊆ Y) where P(A) is zero."""

    def scores(basket: Ints) -> Floats:
        try:
            score, probability = next_item(kernel, basket)
        except InputError:
            return np.full(kernel.n_items, np.nan)
        return probability if np.isnan(score).any() else score

    marginals = kernel.K.diagonal()
    given = marginals * (1 - kernel.repulsion)  # K_ii − K_ia²/K_aa
    return Predictor(scores, np.where(marginals[:, None] > 0, given, np.nan), kernel)


def independent_items(probabilities: Floats) -> Predictor:
    n = len(probabilities)
    diagonal = Kernel(np.clip(probabilities, 0, 1), np.eye(n))
    return Predictor(lambda basket: probabilities, np.broadcast_to(probabilities, (n, n)), diagonal)


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


def baselines_of(training: Training, *, nonempty: bool = False) -> dict[str, Predictor]:
    """Independent items are smoothed, so that an item that did not occur in training is not impossible; given that
    baskets are not empty, their chances are such that the baskets that are not have the frequencies."""
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    return {
        INDEPENDENT: independent_items(p),
        POPULARITY: popularity(training.frequencies),
        ITEM_TO_ITEM: item_to_item(training.pair_frequencies()),
    }


def baselines_without_training(kernel: Kernel, *, nonempty: bool = False) -> dict[str, Predictor]:
    """Where the training data are not known, a model's own marginals stand in for the frequencies of items."""
    marginals = kernel.K.diagonal()
    given = np.minimum(marginals / np.exp(log_nonempty(kernel)), 1) if nonempty and marginals.any() else marginals
    p = chances(given, 1, nonempty=nonempty)
    return {INDEPENDENT: independent_items(p), POPULARITY: popularity(marginals)}
