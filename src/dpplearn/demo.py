"""The demonstration: learn generated registries with EM and K-Ascent, compare, and look at what is suggested next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dpplearn.baskets import Baskets
from dpplearn.catalogue import Label
from dpplearn.datasets import make_registries, substitute_groups
from dpplearn.dpp import DPP
from dpplearn.fitting import FitResult, fit
from dpplearn.initialise import independent

TRAIN_SHARE = 0.7  # as in the paper
N_SUGGESTIONS = 5


@dataclass(frozen=True)
class Score:
    """How good one model is: mean log-likelihoods a registry, and what learning it took."""

    model: str
    train: float
    test: float
    n_iter: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Suggestion:
    """An item suggested next, how probable it is, and whether it could replace the one already there."""

    item: Label
    probability: float
    same_kind: bool


@dataclass(frozen=True)
class Demo:
    """Everything that the demonstration found."""

    category: str
    seed: int
    n_items: int
    n_train: int
    n_test: int
    independent: Score
    k_ascent: Score
    em: Score
    kind: str
    held: Label
    by_em: tuple[Suggestion, ...]
    by_popularity: tuple[Suggestion, ...]

    @property
    def sentence(self) -> str:
        """What the suggestions come to, counted."""
        em, popularity = (sum(each.same_kind for each in found) for found in (self.by_em, self.by_popularity))
        return (
            f"With {self.held} already in the registry, {popularity} of the {len(self.by_popularity)} suggestions by "
            f"popularity {_are(popularity)} again of its kind ({self.kind}), and {em} of the {len(self.by_em)} by the "
            f"DPP that EM learned."
        )


def relative_gain(better: float, base: float) -> float:
    """100·(better − base)/|base|, as the paper reports it; NaN where that is no number."""
    return 100 * (better - base) / abs(base) if np.isfinite([better, base]).all() and base else float("nan")


def run_demo(category: str, n: int, seed: int, *, progress: bool = False) -> Demo:
    """Generate `n` registries, learn from 70% of them twice from one Wishart start, and compare on the others."""
    train, test = make_registries(category, n, rng=seed).split(TRAIN_SHARE, rng=seed)
    em, k_ascent = (fit(train, learner, "wishart", rng=seed, progress=progress) for learner in ("em", "k-ascent"))
    popularity = DPP(independent(train), train.items)
    group = max(substitute_groups(category), key=len)
    held = _most_popular(train, group)
    return Demo(
        category=category,
        seed=seed,
        n_items=train.n_items,
        n_train=len(train),
        n_test=len(test),
        independent=Score("independent items", popularity.log_likelihood(train), popularity.log_likelihood(test)),
        k_ascent=_score("K-Ascent", k_ascent, test),
        em=_score("EM", em, test),
        kind=_kind(group),
        held=held,
        by_em=_suggestions(em.dpp, held, group),
        by_popularity=_suggestions(popularity, held, group),
    )


def _score(model: str, result: FitResult, test: Baskets) -> Score:
    test_value = result.dpp.log_likelihood(test)
    return Score(model, result.log_likelihood, test_value, result.n_iter, float(result.history.seconds[-1]))


def _most_popular(baskets: Baskets, group: Sequence[str]) -> Label:
    frequency = dict(zip(baskets.items, baskets.frequencies(), strict=True))
    return max(group, key=lambda item: frequency[item])


def _suggestions(dpp: DPP, held: Label, group: Sequence[str]) -> tuple[Suggestion, ...]:
    found = dpp.recommend([held], N_SUGGESTIONS)
    return tuple(Suggestion(each.item, each.probability, each.item in group) for each in found)


def _kind(group: Sequence[str]) -> str:
    """The words that all names of a group share, in the order of the first."""
    words = [name.replace(",", "").split() for name in group]
    shared = reduce(lambda left, right: left & right, map(Counter, words))
    return " ".join(word for word in words[0] if word in shared)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
