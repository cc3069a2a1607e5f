"""fit_quality: a DPP whose similarity is given, from baskets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.data.features import as_features
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.similarity import read_similarity
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callback
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.loop import Limits, last_gain
from dpplearn.learners.problem import Learner
from dpplearn.learners.quality.distribution import Design
from dpplearn.learners.quality.problem import Blend, QualityProblem, quality
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings, Task
from dpplearn.learners.train import fit_task
from dpplearn.models.dpp import DPP

LEARNER = "quality"
UNIFORM, EVIDENCE = "uniform", "evidence"
START = "frequencies"  # what the weights start from


def fit_quality(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    features: Any = None,
    similarity: Any = UNIFORM,
    ridge: float | str = EVIDENCE,
    smooth: bool = True,
    nonempty: bool | str = "auto",
    tol: float = 1e-9,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[DPP]:
    """Fit the quality of items, or the weights of item features, where the similarity of items is known.

    The model is the DPP with L = D S D, D² = exp(quality). The log-likelihood is concave in the quality. With features
    the model can be worse than independent items.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets.
    features : table, optional
        One row per item, as `read_features` takes it. Quality is then a weighted sum of features. By default every item
        has a weight of its own.
    similarity : "uniform", similarity or dict, default "uniform"
        Similarity matrix S. "uniform": the same for all pairs, with a strength that is learned. A similarity as
        `read_similarity` takes it is used as it is. Several by name, in a dict, are blended with learned strengths.
    ridge : "evidence" or float, default "evidence"
        Ridge penalty on the weights of features; "evidence" maximises the marginal likelihood.
    smooth : bool, default True
        Whether, with one weight per item, item counts are smoothed by half a basket with and half a basket without each
        item. Without it, items that never occur have probability zero.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    tol : float, default 1e-9
        Stop when a step gains less, in nats per basket.
    max_iter : int, default 1000
        Maximum number of iterations.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit.

    Returns
    -------
    FitResult
        The model, and the weights with standard errors as `quality`.

    Raises
    ------
    InputError
        If a basket is impossible under a given similarity, or an argument is invalid.

    Examples
    --------
    >>> result = fit_quality([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> [each.name for each in result.quality.rows]
    ['bib', 'cot', 'crib']
    """
    settings = Settings(tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    if ridge != EVIDENCE and not (isinstance(ridge, Real) and 0 <= float(ridge) < np.inf):
        raise InputError(f"ridge must be {EVIDENCE!r} or a number, 0 or more, got {ridge!r}")
    given = checked_baskets(baskets)
    encoded = None if features is None else as_features(features, given.catalogue)
    problem = QualityProblem(
        given,
        threads,
        resolve_nonempty(nonempty, given),
        None if encoded is None else Design.of_features(encoded),
        _blend(similarity, given),
        ridge=0.0 if ridge == EVIDENCE or encoded is None else float(ridge),
        by_evidence=ridge == EVIDENCE and encoded is not None,
        smooth=smooth and encoded is None,
        notes=() if encoded is None else encoded.notes,
    )
    problem.check_possible()
    limits = Limits(last_gain, settings.tol or 0.0, settings.max_iter, settings.max_seconds)
    learner = Learner(LEARNER, quality, last_gain)
    return fit_task(Task(learner, problem, limits, restarts=1, init=START, validation=0.0), callback=callback)


def _blend(similarity: Any, baskets: AnyBaskets) -> Blend:
    """Return one similarity as it is, named ones together with a uniform one, or the uniform one alone."""
    if isinstance(similarity, str) and similarity == UNIFORM:
        return Blend((), uniform=True)
    if isinstance(similarity, Mapping):
        if not similarity or UNIFORM in similarity:
            raise InputError(
                f"similarity names {', '.join(map(str, similarity)) or 'nothing'}; expected one or more names other "
                f"than {UNIFORM!r}, which is always included"
            )
        read = tuple(read_similarity(each, baskets.catalogue, str(name)) for name, each in similarity.items())
        return Blend(read, uniform=True, names=tuple(map(str, similarity)))
    return Blend((read_similarity(similarity, baskets.catalogue),), uniform=False, fixed=True)
