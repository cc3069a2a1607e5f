"""fit and fit_dpp: a mixture or a symmetric DPP from baskets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from dpplearn.arrays import Seed
from dpplearn.data.parts import AnyBaskets
from dpplearn.learners.checkpoint import Callback
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import DPPSettings, MixtureSettings
from dpplearn.learners.train import fit_with
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture


def fit(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    segments: int | None = None,
    rank: int | None = None,
    attraction: bool | int = True,
    start: Mixture | FitResult[Mixture] | str | PathLike[str] | None = None,
    restarts: int = 1,
    validation: float | None = None,
    nonempty: bool | str = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    rng: Seed = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[Mixture]:
    """Fit a mixture of DPPs to baskets.

    The segments of the mixture share one interaction matrix, with a symmetric part (repulsion) and a skew part
    (attraction), and differ in the log-odds of the items. The returned model is never worse on the training objective,
    the log-likelihood minus penalties, than independent items or `start`. Ctrl-C raises `KeyboardInterrupt`.

    With up to 300 items the interaction matrix is dense. L-BFGS learns the segments first, without interaction, and
    then everything. With more items the interaction is low-rank. It is learned in a fixed number of passes over the
    baskets, and `tol` does not apply.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets. With `Parts` the statistics are summed over the parts; up to 300 items.
    segments : int, optional
        Number of segments. Default 10, and 30 with more than 300 items.
    rank : int, optional
        Rank of the repulsive (symmetric) part of the interaction. Default 20, and 8 with more than 300 items.
    attraction : bool or int, default True
        Whether items can attract each other. An integer asks for a low-rank interaction with this number of pairs of
        attracting columns; with more than 300 items, True means 96.
    start : Mixture, FitResult or path, optional
        Initial model of the first run. Items are matched by name. New items start independent; items that the baskets
        lack are left out. The file of a `Checkpoint` continues an interrupted fit if the other arguments are the same.
    restarts : int, default 1
        Number of runs. Each starts at random, but for the first where `start` is given. The best run is returned.
    validation : float, optional
        Fraction of the baskets to hold out. One half of them chooses the best iteration, and ends a run after 10
        iterations without improvement; the other half measures the gain over independent items. Default 0, and with
        more than 300 items between 0.02 and 0.1, at most 5,000 baskets.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    tol : float, optional
        Stop when the expected further improvement is below `tol` nats per basket. Default 0.002: smaller values do not
        predict better.
    max_iter : int, default 1000
        Maximum number of iterations per run, with those in which the segments are learned. With 0 the start is
        returned.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores. The result is reproducible for the same number.
    rng : int or numpy.random.Generator, optional
        Seed for random starts and the held-out baskets.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit. A `Checkpoint` saves the
        best model so far.

    Returns
    -------
    FitResult
        The model, the log-likelihood after each iteration, and the reason for stopping.

    Raises
    ------
    InputError
        If there are no baskets, if an argument is invalid, or if the fit needs more memory than there is.

    Examples
    --------
    >>> result = fit([["tea", "milk"], ["tea"], ["beer"], ["beer", "nuts"]] * 30, segments=2, rng=0)
    >>> [each.item for each in result.model.recommend(["tea"], k=1)]
    ['milk']
    """
    shared = restarts, validation, nonempty, tol, max_iter, max_seconds, threads
    settings = MixtureSettings(*shared, segments, rank, attraction)
    return fit_with(settings, baskets, start=start, rng=rng, callback=callback)


def fit_dpp(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    learner: str = "lbfgs",
    *,
    init: str = "moments",
    start: DPP | FitResult[DPP] | str | PathLike[str] | None = None,
    restarts: int = 1,
    shrinkage: float | str | None = None,
    validation: float | None = None,
    nonempty: bool | str = "auto",
    tol: float | None = None,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    rng: Seed = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[DPP]:
    """Fit a symmetric DPP to baskets by maximum likelihood.

    The returned model is never worse on the training objective than `start`, nor than independent items. Exceptions
    from the latter: "em" and "k-ascent", which follow the paper. Ctrl-C raises `KeyboardInterrupt`.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets. With `Parts` the statistics are summed over the parts.
    learner : {"lbfgs", "em", "k-ascent", "natural-em", "picard", "mm", "adam"}, default "lbfgs"
        Optimisation method. "em" and "k-ascent" are Algorithms 2 and 1 of [1]_. "lbfgs" reaches the same or a better
        likelihood in less time.
    init : {"moments", "wishart"}, default "moments"
        Initial kernel, as in Section 5 of [1]_. Ignored if `start` is given.
    start : DPP, FitResult or path, optional
        Initial model of the first run. Items are matched by name. New items start nearly independent at their
        frequency; items that the baskets lack are marginalised out.
    restarts : int, default 1
        Number of runs. Runs after the first start from random kernels. The best run is returned.
    shrinkage : float or "auto", optional
        Weight s of independent items in the returned model, between 0 and 1. After learning, the marginal kernel
        becomes (1 − s) K + s diag(p) with smoothed item probabilities p, and item odds are rescaled to the smoothed
        item frequencies. If s > 0, every set has a positive probability. "auto" chooses s by 5-fold cross-validation.
        Default "auto" for "lbfgs", and 0 for the other learners and for baskets in parts.
    validation : float, optional
        Fraction of the baskets to hold out. One half of them chooses the best iteration, and ends a run after 10
        iterations without improvement; the other half measures the gain over independent items. Default 0.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default "lbfgs" does so if no basket is empty. Of
        the other learners only "adam" can.
    tol : float, optional
        Stop when the expected further improvement is below `tol` nats per basket. For "em" and "k-ascent": stop when
        the relative change of the mean log-likelihood is below `tol`, as in [1]_. Default 1e-4.
    max_iter : int, default 1000
        Maximum number of iterations per run. With 0 the start is returned.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores. The result is reproducible for the same number.
    rng : int or numpy.random.Generator, optional
        Seed for random starts, folds and the held-out baskets.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit. A `Checkpoint` saves the
        best model so far.

    Returns
    -------
    FitResult
        The model, the log-likelihood after each iteration, and the reason for stopping.

    Raises
    ------
    InputError
        If there are no baskets, if an argument is invalid, if a basket is larger than the rank of `start`, or if the
        fit needs more memory than there is.

    References
    ----------
    .. [1] Gillenwater, Kulesza, Fox, Taskar. Expectation-Maximization for Learning Determinantal Point Processes.
       NIPS 2014.

    Examples
    --------
    >>> result = fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1)
    >>> [each.item for each in result.model.recommend(["cot"])]
    ['bib', 'crib']
    """
    shared = restarts, validation, nonempty, tol, max_iter, max_seconds, threads
    settings = DPPSettings(*shared, learner, init, shrinkage)
    return fit_with(settings, baskets, start=start, rng=rng, callback=callback)
