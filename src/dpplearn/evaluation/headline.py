"""The few figures by which models of many categories are told apart, and a model beside the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import (
    INDEPENDENT,
    Predictor,
    baselines_of,
    baselines_without_training,
    independent_of,
    of_model,
)
from dpplearn.evaluation.calibration import Reliability, pair_sums
from dpplearn.evaluation.metrics import weighted_mean
from dpplearn.evaluation.outcomes import Questions, ask, ranking
from dpplearn.kernels.families import reordered
from dpplearn.models.model import SetModel
from dpplearn.tools.threads import suitable_blas


@dataclass(frozen=True)
class Headline:
    """Means over the baskets: log-likelihood, and the percentile rank of an item held out, NaN where none could be."""

    log_likelihood: float
    percentile_rank: float
    independent: float  # the log-likelihood of independent items

    @property
    def gain(self) -> float:
        """Over independent items, in nats per basket."""
        return self.log_likelihood - self.independent


@dataclass(frozen=True)
class Beside:
    """A model and the one before it, by the items that both have: what baskets hold of others is not looked at."""

    n_items: int
    now: Headline
    before: Headline


@dataclass(frozen=True)
class Background:
    """What a model's figures are seen against: the percentile ranks of baselines on the same baskets, where it is known
    what it was learned from; and how its probabilities of one item given another came true."""

    percentile_ranks: Mapping[str, float]
    reliability: Reliability


def background(model: SetModel, baskets: Baskets) -> Background:
    """Of a model on baskets. The same questions are asked as for its `headline`."""
    questions = ask(baskets.over(model.catalogue), np.random.default_rng(0))
    ours = of_model(model.law).pair_probabilities
    assert ours is not None
    others = {} if model.training is None else baselines_of(model.training, nonempty=model.nonempty)
    with suitable_blas(questions.baskets.n_items, None):
        ranks = {name: _rank(each, questions) for name, each in others.items() if name != INDEPENDENT}
        pairs = pair_sums(ours(questions.given), questions.baskets, questions.given)
    return Background(ranks, pairs.reliability())


def headline(model: SetModel, baskets: Baskets) -> Headline:
    """How a model does on baskets, over its own items. The same questions are asked of every model."""
    return _figures(model, ask(baskets.over(model.catalogue), np.random.default_rng(0)))


def beside(model: SetModel, found: Headline, before: SetModel, baskets: Baskets) -> Beside:
    """Both on the same baskets; `found` is how the first does over its own items."""
    common = [item for item in model.items if item in before.catalogue]
    if not common:
        raise InputError("the two models have no item in common")
    catalogue = Catalogue.of(common)
    questions = ask(_seen(baskets, catalogue), np.random.default_rng(0))
    now = found if len(common) == len(model.items) else _figures(_among(model, catalogue), questions)
    return Beside(len(common), now, _figures(_among(before, catalogue), questions))


def _figures(model: SetModel, questions: Questions) -> Headline:
    baskets = questions.baskets
    with suitable_blas(baskets.n_items, None):
        ranked = _rank(of_model(model.law), questions)
        independent = _independent(model).log_prob(baskets)
        assert independent is not None
        return Headline(model.log_likelihood(baskets), ranked, weighted_mean(independent, baskets.weights))


def _rank(predictor: Predictor, questions: Questions) -> float:
    """The mean percentile rank."""
    place, _ = ranking(predictor, questions)
    return weighted_mean(place.percentile(), questions.baskets.weights[questions.ranked])


def _independent(model: SetModel) -> Predictor:
    if model.training is not None:
        return independent_of(model.training, nonempty=model.nonempty)
    return baselines_without_training(model.law, nonempty=model.nonempty)[INDEPENDENT]


def _among(model: SetModel, catalogue: Catalogue) -> SetModel:
    """The law of what is seen of some of its items; the same law where they are all of them."""
    if model.catalogue == catalogue:
        return model
    if len(model.catalogue) == len(catalogue):
        law = reordered(model.law, model.catalogue.translation(catalogue))
        return model.of_law(law, catalogue.labels)
    return model.restrict(catalogue.labels)


def _seen(baskets: Baskets, catalogue: Catalogue) -> Baskets:
    """What baskets hold of these items, which may be nothing."""
    position = catalogue.translation(baskets.catalogue)[baskets.indices]
    rows, inside = np.repeat(np.arange(len(baskets)), baskets.sizes), position >= 0
    return Baskets.from_pairs(rows[inside], position[inside], len(baskets), catalogue, baskets.weights)
