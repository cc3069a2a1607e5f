"""The weights of kernels that are given, learned alone: `fit` with `kernels`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError, whole_number
from dpplearn.fitting.data import units_of
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.result import FitResult
from dpplearn.fitting.runs import Restart
from dpplearn.fitting.watching import Callback, observers_of
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.families import AnyKernel, kernel_of, law_of
from dpplearn.kernels.independent import IndependentItems, independent_log_likelihood
from dpplearn.kernels.interface import Law
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.kernels.symmetric.sizes import with_mean_size
from dpplearn.kernels.weighted.mixing import mixed
from dpplearn.learners.loop import Limits, Run, Stop, run
from dpplearn.learners.mixture.weights import WeightsProblem, weights_steps
from dpplearn.learners.stopping import never
from dpplearn.models.dpp import DPP
from dpplearn.models.mixing import law_over
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.words import count

LEARNER = "weights"
TOLERANCE = 1e-8  # nats per basket that may still be to be gained
MEANINGFUL = {"model", "tol", "max_iter", "max_seconds", "threads", "nonempty", "progress"}


@dataclass(frozen=True, eq=False)
class FixedKernels:
    """Baskets, the laws that they may come from, and what is known of every set: nothing, that it is not empty, or that
    it has k items."""

    baskets: Baskets  # distinct, over the items of the laws
    laws: tuple[Law, ...]
    nonempty: bool = False
    k: int | None = None
    threads: int | None = None

    @cached_property
    def log_known(self) -> Floats:
        """log P_c of what is known, (n_laws,)."""
        return np.array([law.log_sizes()[self.k] if self.k is not None else 0.0 for law in self.laws])

    @cached_property
    def problem(self) -> WeightsProblem:
        columns = [law.log_probabilities(self.baskets, self.threads) for law in self.laws]
        found = np.column_stack(columns) - self.log_known
        impossible = np.flatnonzero(found.max(axis=1) == -np.inf)
        if len(impossible):
            items = self.baskets.catalogue.select(self.baskets.positions(impossible[0]))
            raise InputError(
                f"{count(len(impossible), 'basket')} cannot be under any of the kernels, such as {list(items)}; leave "
                "them out, or add a kernel under which every set is possible, such as one of independent items"
            )
        return WeightsProblem.of(found, self.baskets.weights)

    def law_at(self, w: Floats) -> Law:
        """The mixture in which the laws have these weights, given what is known."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(w) - self.log_known
        shares = np.exp(log_shares - log_shares.max())  # of sizes that are very unlikely too
        return mixed(self.laws, shares / shares.sum())

    def kernel_at(self, w: Floats) -> AnyKernel:
        return kernel_of(self.law_at(w))

    def independent_log_likelihood(self) -> float:
        """Of the baskets under independent items of their frequencies, given what is known."""
        if self.k is None:
            return independent_log_likelihood(self.baskets, nonempty=self.nonempty)
        law = IndependentItems(self.baskets.frequencies())
        return float(law.mean_log_likelihood(self.baskets) - law.log_sizes()[self.k])


def fit_kernels(
    options: FitOptions,
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    kernels: Sequence[Kernel | DPP | Mixture],
    k: int | None,
    *,
    start: Any = None,
    callback: Callback | None = None,
) -> FitResult:
    """`fit`, where nothing but the weights of some kernels is to be learned."""
    _check_options(options, start)
    began = time.perf_counter()
    given = _over_kernels(baskets, kernels)
    fixed = _fixed(given, kernels, k, options)
    tol = TOLERANCE if options.tol is None else options.tol
    limits = Limits(never, tol, options.max_iter, options.max_seconds)

    def build(restart: int, now: Run) -> Mixture:
        learned = Provenance(learner=LEARNER, start="even", n_iter=now.n_iter, nonempty=fixed.nonempty, size=fixed.k)
        training = Training.of(units_of(given), now.history)
        return Mixture.of_law(fixed.law_at(now.step.parameters["weights"]), given.items, learned, training)

    with observers_of(1, options.progress, callback, build) as observers:

        def observe(now: Run) -> bool:
            answers = [observer(0, now) for observer in observers]
            return any(answers)

        steps = weights_steps(fixed.problem, fixed.kernel_at, tol)
        end = run(steps, limits, lambda: time.perf_counter() - began, observe, at_end=Stop.TOLERANCE)
    return _result(fixed, given, end, time.perf_counter() - began)


def _check_options(options: FitOptions, start: Any) -> None:
    usual = {field.name: field.default for field in fields(FitOptions) if field.init}
    asked = ["start"] if start is not None else []
    asked += [name for name, value in usual.items() if name not in MEANINGFUL and getattr(options, name) != value]
    asked += [f"model={options.model!r}"] if options.model not in (None, "mixture") else []
    if asked:
        raise InputError(f"of given kernels the weights alone are learned, to which {asked[0]} does not apply")


def _over_kernels(baskets: AnyBaskets | Iterable[Iterable[Any]], kernels: Sequence[Kernel | DPP | Mixture]) -> Baskets:
    """The baskets over the items of the kernels, if these have names."""
    if isinstance(baskets, Parts):
        raise InputError("for given kernels all baskets must be in one place, and these are in parts")
    found = as_baskets(baskets)
    if not isinstance(kernels, Sequence) or isinstance(kernels, str) or not len(kernels):
        raise InputError("kernels is no list of kernels; expected one or more of DPP, Mixture and Kernel, in a list")
    named = next((each for each in kernels if isinstance(each, DPP | Mixture)), None)
    found = found if named is None else found.over(named.catalogue)
    if not found.total_weight > 0:
        raise InputError(f"there is nothing to learn from: {len(found)} baskets of total weight {found.total_weight:g}")
    return found


def _fixed(
    baskets: Baskets, kernels: Sequence[Kernel | DPP | Mixture], k: int | None, options: FitOptions
) -> FixedKernels:
    distinct, laws = units_of(baskets).deduplicated(), [_law(each, baskets) for each in kernels]
    if k is not None:
        k = whole_number("k", k, 1, baskets.n_items)
        others = int((distinct.sizes != k).sum())
        if others or options.nonempty is False:
            have = f"{others} of {count(len(distinct), 'distinct basket')} have not" if others else "nonempty is False"
            raise InputError(f"k is {k}, which says that every basket has so many items, but {have}")
        return FixedKernels(
            distinct, tuple(_of_size(law, k, c) for c, law in enumerate(laws)), k=k, threads=options.threads
        )
    empty = int((distinct.sizes == 0).sum())
    if options.nonempty is True and empty:
        raise InputError(f"{empty} of {len(distinct)} distinct baskets are empty, but nonempty is True; leave it out")
    nonempty = not empty if options.nonempty == "auto" else bool(options.nonempty)
    if nonempty:
        laws = [WithEmptyShare(_plain(law)) for law in laws]
    return FixedKernels(distinct, tuple(laws), nonempty, threads=options.threads)


def _law(kernel: Any, baskets: Baskets) -> Law:
    if isinstance(kernel, DPP | Mixture):
        return law_over(kernel, baskets.catalogue)
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernels has a {type(kernel).__name__}; expected DPP, Mixture or Kernel")
    if kernel.n_items != baskets.n_items:
        raise InputError(f"a kernel has {count(kernel.n_items, 'item')}, but the baskets have {baskets.n_items}")
    return law_of(kernel)


def _plain(law: Law) -> Law:
    return law.law if isinstance(law, WithEmptyShare) else law


def _of_size(law: Law, k: int, number: int) -> Law:
    """A law whose sets of k items are those of the given one, and of a DPP the most usual."""
    law = _plain(law)
    if k not in law.possible_sizes:
        sizes = f"{law.possible_sizes[0]} to {law.possible_sizes[-1]}"
        raise InputError(f"k is {k}, but under kernel {number} a set has {sizes} items; leave that kernel out")
    return SymmetricLaw(with_mean_size(law.kernel, k)) if isinstance(law, SymmetricLaw) else law


def _result(fixed: FixedKernels, given: Baskets, end: Run, seconds: float) -> FitResult:
    assert end.stop is not None
    w, baseline = np.asarray(end.step.parameters["weights"], float), fixed.independent_log_likelihood()
    learned = Provenance(
        learner=LEARNER,
        start="even",
        restarts=1,
        n_iter=end.n_iter,
        evaluations=float(end.history.evaluations[-1]),
        stop=end.stop.name,
        shrinkage=0.0,
        shrinkage_chosen=False,
        nonempty=fixed.nonempty,
        size=fixed.k,
        to_gain=fixed.problem.excess(w),
        log_likelihood=end.log_likelihood,
        independent_log_likelihood=baseline,
        n_baskets=len(given),
        n_distinct=len(fixed.baskets),
        weight=given.total_weight,
        seconds=seconds,
    )
    training = Training.of(units_of(given), end.history)
    model = Mixture.of_law(fixed.law_at(w), given.items, learned, training)
    return FitResult(model, end.history, end.stop, (Restart.of(end, "even"),), baseline)
