"""evaluate: models and baselines on test baskets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpplearn.arrays import EPSILON, Ints, Seed
from dpplearn.data.baskets import Baskets, known_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.evaluation.baselines import (
    BASELINES,
    USUAL_RIDGE,
    Predictor,
    baselines_of,
    baselines_without_training,
    frequent_items,
    of_blend,
    of_model,
    usual_ridge,
)
from dpplearn.evaluation.calibration import LARGE, MOST_GIVEN
from dpplearn.evaluation.outcomes import Outcomes, Questions, ask, can_be_ranked, outcomes
from dpplearn.evaluation.result import Evaluation
from dpplearn.evaluation.ridge_choice import chosen_ridge
from dpplearn.learners.result import FitResult
from dpplearn.models.model import SetModel
from dpplearn.models.training import Training
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.threads import suitable_blas

Model = SetModel | FitResult[Any]
KS = (5, 10, 20)
ONLY = "model"  # what a model is called that came without a name


def evaluate(
    models: Model | Mapping[str, Model],
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    train: Baskets | Iterable[Iterable[Any]] | None = None,
    k: int | Sequence[int] = KS,
    rng: Seed = 0,
    unknown: str = "error",
    progress: bool = False,
) -> Evaluation:
    """How well models predict baskets that they were not learned from, beside baselines.

    Mean log-likelihood, rank of an item held out at random, AUC against random sets, calibration, and sizes of baskets;
    docs/guide/evaluation.md has the formulas. Baselines are independent items,
    popularity, item-to-item frequencies, cosines and EASE, all of the training data. If the law of a model is that of
    sets that are not empty, all are judged given that a basket is not empty.

    Parameters
    ----------
    models
        A DPP, a Mixture or the result of a fit; or several by name, over the same items, to compare.
    baskets
        `Baskets`, or a list of lists; their items are found by label.
    train
        What the baselines learn from, and by a part of which the ridge of EASE is chosen. By default what the (first)
        model keeps of its training data, and the usual ridge; where it has none, its marginals stand in for item
        frequencies, and what needs pairs is left out.
    k
        How many recommendations count in recall@k and NDCG@k.
    rng
        Seed or generator of the items held out and the random sets. The default asks the same of every
        model, so that separate calls with the same baskets can be compared.
    unknown
        What to do about items that the models do not have: "error", or "drop" to leave them out, and baskets of nothing
        else; a note says how many.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Evaluation
        Means with 95 % intervals, and differences on the same baskets. Printed, it is a table.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = dl.Baskets.from_lists([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> found = evaluate(dl.fit_dpp(baskets, shrinkage=0.1), baskets)
    >>> found.names
    ('model', 'independent items', 'popularity', 'item-to-item', 'cosine', 'EASE')
    >>> found.difference("model", "independent items").verdict
    'better'
    """
    named = _named(models)
    catalogue = next(iter(named.values())).catalogue
    baskets, left_out = known_baskets(baskets, catalogue, unknown)
    nonempty = any(model.nonempty for model in named.values())
    setting = Setting(tuple(named), nonempty, lengths(k))
    if not baskets.total_weight > 0:
        raise InputError(f"{len(baskets)} baskets of total weight {baskets.total_weight:g}: nothing to evaluate on")
    rng = np.random.default_rng(rng)
    learned = _learned(named, None if train is None else known_baskets(train, catalogue, unknown)[0], rng)
    laws = {name: _law(name, model, catalogue) for name, model in named.items()}
    blends = _blends(named, laws, catalogue)
    predictors = predictors_of(laws, learned, nonempty, blends)
    setting = replace(setting, models=(*setting.models, *blends))
    questions = ask(baskets, rng)
    with shown_progress(progress) as shown:
        advance = shown.grouped(dict.fromkeys(predictors, len(questions.partial)))
        answers = answer(predictors, questions, setting, advance)
    return summary(answers, baskets, setting, (*learned.notes, *left_out.notes))


@dataclass(frozen=True)
class Setting:
    """What is the same for all lots of baskets."""

    models: tuple[str, ...]
    nonempty: bool
    ks: tuple[int, ...]


@dataclass(frozen=True)
class Answers:
    """What came of the questions about one lot of baskets."""

    outcomes: Mapping[str, Outcomes]
    n_ranked: int


@dataclass(frozen=True)
class Learned:
    """What baselines learn from, None where that is not known; and what is to be said of it."""

    training: Training | None
    notes: tuple[str, ...]
    ridge: float = USUAL_RIDGE


def _blends(
    named: Mapping[str, SetModel], laws: Mapping[str, SetDistribution], catalogue: Catalogue
) -> dict[str, Predictor]:
    """What `recommend` with blend="auto" ranks by, of the models that have learned a weight for that."""
    found = {}
    for name, model in named.items():
        known = model.training
        if known is not None and known.blend is not None and model.catalogue == catalogue:
            found[f"{name}, blended"] = of_blend(laws[name], known, known.blend)
    return found


def predictors_of(
    laws: Mapping[str, SetDistribution], learned: Learned, nonempty: bool, blends: Mapping[str, Predictor] | None = None
) -> dict[str, Predictor]:
    """The models and, after them, what blends them with item-to-item, and the baselines."""
    clash = next((name for name in laws if name in BASELINES), None)
    if clash is not None:
        raise InputError(f"a model is called {clash!r}, as a baseline is; call it something else")
    laws = {name: law.with_p_empty(0.0) for name, law in laws.items()} if nonempty else laws
    if learned.training is not None:
        baselines = baselines_of(learned.training, nonempty=nonempty, ridge=learned.ridge)
    else:
        baselines = baselines_without_training(next(iter(laws.values())), nonempty=nonempty)
    return {**{name: of_model(law) for name, law in laws.items()}, **(blends or {}), **baselines}


def answer(
    predictors: Mapping[str, Predictor],
    questions: Questions,
    setting: Setting,
    advance: Callable[[str], None] = lambda name: None,
) -> Answers:
    with suitable_blas(questions.baskets.n_items, None):
        found = {
            name: outcomes(each, questions, setting.ks, partial(advance, name)) for name, each in predictors.items()
        }
    return Answers(found, len(questions.ranked))


def summary(
    answers: Answers,
    baskets: Baskets,
    setting: Setting,
    notes: Sequence[str],
    *,
    folds: Ints | None = None,
    rows: Ints | None = None,
) -> Evaluation:
    """Return the evaluation with the outcomes of all models and baselines."""
    return Evaluation(
        models=setting.models,
        baselines=tuple(name for name in answers.outcomes if name not in setting.models),
        outcomes={name: each.columns for name, each in answers.outcomes.items()},
        weights=baskets.weights,
        n_items=baskets.n_items,
        k=setting.ks,
        nonempty=setting.nonempty,
        reliability={
            name: each.pairs.reliability() for name, each in answers.outcomes.items() if each.pairs is not None
        },
        size_distance={
            name: each.sizes.distance() for name, each in answers.outcomes.items() if each.sizes is not None
        },
        n_ranked=answers.n_ranked,
        unranked={name: len(each.unranked) for name, each in answers.outcomes.items()},
        notes=(*notes, *_remarks(baskets, answers.n_ranked, setting.nonempty)),
        folds=folds,
        rows=rows,
        ids=baskets.ids,
        times=baskets.times,
    )


def _remarks(baskets: Baskets, n_ranked: int, nonempty: bool) -> Iterator[str]:
    empty = np.count_nonzero(baskets.sizes == 0)
    if not n_ranked:
        yield "No basket has two or more items, so that none could be held out and ranked."
    elif n_ranked < np.count_nonzero(can_be_ranked(baskets)):
        yield f"Of the baskets of two or more items, {n_ranked:,} drawn at random were ranked."
    if baskets.n_items > LARGE:
        yield f"Probabilities given one item are of {MOST_GIVEN} items, drawn by how often they occur in these baskets."
    if nonempty and empty:
        yield f"{empty:,} baskets are empty, which is impossible given that a basket is not; leave them out."
    if not nonempty and not empty:
        share = float(np.exp(np.log1p(-np.minimum(baskets.frequencies(), 1 - EPSILON)).sum()))
        yield (
            f"None of the baskets is empty; of independent items {share:.1%} would be. Knowing that alone is worth a "
            f"lead of {-np.log1p(-share):.3f} or more over them; models learned with nonempty=True (--nonempty) have "
            "and need no such lead."
        )


def _named(models: Model | Mapping[str, Model]) -> dict[str, SetModel]:
    named: dict[str, Any] = dict(models) if isinstance(models, Mapping) else {ONLY: models}
    if not named:
        raise InputError("there are no models to evaluate; name at least one")
    for name, model in named.items():
        if not isinstance(model, SetModel | FitResult):
            expected = "expected a DPP, a Mixture, the result of a fit, or a dict of those by name"
            raise InputError(f"{name!r} is a {type(model).__name__}; {expected}")
    return {name: model.model if isinstance(model, FitResult) else model for name, model in named.items()}


def _law(name: str, model: SetModel, catalogue: Catalogue) -> SetDistribution:
    """Over the catalogue of the first model."""
    if model.catalogue == catalogue:
        return model.distribution
    there = model.catalogue.translation(catalogue)
    if len(model.items) != len(catalogue) or (there < 0).any():
        missing = set(map(str, model.items)) ^ set(map(str, catalogue.labels))
        raise InputError(
            f"{name!r} is a model of other items than the first ({len(model.items)} against {len(catalogue)}; "
            f"{min(missing)!r} is in one of them alone); models to compare have the same items"
        )
    return model.distribution.reorder(there)


def _learned(models: Mapping[str, SetModel], train: Baskets | None, rng: np.random.Generator) -> Learned:
    """What is drawn here leaves the other draws as they are, so that all calls ask the same."""
    if train is not None:
        return learned_from(train, rng.spawn(1)[0], f"Baselines are learned from {len(train):,} training baskets.")
    catalogue = next(iter(models.values())).catalogue
    for model in models.values():
        if model.training is not None and model.catalogue == catalogue:
            known = f"Baselines are learned from the model's {model.training.weight:,.0f} training baskets."
            usual = usual_ridge(model.training)
            ridge = (
                f"The ridge of EASE is {usual:g} per training basket, as usual; name the baskets themselves "
                "(train=, --train) to have it chosen by a part of them."
            )
            return Learned(model.training, (known, ridge, *_left_out(model.training)), usual)
    unknown = (
        "The training data are not known: independent items and popularity have the marginals of the model itself, "
        "and item-to-item, cosine and EASE are left out. Name them (train=, --train) for the real baselines."
    )
    return Learned(None, (unknown,))


def learned_from(train: Baskets, rng: np.random.Generator, *notes: str) -> Learned:
    """From baskets that are at hand, the ridge of EASE by a part of them where they are enough."""
    ridge = chosen_ridge(train, rng)
    how = "as usual: they are too few to choose it" if ridge is None else "which ranked best on a fifth of them"
    training = Training.of(train)
    used = ridge or usual_ridge(training)
    note = f"The ridge of EASE is {used:g} per training basket, {how}."
    return Learned(training, (*notes, note, *_left_out(training)), used)


def _left_out(training: Training) -> Iterator[str]:
    """What baselines do not know of a large catalogue."""
    items = len(frequent_items(training))
    if items < len(training.item_weights):
        yield f"EASE is over the {items:,} most frequent items; the others come after them, by popularity."
    if training.least:
        yield f"Item-to-item and cosine count pairs that met {training.least:g} times or more: all would be too many."


def lengths(k: int | Sequence[int]) -> tuple[int, ...]:
    ks = tuple(k) if isinstance(k, Iterable) else (k,)
    if not ks:
        raise InputError("k is empty; name at least one length of a list of recommendations")
    return tuple(sorted({whole_number("k", each, 1) for each in ks}))
