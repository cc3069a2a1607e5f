"""fit: from baskets to a model, phase after phase."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError
from dpplearn.fitting.checkpoint import saver
from dpplearn.fitting.data import Data
from dpplearn.fitting.effort import (
    LONG,
    Effort,
    check_fit_memory,
    fit_effort,
    tell_if_long,
)
from dpplearn.fitting.fixed_kernels import fit_kernels
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.phases import (
    baskets_with_prior,
    best_run,
    independent_items,
    method_of,
    prior_of,
    result_of,
    state_of,
)
from dpplearn.fitting.quality import fit_quality
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import Work
from dpplearn.fitting.watching import Callback, observers_of
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.learners.factored.starts import columns_of
from dpplearn.learners.loop import Stop
from dpplearn.learners.registry import FACTORED, QUALITY
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture, SegmentKernel
from dpplearn.tools.files import check_writable
from dpplearn.tools.threads import suitable_blas
from dpplearn.tools.words import duration

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
    start: Start = None,
    restarts: int = 1,
    rng: Seed = None,
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    prior: float | str | None = None,
    validation: float | None = None,
    patience: int | None = None,
    nonempty: bool | str = "auto",
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = 10.0,
    resume: str | PathLike[str] | None = None,
    features: Any = None,
    similarity: Any = None,
    ridge: float | str = "evidence",
) -> FitResult:
    """Learn a model of sets from baskets.

    No fit ends below independent items on what it maximises, but for "em" and "k-ascent", which do as published; nor
    below the model given as a start.

    Ctrl-C returns the best model so far, with `stop` set to `Stop.INTERRUPTED`. While a prior is chosen there is none
    yet, and `KeyboardInterrupt` is raised; with a checkpoint, what is known of the strengths is kept.

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
        Where a DPP starts: "moments", a start from item and pair frequencies, or "wishart", a random one. With "auto"
        on up to 30 items, "moments" is the best of that and some random ones after short runs.
    model
        "mixture", segments of people that share how items repel and attract and differ in what they like, which
        predicts best; or "dpp", a symmetric DPP, in which items repel each other. docs/results/models.md compares them.
        By default a mixture, unless `learner`, `init`, `prior` or a start ask for a DPP.
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
        A kernel, or a model whose items are matched by label: items that it lacks start nearly independent at
        their frequency, items that the baskets lack are marginalised out. Replaces `init` in the first run.
    restarts
        How many runs, of which the best is returned. A start that is not random is used once; the others are
        drawn at random. `FitResult.agreement` says whether they found the same optimum.
    rng
        Seed or generator of the random starts, and of the parts for cross-validation and validation.
    tol
        Stop when no more than this is still to be gained, in nats per basket, as judged by what the second half of the
        run gained: by default 1e-4, and 0.002 for a mixture, where more predicts no better. For "em" and "k-ascent",
        the rule of the paper's authors: stop when the mean log-likelihood changes by at most this much relative to
        itself, which says little about how much is still to be gained. A mixture in factors is learned in as many
        passes over the baskets as are planned.
    max_iter, max_seconds
        Limits of a run, and of the whole fit. With `max_iter=0` the model is the start. Time is looked at between the
        parts of a fit, and what cannot be ended in it, to judge by a short measurement, is not begun: where there is
        none for a first step, the model is the start or that of independent items, whichever is likelier. Of a fit that
        will take longer than a minute a warning tells about how long, and one that needs more memory than there is is
        refused.
    threads
        How many threads (default: all cores). The result is the same to the last bit for the same number.
    prior
        How much the model of independent items counts beside the data: sets of it, of this many times the data's
        weight (up to 1e9), are learned from as well. 0 is maximum likelihood; inf gives independent items; "auto" takes
        the strongest prior that predicts unseen baskets as well as the best, by cross-validation. With any prior no set
        has probability zero. By default "auto" for the learner of that name, and 0 for the others, which then do as
        published, and for baskets in parts. docs/guide/small-data.md says what it brings, and what it costs.
    validation, patience
        Set this share of the baskets aside, stop when they have become no likelier for `patience` iterations, by
        default 10, and return the model under which they were likeliest. By default none are set aside; of a mixture
        in factors a fiftieth, at most 5,000 baskets, and it learns to the end of its plan.
    nonempty
        Whether baskets cannot be empty, so that what is learned is P(Y given Y ≠ ∅), which all that the model says is
        then about. By default they cannot where none is; but "em", "k-ascent" and the others published since learn
        P(Y), and of those "lbfgs" and "adam" alone can do otherwise.
    callback
        Called with a `FitProgress` after every iteration; a true return value stops the fit.
    progress
        Show a progress bar on standard error.
    checkpoint, checkpoint_seconds
        Write the state to this file every so many seconds, and at the end. Where that fails, as on a full disk, there
        is a warning, learning goes on, and so do the attempts.
    resume
        Continue from this file, in a call that is otherwise the same, to the result of an uninterrupted run.
        The random starts come from the file. Limits may differ: they apply to the run under way, its past included;
        runs already finished stay as they are.
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
    >>> result = fit([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, prior=0.1)
    >>> [each.item for each in result.dpp.recommend(["cot"])]
    ['bib', 'crib']
    """
    options = asked_for(
        start,
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
        prior=prior,
        validation=validation,
        patience=patience,
        nonempty=nonempty,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        resume=resume,
        features=features,
        similarity=similarity,
        ridge=ridge,
    )
    if kernels is not None:
        return fit_kernels(options, baskets, kernels, k, start=start, callback=callback)
    if k is not None:
        raise InputError(f"k is {k!r}, which belongs to given kernels (kernels=); leave it out")
    return fit_with(options, baskets, start=start, rng=rng, callback=callback)


def model_of(start: Any) -> str | None:
    """The kind of model that a start asks for."""
    return "mixture" if isinstance(start, Mixture) else "dpp" if isinstance(start, DPP | Kernel) else None


def asked_for(start: Any = None, **options: Any) -> FitOptions:
    """The options of a call of `fit`. Unless they name a model or what only a DPP has, a start decides what is learned,
    and of how many segments."""
    options = {name: value for name, value in options.items() if name not in NOT_OPTIONS}
    start = start.model if isinstance(start, FitResult) else start
    named = any(options.get(name) is not None for name in ("model", "learner", "init", "prior"))
    if not named:
        options["model"] = model_of(start)
    asked = FitOptions(**options)
    return _shaped_like(start.kernel, asked) if isinstance(start, Mixture) and asked.how.model == "mixture" else asked


def _shaped_like(start: SegmentKernel, asked: FitOptions) -> FitOptions:
    """With what a start says of what was not asked for: how many segments, and in factors of how many columns."""
    asked = replace(asked, segments=start.n_segments) if asked.segments is None else asked
    columns = columns_of(start) if isinstance(start, FactoredKernel) else None
    named = asked.rank is not None or asked.attraction is not True or asked.learner not in (None, FACTORED.name)
    return asked if columns is None or named else replace(asked, rank=columns[0], attraction=columns[1])


def fit_with(
    options: FitOptions,
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    start: Start = None,
    rng: Seed = None,
    callback: Callback | None = None,
    as_weighed: bool = False,
) -> FitResult:
    """`fit`, with its options in one value; and with weights that say how many baskets there were even where they are
    no whole numbers, if that is asked for."""
    baskets = baskets if isinstance(baskets, Parts) else as_baskets(baskets)
    start = start.model if isinstance(start, FitResult) else start
    if not isinstance(start, Kernel | DPP | Mixture | None):
        expected = "expected a Kernel, a DPP, a Mixture or the result of an earlier fit"
        raise InputError(f"start is a {type(start).__name__}; {expected}")
    if isinstance(start, Mixture) and isinstance(start.kernel, WeightedKernel):
        raise InputError("start is a mixture of given laws, of which nothing but the weights is learned (kernels=)")
    if model_of(start) not in (None, options.how.model):
        raise InputError(f"start is a {type(start).__name__}, from which no {options.how.model} can be learned")
    options = options.for_baskets(baskets)
    check_fit_memory(baskets, options)
    if options.how is QUALITY:
        if start is not None:
            raise InputError(f"start is a {type(start).__name__}, and learner 'quality' looks at none; leave it out")
        return fit_quality(options, baskets, rng, callback)
    if options.checkpoint is not None:
        check_writable(Path(options.checkpoint))
    data = Data.of(baskets, as_weighed=as_weighed)
    state = state_of(options, data.distinct, "given" if start is not None else options.first_start, rng)
    began = time.perf_counter() - state.elapsed
    if options.resume is None:
        _tell_if_long(options, data.distinct)
    with suitable_blas(baskets.n_items, options.threads):
        data = data.without(options.aside, state.seeds[-1])
        method = method_of(options, data, lambda: time.perf_counter() - began)
        save = saver(options.checkpoint, options.checkpoint_seconds)
        choice, state = prior_of(options, data, method, state, save)
        strength = choice.strength if choice is not None else float(options.strength)
        if np.isinf(strength):
            end = independent_items(options, data, method, state, save, choice)
        else:
            problem = data.problem(options, baskets_with_prior(options, data.distinct, strength))
            with observers_of(options.restarts, options.progress, callback) as observers:
                end = best_run(Work(method, problem, start, observers, save), state)
        try:
            return result_of(options, data, method, end, strength, choice)
        except KeyboardInterrupt:  # the model is there; a second Ctrl-C would be heard
            return result_of(options, data, method, replace(end, stop=Stop.INTERRUPTED), strength, choice)


def expected_effort(baskets: Baskets, **options: Any) -> Effort:
    """What `fit` with these options will take; what it refuses is refused."""
    asked = asked_for(**{name: value for name, value in options.items() if name not in NOT_OPTIONS}).for_baskets(
        baskets
    )
    check_fit_memory(baskets, asked)
    found = fit_effort(baskets.deduplicated(), asked)
    return found._replace(seconds=min(found.seconds, asked.max_seconds or np.inf))


def _tell_if_long(options: FitOptions, distinct: AnyBaskets) -> None:
    limit = options.max_seconds
    if limit is not None and limit < LONG:
        return
    limited = "sets a limit" if limit is None else f"ends it after {duration(limit)}"
    instead = f"max_seconds (--max-seconds) {limited}, with the best model so far"
    tell_if_long(fit_effort(distinct, options), "this fit", instead)
