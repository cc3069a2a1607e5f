"""cross_validate: every basket tested once, by models that did not see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dpplearn.arrays import Ints, Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.evaluation.evaluation import (
    KS,
    ONLY,
    Answers,
    Setting,
    answer,
    learned_from,
    lengths,
    predictors_of,
    summary,
)
from dpplearn.evaluation.outcomes import Outcomes, ask
from dpplearn.evaluation.result import Evaluation
from dpplearn.learners.settings import Settings, settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.model import SetModel
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.words import listed

NOT_SETTINGS = ("rng", "callback")  # options of fits that are not in their settings


def cross_validate(
    baskets: Baskets | Iterable[Iterable[Any]],
    models: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    folds: int = 5,
    k: int | Sequence[int] = KS,
    rng: Seed = 0,
    progress: bool = False,
    **fit_options: Any,
) -> Evaluation:
    """Learn on all folds but one and evaluate on that one, in turn; then all baskets together.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it. The catalogue stays whole in every fold.
        Where weights are counts each basket falls into a fold by itself, so that there is an outcome for every kind of
        basket in every fold that has some; baskets of weight 0 are left out.
    models
        Options of `fit` or `fit_dpp` by the name of the model, such as {"em": {"learner": "em"}, "mixture": {}}. A DPP
        is fitted where `learner`, `init` or `shrinkage` is given, or `model` is "dpp". By default one mixture.
    folds
        How many parts of (nearly) equal size, drawn at random.
    k, progress
        As `evaluate` takes them.
    rng
        Seed or generator of the folds, the fits, the items held out and the random sets.
    fit_options
        Options of `fit` or `fit_dpp` for all models. Whether the distribution is conditioned on nonempty baskets is
        decided by all baskets, for all folds; if one model is, all are evaluated so.

    Returns
    -------
    Evaluation
        As of `evaluate`, over all baskets; `fold_means` tells the folds apart.

    Examples
    --------
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10
    >>> found = cross_validate(baskets, {"em": {"learner": "em"}}, folds=2)
    >>> found.names
    ('em', 'independent items', 'popularity', 'item-to-item', 'cosine', 'EASE')
    >>> found.fold_means("em").shape
    (2,)
    """
    baskets = as_baskets(baskets)
    counted = np.flatnonzero(baskets.weights > 0)
    baskets = baskets.subset(counted)
    options = {name: _settled({**fit_options, **each}, baskets) for name, each in (models or {ONLY: {}}).items()}
    nonempty = any(each["nonempty"] for each in options.values())
    setting = Setting(tuple(options), nonempty, lengths(k))
    rng = np.random.default_rng(rng)
    if whole_number("folds", folds, 2) > baskets.n_units:
        raise InputError(f"{folds} folds of {baskets.n_units} baskets leave some fold empty; ask for fewer")
    for each in options.values():
        _settings(each).task(baskets).check_memory()
    tested, parts, ridges = baskets.folds(folds, rng), [], []
    with shown_progress(progress) as shown:
        advance = shown.grouped(dict.fromkeys(options, folds))
        for weights in tested:
            train, test = baskets.weighted(baskets.weights - weights), baskets.weighted(weights)
            laws = {}
            for name, each in options.items():
                laws[name] = _learned(train, each, rng)
                advance(name)
            learned = learned_from(train, rng.spawn(1)[0])
            ridges.append(f"{learned.ridge:g}")
            parts.append(answer(predictors_of(laws, learned, nonempty), ask(test, rng), setting))
    notes = (
        f"Every basket was tested once, by models and baselines learned from the other {folds - 1} of {folds} folds.",
        f"The ridge of EASE per training basket, by a fifth of them in each fold, is {listed(ridges)}.",
    )
    row, fold = np.nonzero(tested.T)  # in the order of the baskets
    every = baskets.subset(row).weighted(tested[fold, row])
    joined = _joined(parts, [np.flatnonzero(fold == number) for number in range(folds)])
    return summary(joined, every, setting, notes, folds=fold, rows=counted[row])


def _settled(options: Mapping[str, Any], baskets: Baskets) -> dict[str, Any]:
    """With the law that the data as a whole have: a fold may be the only one that holds an empty basket."""
    return {**options, "nonempty": _settings(options).task(baskets).problem.nonempty}


def _learned(train: Baskets, options: Mapping[str, Any], rng: np.random.Generator) -> SetDistribution:
    others = {name: options[name] for name in NOT_SETTINGS if name in options}
    model: SetModel = fit_with(_settings(options), train, **{"rng": int(rng.integers(2**63)), **others}).model
    return model.distribution


def _settings(options: Mapping[str, Any]) -> Settings:
    return settings_of(**{name: value for name, value in options.items() if name not in NOT_SETTINGS})


def _joined(parts: Sequence[Answers], rows: Sequence[Ints]) -> Answers:
    """All folds as one lot of baskets; `rows` are where those of each fold stand in it."""
    names = parts[0].outcomes
    found = {name: _together([part.outcomes[name] for part in parts], rows) for name in names}
    return Answers(found, sum(part.n_ranked for part in parts))


def _together(parts: Sequence[Outcomes], rows: Sequence[Ints]) -> Outcomes:
    back = np.argsort(np.concatenate(rows))
    columns = {name: np.concatenate([part.columns[name] for part in parts])[back] for name in parts[0].columns}
    unranked = np.concatenate([where[part.unranked] for where, part in zip(rows, parts, strict=True)])
    pairs = [part.pairs for part in parts if part.pairs is not None]
    sizes = [part.sizes for part in parts if part.sizes is not None]
    return Outcomes(
        columns, np.sort(unranked), reduce(add, pairs) if pairs else None, reduce(add, sizes) if sizes else None
    )
