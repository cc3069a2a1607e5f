"""The strength of the prior, by cross-validation: the strongest that predicts unseen baskets as well as the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.fitting.prior import centre, pseudo_baskets, with_prior
from dpplearn.fitting.runs import Method
from dpplearn.kernels.families import law_of
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Stop
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import moments_kernel
from dpplearn.tools.threads import one_blas_thread, thread_count

STRENGTHS = (np.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.0)  # strongest first: each fit starts from the one before
FOLDS = 5
CLEARLY, WEAK = 3, 0.3  # standard errors, and the strength that is always tried
POLL = 0.1  # seconds
ENOUGH = 2000  # unseen baskets; once the folds so far have as many, the others are not needed
TOLERANCE, MAX_ITER = 1e-3, 100  # of the fits to a fold: what strengths differ by is more than is then still to gain


@dataclass(frozen=True, eq=False)
class Search:
    """The log-probabilities of unseen baskets under each strength tried, and the model of each fold, from which the
    next strength starts."""

    held_out: Floats  # (n_strengths, n_baskets)
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class PriorChoice:
    """How well each strength predicted baskets that the model had not seen, and which was taken.

    `inf` is the model of independent items. The figures of the strengths are of the same baskets, so that they are
    compared basket by basket: `below` is how far a strength is below the best, and `standard_error` that of this
    difference. Taken is the strongest that is below by no more than one standard error.

    Examples
    --------
    >>> unseen = np.array([[-2.0, -2.2, -2.1], [-1.5, -1.6, -1.4], [-1.4, -1.65, -1.4]])
    >>> choice = PriorChoice(np.array([np.inf, 1.0, 0.1]), unseen, weights=np.ones(3))
    >>> choice.strength  # 0.1 is best on average, but by no more than its standard error
    1.0
    """

    strengths: Floats  # strongest first
    held_out: Floats  # (n_strengths, n_unseen) log P of each kind of basket in each fold under the model without them
    weights: Floats  # (n_unseen,) how many of the kind are in the fold

    @cached_property
    def log_likelihood(self) -> Floats:
        """The mean per basket, for every strength; −inf where a basket was impossible."""
        return np.asarray((self.held_out * self.weights).sum(axis=1) / self.weights.sum())

    @property
    def best(self) -> int:
        """The number of the best strength, and of those equally good, of the strongest."""
        return int(np.argmax(self.log_likelihood))

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """How far one strength is above another on average.

        Parameters
        ----------
        a, b
            The numbers of the strengths, 0 the strongest.

        Returns
        -------
        float, float
            By how much a is above b, and the standard error of that; NaN where there is none.

        Examples
        --------
        >>> unseen = np.array([[-2.0, -3.0], [-1.0, -2.0]])
        >>> PriorChoice(np.array([np.inf, 1.0]), unseen, weights=np.ones(2)).difference(1, 0)
        (1.0, 0.0)
        """
        with np.errstate(invalid="ignore"):
            apart = float(self.log_likelihood[a] - self.log_likelihood[b])
        if not np.isfinite(apart):
            return apart, np.nan
        each = self.held_out[a] - self.held_out[b]
        total = float(self.weights.sum())
        mean = float(self.weights @ each) / total
        return mean, float(np.sqrt(in_variance(self.weights) @ (each - mean) ** 2)) / total

    @cached_property
    def chosen(self) -> int:
        """The number of the strength taken."""
        for number in range(self.best):
            if np.isfinite(self.log_likelihood[number]):
                below, standard_error = self.difference(self.best, number)
                if below <= standard_error:
                    return number
        return self.best

    @property
    def gain(self) -> tuple[float, float]:
        """How far the strength taken is above independent items on average, and the standard error of that."""
        return self.difference(self.chosen, int(np.argmax(self.strengths)))

    @property
    def complete(self) -> bool:
        """Whether all strengths were tried, or the last so much worse than the best that weaker ones need not be, or
        there was nothing to try them on."""
        if np.isnan(self.held_out).any():
            return True
        last = len(self.strengths) - 1
        if last < 0 or self.strengths[last] > WEAK or len(self.strengths) == len(STRENGTHS):
            return len(self.strengths) == len(STRENGTHS)
        below, standard_error = self.difference(self.best, last)
        return below > CLEARLY * standard_error

    @property
    def strength(self) -> float:
        """The strength taken."""
        return float(self.strengths[self.chosen])

    def __repr__(self) -> str:
        lines = ["PriorChoice: strength, log-likelihood of unseen baskets, below the best (standard error)"]
        for number, strength in enumerate(self.strengths):
            value = self.log_likelihood[number]
            mark = "taken" if number == self.chosen else ""
            figures = f"{value:10.4f}"
            if np.isfinite(value):
                below, standard_error = self.difference(self.best, number)
                figures += f"  {below:8.4f} ({standard_error:.4f})"
            lines.append(f"  {strength:>5g}  {figures}  {mark}".rstrip())
        return "\n".join(lines)


def choose_prior(problem: Problem, method: Method, rng: Seed, show: Callable[[int], None]) -> PriorChoice:
    """Cross-validate strength after strength, the folds in parallel, until one is clearly worse than the best.

    Or until the time of the fit is over; then the choice is among the strengths that were tried.
    `show` is called with the number of strengths tried.
    """
    baskets = problem.baskets
    assert isinstance(baskets, Baskets)  # as options for parts see to
    if baskets.n_units < 2:  # nothing can be left out, and so nothing speaks for anything but independent items
        return PriorChoice(np.array([np.inf]), np.full((1, len(baskets)), np.nan), baskets.weights)
    n_folds = min(FOLDS, baskets.n_units)
    used = min(n_folds, -(-ENOUGH * n_folds // baskets.n_units))
    unseen = baskets.folds(n_folds, np.random.default_rng(rng))[:used]
    weights = unseen[unseen > 0]
    search = Search(np.empty((0, len(weights))))
    choice = _choice(search, weights)
    if not choice.complete:
        with _folds(problem, baskets, unseen, method) as of_folds:
            while not choice.complete:
                found = of_folds(STRENGTHS[len(choice.strengths)], search.kernels)
                if found is None:
                    break
                row = np.concatenate([scores for _, scores in found])
                choice = _choice(Search(np.vstack([search.held_out, row])), weights)
                kernels = () if choice.complete else tuple(kernel for kernel, _ in found)
                search = Search(choice.held_out, kernels)
                show(len(search.held_out))
    return choice


def _choice(search: Search, weights: Floats) -> PriorChoice:
    return PriorChoice(np.array(STRENGTHS[: len(search.held_out)]), search.held_out, weights)


OfFolds = Callable[[float, Sequence[Kernel]], list[tuple[Kernel, Floats]] | None]


@contextmanager
def _folds(problem: Problem, baskets: Baskets, unseen: Floats, method: Method) -> Iterator[OfFolds]:
    """Within, call the function with a strength, and the models of the folds at the strength before: each fold's
    model, and the log-probabilities of the baskets that it did not see; None if the time of the fit is over before all
    are learned to the end. The folds share the threads."""
    n_folds = len(unseen)
    limits = replace(method.limits, max_iter=MAX_ITER)
    if not method.learner.as_published:
        limits = replace(limits, tol=max(limits.tol, TOLERANCE))
    method = replace(method, limits=limits, validation=None)
    threads, nonempty = thread_count(problem.threads), problem.nonempty
    workers = min(threads, n_folds)
    problem = replace(problem, threads=threads // workers)

    parts = [baskets.weighted(baskets.weights - left_out) for left_out in unseen]
    pseudo: list[Baskets] = []
    cancelled = Event()

    def one(fold: int, strength: float, kernel: Kernel | None) -> tuple[Kernel, Floats] | None:
        beside = pseudo[fold] if np.isfinite(strength) else None
        part = replace(problem, baskets=parts[fold])
        learned = learned_at(part, beside, strength, kernel, method, cancelled)
        if learned is None:
            return None
        left_out = baskets.weighted(unseen[fold])
        return learned, law_of(learned, nonempty=nonempty).log_probabilities(left_out, problem.threads)

    def all_folds(strength: float, kernels: Sequence[Kernel]) -> list[tuple[Kernel, Floats]] | None:
        for part in parts[len(pseudo) :] if np.isfinite(strength) else ():
            if method.out_of_time():
                return None
            pseudo.append(pseudo_baskets(part, nonempty=nonempty))
        before: Sequence[Kernel | None] = kernels or [None] * n_folds
        futures = [executor.submit(one, fold, strength, before[fold]) for fold in range(n_folds)]
        while wait(futures, POLL).not_done:  # a main thread that sleeps until the end may not hear of Ctrl-C
            pass
        found = [future.result() for future in futures]
        learned = [each for each in found if each is not None]
        return learned if len(learned) == len(found) else None

    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="dpplearn-fold") as executor:
        try:
            yield all_folds
        finally:  # after Ctrl-C, what is under way ends with its next step
            cancelled.set()
            executor.shutdown(wait=True, cancel_futures=True)


def learned_at(
    train: Problem, pseudo: Baskets | None, strength: float, kernel: Kernel | None, method: Method, cancelled: Event
) -> Kernel | None:
    """The model of a strength, from that of the strength before; None if there is no time to learn it to the end.
    Without sets of the prior, independent items: an infinite strength. They are no start: a saddle."""
    if pseudo is None:
        return centre(train.baskets, nonempty=train.nonempty)
    baskets = with_prior(train.baskets, pseudo, strength, nonempty=train.nonempty)
    saddle = kernel is None or np.count_nonzero(kernel.eigenvectors) == kernel.n_items
    run = method.run(
        lambda: moments_kernel(baskets) if saddle or kernel is None else kernel,
        replace(train, baskets=baskets),
        lambda now: cancelled.is_set(),
    )
    assert isinstance(run.kernel, Kernel)
    return run.kernel if run.stop is not Stop.MAX_SECONDS else None
