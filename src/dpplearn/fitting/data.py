"""The data of a fit: what it is learned from, and what is set aside."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.data.weights import are_counts
from dpplearn.errors import InputError
from dpplearn.fitting.options import FitOptions
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.learners.mixture.problem import MixtureProblem
from dpplearn.learners.problem import Problem
from dpplearn.learners.registry import FACTORED


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
