"""evaluate and cross_validate: models and baselines on held-out baskets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpplearn.arrays import Ints, Seed
from dpplearn.data.baskets import Baskets, as_baskets, known_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.evaluation.baselines import (
    BASELINES,
    Learned,
    baselines,
    blend_predictor,
    learn_baselines,
    model_predictor,
)
from dpplearn.evaluation.protocol import TASKS, Outcomes, Predictor, Setting, answer, ask, joined
from dpplearn.evaluation.result import Evaluation
from dpplearn.learners.fit import fit_with
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings, settings_of
from dpplearn.models.mixture import distribution_over
from dpplearn.models.model import SetModel
from dpplearn.utils.progress import SILENT, Progress, shown_progress
from dpplearn.utils.threads import one_blas_thread

Model = SetModel | FitResult[Any]
KS = (5, 10, 20)
MAX_BASKETS = 10_000
DEFAULT_NAME = "model"  # of a model that was passed without a name
NO_TRAINING = (
    "The training data are unknown: independent items and popularity use the marginals of the model, and item-to-item "
    "and EASE are left out. Pass the training baskets (train=, --train) for all baselines."
)


def evaluate(
    models: Model | Mapping[str, Model],
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    train: Baskets | Iterable[Iterable[Any]] | None = None,
    k: int | Sequence[int] = KS,
    tasks: Sequence[str] = TASKS,
    max_baskets: int | None = MAX_BASKETS,
    rng: Seed = 0,
    unknown: str = "error",
    progress: bool = False,
) -> Evaluation:
    """Evaluate models on baskets that they were not fitted to, next to baselines.

    Measures are the log-likelihood, the ranking of held-out items (given one item, given half of the basket, given all
    but one), calibration for the same questions, and the distribution of basket sizes. Baselines are independent items,
    popularity, item-to-item and EASE. If a model is conditioned on nonempty baskets, all likelihoods are.

    Parameters
    ----------
    models : DPP, Mixture, FitResult or dict of these by name
        Models over the same items.
    baskets : Baskets or list of lists
        Test baskets. Items are matched by label.
    train : Baskets or list of lists, optional
        Training baskets of the baselines; the ridge of EASE is chosen on a fifth of them. By default the item and pair
        counts that the first model keeps of its training data, with a default ridge. If there are none, independent
        items and popularity use the marginals of the model.
    k : int or sequence of int, default (5, 10, 20)
        Numbers of recommendations for recall@k and NDCG@k.
    tasks : sequence of {"given_one", "given_half", "all_but_one"}
        Ranking tasks. By default all three; an empty sequence computes likelihoods and sizes only.
    max_baskets : int or None, default 10,000
        Evaluate a random sample of so many baskets if there are more. None evaluates all.
    rng : int or numpy.random.Generator, default 0
        Seed of the sample, the held-out items and the validation data of EASE. Calls with the same seed and baskets ask
        the same questions.
    unknown : {"error", "drop"}
        How to treat items that the models do not have. "drop" also drops baskets without any other item.
    progress : bool, default False
        Show a progress bar on standard error.

    Returns
    -------
    Evaluation
        Means with 95 % confidence intervals, and paired differences.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = dl.Baskets.from_lists([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> found = evaluate(dl.fit_dpp(baskets, shrinkage=0.1), baskets)
    >>> found.names
    ('model', 'independent items', 'popularity', 'item-to-item', 'EASE')
    >>> found.difference("model", "independent items").verdict
    'better'
    """
    named = _named(models)
    catalogue = next(iter(named.values())).catalogue
    baskets, left_out = known_baskets(baskets, catalogue, unknown)
    if not baskets.total_weight > 0:
        raise InputError(f"{len(baskets)} baskets of total weight {baskets.total_weight:g}: nothing to evaluate on")
    setting = Setting.of(any(model.nonempty for model in named.values()), k, tasks)
    rng = np.random.default_rng(rng)
    # The draws for EASE come from a stream of their own, so that the questions do not depend on `train`.
    of_ease = rng.spawn(1)[0]
    known = None if train is None else known_baskets(train, catalogue, unknown)[0]
    learned = _learned(named, known, of_ease)
    distributions = {name: distribution_over(model, catalogue) for name, model in named.items()}
    blends = _blends(named, distributions, catalogue)
    rows, sampled = _sample(baskets, max_baskets, rng)
    tested = baskets.subset(rows)
    with shown_progress(progress) as shown:
        answers = _answers(distributions, blends, learned, tested, setting, rng, shown)
    notes = (*_training_data(named, baskets), *sampled, *learned.notes, *left_out.notes)
    return Evaluation((*named, *blends), answers, tested, setting, rows, notes)


def cross_validate(
    baskets: Baskets | Iterable[Iterable[Any]],
    models: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    folds: int = 5,
    tested_folds: int | None = None,
    k: int | Sequence[int] = KS,
    tasks: Sequence[str] = TASKS,
    max_baskets: int | None = MAX_BASKETS,
    rng: Seed = 0,
    progress: bool = False,
    **fit_options: Any,
) -> Evaluation:
    """Evaluate by cross-validation: each fold is tested with models and baselines fitted to the other folds.

    Parameters
    ----------
    baskets : Baskets or list of lists
        The catalogue is the same in every fold. If weights are counts, the baskets of a row are divided among the
        folds. Baskets of weight 0 are left out.
    models : dict, optional
        Options of `fit` or `fit_dpp` by name, such as ``{"em": {"learner": "em"}, "mixture": {}}``. A DPP is fitted if
        `learner`, `init` or `shrinkage` is given or `model` is "dpp". By default one mixture.
    folds : int, default 5
        Number of folds of nearly equal size, drawn at random.
    tested_folds : int, optional
        Test only the first so many folds, to save time.
    k, tasks, progress
        As in `evaluate`.
    max_baskets : int or None, default 10,000
        In all folds together; of larger folds a random sample is tested.
    rng : int or numpy.random.Generator, default 0
        Seed of the folds, the fits and the held-out items.
    fit_options
        Options of `fit` or `fit_dpp` for all models. Whether models are conditioned on nonempty baskets is decided
        once, from all baskets.

    Returns
    -------
    Evaluation
        Over all tested baskets; `fold_means` has the mean of each fold.

    Examples
    --------
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10
    >>> found = cross_validate(baskets, {"em": {"learner": "em"}}, folds=2)
    >>> found.names
    ('em', 'independent items', 'popularity', 'item-to-item', 'EASE')
    >>> found.fold_means("em").shape
    (2,)
    """
    baskets = as_baskets(baskets)
    counted = np.flatnonzero(baskets.weights > 0)
    baskets = baskets.subset(counted)
    options = models or {DEFAULT_NAME: {}}
    fits = {name: _settled(settings_of(**{**fit_options, **each}), baskets) for name, each in options.items()}
    setting = Setting.of(any(each.nonempty for each in fits.values()), k, tasks)
    rng = np.random.default_rng(rng)
    if whole_number("folds", folds, 2) > baskets.n_units:
        raise InputError(f"folds must be at most {baskets.n_units}, the number of baskets, got {folds}")
    weights = baskets.folds(folds, rng)[: tested_folds or folds]
    most = None if max_baskets is None else -(-max_baskets // len(weights))
    parts, rows, ridges = [], [], []
    with shown_progress(progress) as shown:
        bar = shown.bar("fits", len(fits) * len(weights))
        for of_fold in weights:
            train = baskets.weighted(baskets.weights - of_fold)
            distributions = {}
            for name, settings in fits.items():
                distributions[name] = fit_with(settings, train, rng=int(rng.integers(2**63))).model.distribution
                bar.advance(text=name)
            learned = learn_baselines(train, rng.spawn(1)[0])
            ridges.append(f"{learned.ridge:g}")
            tested = np.flatnonzero(of_fold)
            tested = tested[_sample(baskets.subset(tested), most, rng)[0]]
            test = baskets.subset(tested).weighted(of_fold[tested])
            parts.append(_answers(distributions, {}, learned, test, setting, rng))
            rows.append(tested)
    notes = (
        f"{len(weights)} of {folds} folds were tested, each by models and baselines fitted to the other {folds - 1}.",
        f"Ridge of EASE per training basket, chosen in each fold: {', '.join(ridges)}.",
    )
    row, fold = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    order = np.lexsort((fold, row))  # by basket, then by fold
    answers = {name: joined([part[name] for part in parts], order) for name in parts[0]}
    row, fold = row[order], fold[order]
    every = baskets.subset(row).weighted(weights[fold, row])
    return Evaluation(tuple(fits), answers, every, setting, counted[row], notes, fold)


def _sample(baskets: Baskets, most: int | None, rng: np.random.Generator) -> tuple[Ints, tuple[str, ...]]:
    """Return the rows to evaluate, and a note if they are a sample."""
    n = len(baskets)
    if most is None or n <= whole_number("max_baskets", most, 1):
        return np.arange(n), ()
    note = f"{most:,} of {n:,} baskets were drawn at random; pass max_baskets=None (--all) to evaluate all."
    return np.sort(rng.choice(n, most, replace=False)), (note,)


def _answers(
    distributions: Mapping[str, SetDistribution],
    blends: Mapping[str, Predictor],
    learned: Learned,
    baskets: Baskets,
    setting: Setting,
    rng: np.random.Generator,
    shown: Progress = SILENT,
) -> dict[str, Outcomes]:
    """Ask the models, their blends with item-to-item and the baselines the same questions."""
    clash = next((name for name in distributions if name in BASELINES), None)
    if clash is not None:
        raise InputError(f"a model has the name of a baseline, {clash!r}; use another name")
    if setting.nonempty:
        distributions = {name: each.with_p_empty(0.0) for name, each in distributions.items()}
    predictors = {
        **{name: model_predictor(each) for name, each in distributions.items()},
        **blends,
        **baselines(learned, next(iter(distributions.values())), nonempty=setting.nonempty),
    }
    questions = ask(baskets, rng, setting.tasks)
    bar = shown.bar("evaluating", len(predictors) * len(questions.partial))
    with one_blas_thread():  # the matrices of one question are narrow: more threads double the CPU time
        return {name: answer(each, questions, setting.k, bar.advance) for name, each in predictors.items()}


def _training_data(models: Mapping[str, SetModel], baskets: Baskets) -> Iterator[str]:
    """Yield a warning for each model that was fitted to these baskets: same item frequencies, same distinct sets."""
    for name, model in models.items():
        known = model.training
        if known is not None and model.catalogue == baskets.catalogue:
            same_items = np.allclose(known.frequencies, baskets.frequencies(), rtol=1e-9, atol=0)
            counted = baskets.subset(baskets.weights > 0)
            if same_items and model.learned.digest in (None, counted.deduplicated().digest()):
                yield f"These seem to be the training baskets of {name}: its results on unseen baskets will be worse."


def _named(models: Model | Mapping[str, Model]) -> dict[str, SetModel]:
    named: dict[str, Any] = dict(models) if isinstance(models, Mapping) else {DEFAULT_NAME: models}
    if not named:
        raise InputError("models is empty; pass at least one model")
    for name, model in named.items():
        if not isinstance(model, SetModel | FitResult):
            expected = "expected a DPP, a Mixture, the result of a fit, or a dict of those by name"
            raise InputError(f"{name!r} is a {type(model).__name__}; {expected}")
    return {name: model.model if isinstance(model, FitResult) else model for name, model in named.items()}


def _learned(models: Mapping[str, SetModel], train: Baskets | None, rng: np.random.Generator) -> Learned:
    """Return what baselines learn from: `train`, else the counts of the first model that has the first catalogue."""
    if train is not None:
        return learn_baselines(train, rng)
    catalogue = next(iter(models.values())).catalogue
    for model in models.values():
        if model.training is not None and model.catalogue == catalogue:
            return learn_baselines(model.training, rng)
    return Learned(None, notes=(NO_TRAINING,))


def _blends(
    named: Mapping[str, SetModel], distributions: Mapping[str, SetDistribution], catalogue: Catalogue
) -> dict[str, Predictor]:
    """Return what `recommend` with blend="auto" ranks by, for the models that learned a blend weight."""
    return {
        f"{name}, blended": blend_predictor(distributions[name], model.training, model.training.blend)
        for name, model in named.items()
        if model.training is not None and model.training.blend is not None and model.catalogue == catalogue
    }


def _settled(settings: Settings, baskets: Baskets) -> Settings:
    """Return the settings with `nonempty` decided by all baskets: a single fold may contain all empty baskets."""
    task = settings.task(baskets)
    task.check_memory()
    return replace(settings, nonempty=task.problem.nonempty)
