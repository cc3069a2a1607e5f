"""fit: learn a model from baskets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import as_baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError
from dpplearn.fitting.checkpoint import saved_on_exit, schedule_to_continue
from dpplearn.fitting.data import Data, check_fit_memory
from dpplearn.fitting.fixed_kernels import fit_kernels
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.phases import (
    ModelBuilder,
    Shrinkage,
    independent_items,
    method_of,
    result_of,
    shrunk,
)
from dpplearn.fitting.quality import fit_quality
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import Work, best_run
from dpplearn.fitting.watching import Callback, observers_of
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.learners.factored.place import Place
from dpplearn.learners.factored.starts import columns_of
from dpplearn.learners.loop import Run
from dpplearn.learners.registry import FACTORED, QUALITY
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import load
from dpplearn.tools.threads import suitable_blas

Start = Kernel | DPP | Mixture | FitResult | None

NOT_OPTIONS = ("rng", "callback")  # of a call of `fit`: who is told, and by chance


def fit(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    learner: str | None = None,
    init: str | None = None,
    *,
    model: str | None = None,
    segments: int | None = None,
    attraction: bool | int = True,
    rank: int | None = None,
    kernels: Sequence[Kernel | DPP | Mixture] | None = None,
    k: int | None = None,
    start: Start | str | PathLike[str] = None,
    restarts: int = 1,
    rng: Seed = None,
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    shrinkage: float | str | None = None,
    validation: float | None = None,
    patience: int | None = None,
    nonempty: bool | str = "auto",
    callback: Callback | None = None,
    progress: bool = False,
    features: Any = None,
    similarity: Any = None,
    ridge: float | str = "evidence",
) -> FitResult:
    """Learn a model of sets from baskets.

    The returned model is never worse on the training objective than independent items or `start`. Exceptions: "em" and
    "k-ascent", which follow the paper.

    Ctrl-C raises `KeyboardInterrupt`. With `callback=Checkpoint(path)` the best model so far is saved first, and
    `start=path` continues from it.

    Parameters
    ----------
    baskets
        `Baskets`; a list of lists as `Baskets.from_lists` takes it; or `Parts`, where one machine is too small, or for
        the same result with and without a cluster (docs/results/scale.md).
    learner
        How a DPP is learned: "auto", which came to the best kernels soonest in our benchmark; "em", the paper's EM, or
        "k-ascent", its baseline; or, for comparison, "natural-em", "lbfgs", "picard", "mm" or "adam".
        docs/results/learners.md describes them. "quality" learns how much each item is worth, or each feature of items,
        where it is known how alike items are; docs/guide/items.md says when that is the right choice.
    init
        Initial kernel of a DPP: "moments", from item and pair frequencies, or "wishart", a random one.
    model
        "mixture", segments of people that share how items repel and attract and differ in what they like, which
        predicts best; or "dpp", a symmetric DPP, in which items repel each other. docs/results/models.md compares them.
        By default a mixture, unless `learner`, `init`, `shrinkage` or a start ask for a DPP.
    segments, attraction, rank
        Of a mixture: how many segments, by default 10; whether items may attract each other; and of how many columns
        the part that repels is, by default 20. With more than 300 items a mixture is learned in factors, by default
        with 30 segments, 8 columns that repel and 96 pairs of columns that attract; `attraction` may be the number of
        these pairs, and asks for factors also where there are fewer items. docs/guide/large-catalogues.md says more.
    kernels, k
        Kernels or models that are given, of which a mixture by weights is learned and nothing else: the optimum, up to
        `tol`, by default 1e-8 nats per basket. With k, every basket has k items, and the weights are those of k-DPPs:
        the law of the model given that size. docs/guide/items.md says more.
    start
        Initial model of the first run, instead of `init`: a kernel, a model, the result of a fit, or the file of a
        model, such as one that `Checkpoint` wrote. Items are matched by label: items that the model lacks start nearly
        independent at their frequency, items that the baskets lack are marginalised out. For a checkpoint, pass the
        same options and the same `rng`, so that `validation` holds out the same baskets.
    restarts
        Number of runs. The best is returned. A start that is not random is used once; the other runs start at random.
    rng
        Seed or generator of the random starts, and of the parts for cross-validation and validation.
    tol
        Stop when no more than this is still to be gained, in nats per basket, as judged by what the second half of the
        run gained: by default 1e-4, and 0.002 for a mixture, where more predicts no better. For "em" and "k-ascent",
        the rule of the paper's authors: stop when the mean log-likelihood changes by at most this much relative to
        itself, which says little about how much is still to be gained. A mixture in factors is learned in as many
        passes over the baskets as are planned.
    max_iter, max_seconds
        Maximum number of iterations of a run, and time limit of the whole fit. With `max_iter=0` the model is the
        start. Time is checked after every iteration, so that a fit may take longer by one iteration and the final
        evaluation. A fit that needs more memory than there is raises an error at once.
    threads
        How many threads (default: all cores). The result is the same to the last bit for the same number.
    shrinkage
        Weight of independent items in the returned DPP, between 0 and 1. After learning, the marginal kernel becomes
        (1 − s) K + s diag(p), with p the item frequencies, smoothed by half a basket, and the odds of the items are
        rescaled to these frequencies. 0 returns the learned kernel and 1 independent items. "auto" chooses s by 5-fold
        cross-validation. If s > 0, every set has a positive probability. Default: "auto" for the learners "auto" and
        "lbfgs", 0 for all others and for baskets in parts. See docs/guide/small-data.md.
    validation, patience
        Set this share of the baskets aside, stop when they have become no likelier for `patience` iterations, by
        default 10, and return the model under which they were likeliest. By default none are set aside; of a mixture
        in factors a fiftieth, at most 5,000 baskets, and it learns to the end of its plan.
    nonempty
        Whether baskets cannot be empty, so that what is learned is P(Y given Y ≠ ∅), which all that the model says is
        then about. By default they cannot where none is; but "em", "k-ascent" and the others published since learn
        P(Y), and of those "lbfgs" and "adam" alone can do otherwise.
    callback
        Called with a `FitProgress` after every iteration; a true return value stops the fit. A `Checkpoint` saves the
        best model so far.
    progress
        Show a progress bar on standard error.
    features
        Of "quality": a table with one row per item, or what `read_features` made of it; the quality of an item is then
        a weighted sum of its features. By default every item has a weight of its own. Such a fit may end below
        independent items.
    similarity
        Of "quality": "uniform", the default, for items that are all alike to an extent that is learned; one similarity,
        as `read_similarity` takes it, for L = D S D; or several by name, such as {"type": S1, "text": S2}, whose
        strengths are learned, each with a uniform one beside it.
    ridge
        Of "quality": how strongly the weights of features are drawn to 0, by "evidence", by "cross-validation", or a
        number.

    Returns
    -------
    FitResult
        The model as `model`, how it was found, and how good it is. Printed, it is a summary.

    Examples
    --------
    >>> result = fit([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1)
    >>> [each.item for each in result.dpp.recommend(["cot"])]
    ['bib', 'crib']
    """
    given = opened_start(start)
    options = asked_for(
        given,
        model=model,
        segments=segments,
        attraction=attraction,
        rank=rank,
        learner=learner,
        init=init,
        restarts=restarts,
        tol=tol,
        max_iter=max_iter,
        max_seconds=max_seconds,
        threads=threads,
        shrinkage=shrinkage,
        validation=validation,
        patience=patience,
        nonempty=nonempty,
        progress=progress,
        features=features,
        similarity=similarity,
        ridge=ridge,
    )
    if kernels is not None:
        with saved_on_exit(callback):
            return fit_kernels(options, baskets, kernels, k, start=given, callback=callback)
    if k is not None:
        raise InputError(f"k is {k!r}, which belongs to given kernels (kernels=); leave it out")
    return fit_with(options, baskets, start=given, rng=rng, callback=callback)


def model_of(start: Any) -> str | None:
    """The kind of model that a start asks for."""
    return "mixture" if isinstance(start, Mixture) else "dpp" if isinstance(start, DPP | Kernel) else None


def asked_for(start: Any = None, **options: Any) -> FitOptions:
    """The options of a call of `fit`. Unless they name a model or what only a DPP has, a start decides what is learned,
    and of how many segments."""
    options = {name: value for name, value in options.items() if name not in NOT_OPTIONS}
    start = opened_start(start)
    named = any(options.get(name) is not None for name in ("model", "learner", "init", "shrinkage"))
    if not named:
        options["model"] = model_of(start)
    asked = FitOptions(**options)
    return _shaped_like(start, asked) if isinstance(start, Mixture) and asked.how.model == "mixture" else asked


def _shaped_like(start: Mixture, asked: FitOptions) -> FitOptions:
    """Take the number of segments, and of columns of a low-rank mixture, from the start unless they were given."""
    asked = replace(asked, segments=start.n_segments) if asked.segments is None else asked
    columns = columns_of(start.kernel) if isinstance(start.kernel, FactoredKernel) else None
    if start.training is not None and start.training.schedule is not None:  # the kernel may not have its columns yet
        repelling, attracting = start.training.schedule["columns"].tolist()
        columns = repelling, attracting
    named = asked.rank is not None or asked.attraction is not True or asked.learner not in (None, FACTORED.name)
    return asked if columns is None or named else replace(asked, rank=columns[0], attraction=columns[1])


def opened_start(start: Start | str | PathLike[str]) -> Any:
    """Load a start that is a file; of the result of a fit, take the model."""
    if isinstance(start, str | PathLike):
        return load(start)
    return start.model if isinstance(start, FitResult) else start


def fit_with(
    options: FitOptions,
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    start: Start | str | PathLike[str] = None,
    rng: Seed = None,
    callback: Callback | None = None,
    as_weighed: bool = False,
) -> FitResult:
    """`fit` with its options in one value. With `as_weighed`, weights that are no integers count baskets, too."""
    with saved_on_exit(callback):
        return _fit_with(options, baskets, opened_start(start), rng, callback, as_weighed=as_weighed)


def _fit_with(
    options: FitOptions,
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    start: Any,
    rng: Seed,
    callback: Callback | None,
    *,
    as_weighed: bool,
) -> FitResult:
    baskets = baskets if isinstance(baskets, Parts) else as_baskets(baskets)
    _check_start(start, options)
    options = options.for_baskets(baskets)
    check_fit_memory(baskets, options)
    if options.how is QUALITY:
        if start is not None:
            raise InputError(f"start is a {type(start).__name__}, and learner 'quality' looks at none; leave it out")
        return fit_quality(options, baskets, rng, callback)
    began = time.perf_counter()
    data = Data.of(baskets, as_weighed=as_weighed)
    *seeds, for_folds, seed = (
        int(each) for each in np.random.default_rng(rng).integers(2**63, size=options.restarts + 2)
    )
    whole = data.distinct
    schedule = schedule_to_continue(start, options, whole)
    if schedule is not None:  # the same validation set as before
        seed = int(schedule["seed"][0])
    with suitable_blas(baskets.n_items, options.threads):
        data = data.without(options.aside, seed)
        method = method_of(options, data, lambda: time.perf_counter() - began)
        builder = ModelBuilder(options, data, whole, method.clock, seed)
        if options.resolved_shrinkage == 1:
            end = independent_items(options, data, method)
            return result_of(builder, end, Shrinkage(end.run.kernel, 1.0))
        continued = None if schedule is None else Place.from_arrays(schedule)
        work = Work(method, builder.problem, options.first_start, start, continued, seeds)

        def build(restart: int, now: Run) -> DPP | Mixture:
            return builder.model_so_far(work.start_name(restart), restart + 1, now)

        with observers_of(options.restarts, options.progress, callback, build, builder.schedule) as observers:
            end = best_run(work, observers)
        return result_of(builder, end, shrunk(options, data, method, end, for_folds))


def _check_start(start: Any, options: FitOptions) -> None:
    if not isinstance(start, Kernel | DPP | Mixture | None):
        expected = "expected a Kernel, a DPP, a Mixture, the result of an earlier fit, or the file of a model"
        raise InputError(f"start is a {type(start).__name__}; {expected}")
    if isinstance(start, Mixture) and isinstance(start.kernel, WeightedKernel):
        raise InputError("start is a mixture of given laws, of which nothing but the weights is learned (kernels=)")
    if model_of(start) not in (None, options.how.model):
        raise InputError(f"start is a {type(start).__name__}, from which no {options.how.model} can be learned")
