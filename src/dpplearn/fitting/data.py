"""The data of a fit: what it is learned from, and what is set aside."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.data.weights import are_counts
from dpplearn.errors import InputError
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.shrinkage import FOLDS
from dpplearn.learners.factored.plan import Plan
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.learners.mixture.problem import MixtureProblem
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import FACTORED
from dpplearn.tools.memory import NUMBER, check_memory, in_bytes
from dpplearn.tools.threads import thread_count
from dpplearn.tools.words import count

MATRICES_OF_SEGMENT = 2  # N×N matrices per segment of a dense mixture, in addition to those of the learner


@dataclass(frozen=True, eq=False)
class Data:
    """The baskets of a fit in the forms that its phases need."""

    given: AnyBaskets  # as they came
    units: AnyBaskets  # one per basket, where equal ones may come to lie apart; weights that count are kept
    distinct: AnyBaskets  # equal ones as one; in parts, equal ones of one part
    aside: AnyBaskets | None = None  # those set aside for validation, which the others are then without

    @classmethod
    def of(cls, baskets: AnyBaskets, *, as_weighed: bool = False) -> Data:
        """With weights as they are, or those that are no counts scaled to the number of baskets that they are worth."""
        if isinstance(baskets, Parts):
            return cls._of_parts(baskets)
        if as_weighed:
            positive = baskets.subset(baskets.weights > 0)
            return cls(baskets, positive, positive.deduplicated())
        units = units_of(baskets)
        return cls(baskets, units, units.deduplicated())

    @classmethod
    def _of_parts(cls, parts: Parts) -> Data:
        whole = parts.totals
        scale = 1.0 if whole.are_counts else whole.effective_number / whole.weight
        positive = parts.changed(_positive, scale)
        distinct = positive.deduplicated()
        return cls(parts, distinct if whole.are_counts else positive, distinct)

    def without(self, share: float, seed: int) -> Data:
        """This share set aside, to say when to stop."""
        if not share:
            return self
        kept, aside = self.units.split(1 - share, rng=seed)
        if not len(kept) or not len(aside):
            left, validated = (round(each.totals.effective_number) if len(each) else 0 for each in (kept, aside))
            raise InputError(
                f"validation (--validation) is {share:g}, which leaves {left} baskets to learn from and "
                f"{validated} to validate on; expected a share that leaves some of both"
            )
        return Data(self.given, kept, kept.deduplicated(), aside.deduplicated())

    def problem(self, options: FitOptions, baskets: AnyBaskets | None = None) -> Problem:
        """Of the distinct baskets, or of others beside them."""
        baskets = self.distinct if baskets is None else baskets
        law = options.threads, options.given_nonempty
        if options.how.model == "dpp":
            return Problem(baskets, *law)
        if options.how is FACTORED:
            assert isinstance(baskets, Baskets)  # as options for parts see to
            return FactoredProblem(baskets, *law, options.n_segments, options.n_columns, options.n_pairs)
        return MixtureProblem(baskets, *law, options.n_segments, options.n_columns, bool(options.attraction))


def units_of(baskets: Baskets) -> Baskets:
    """Those of positive weight, equal ones as one where weights say how many there were."""
    positive = baskets.subset(baskets.weights > 0).as_counts()
    return positive.deduplicated() if are_counts(positive.weights) else positive


def _positive(scale: float, baskets: Baskets) -> Baskets:
    """Those of positive weight, multiplied."""
    return baskets.weighted(baskets.weights if scale == 1 else scale * baskets.weights)


def check_fit_memory(baskets: AnyBaskets, options: FitOptions, at_once: int = 1) -> None:
    """Raise an error if so many fits at a time need more memory than there is."""
    n_items, low_rank = baskets.n_items, options.how is FACTORED
    kind = {"dpp": "DPP"}.get(options.how.model, options.how.model)
    kernel = "" if low_rank else f" (a kernel of {in_bytes(NUMBER * n_items**2)})"
    by = f" by {options.how.name!r}" if options.how.model == "dpp" else f" and {options.n_segments} segments"
    what = f"learning a {kind} of {count(n_items, 'item')}{kernel}{by}"
    check_memory(at_once * _fit_memory(baskets, options), what, "keep the most frequent items alone")


def _fit_memory(baskets: AnyBaskets, options: FitOptions) -> float:
    """Bytes at the peak. The folds that choose the shrinkage are learned at the same time."""
    if options.how is FACTORED and isinstance(baskets, Baskets):
        shape = options.n_segments, options.n_columns, options.n_pairs
        return Plan.of(FactoredProblem(baskets, options.threads, False, *shape)).memory
    folds = min(thread_count(options.threads), FOLDS) if options.resolved_shrinkage == "auto" else 1
    of_segments = MATRICES_OF_SEGMENT * options.n_segments if options.how.model == "mixture" else 0
    return float(NUMBER * baskets.n_items**2 * (options.how.matrices + of_segments) * folds)
