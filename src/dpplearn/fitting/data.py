"""The data of a fit: what it is learned from, and what is set aside."""

from __future__ import annotations

from dataclasses import dataclass

from dpplearn.data.baskets import Baskets
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

    given: Baskets  # as they came
    units: Baskets  # one per basket, where equal ones may come to lie in different parts; weights that count are kept
    distinct: Baskets  # equal ones as one
    aside: Baskets | None = None  # those set aside for validation, which the others are then without

    @classmethod
    def of(cls, baskets: Baskets) -> Data:
        positive = baskets.subset(baskets.weights > 0).as_counts()
        distinct = positive.deduplicated()
        return cls(baskets, distinct if are_counts(positive.weights) else positive, distinct)

    def without(self, share: float, seed: int) -> Data:
        """This share set aside, to say when to stop."""
        if not share:
            return self
        kept, aside = self.units.split(1 - share, rng=seed)
        if not len(kept) or not len(aside):
            raise InputError(
                f"validation (--validation) is {share:g}, which leaves {kept.n_units} baskets to learn from and "
                f"{aside.n_units} to validate on; expected a share that leaves some of both"
            )
        return Data(self.given, kept, kept.deduplicated(), aside.deduplicated())

    def problem(self, options: FitOptions, baskets: Baskets | None = None) -> Problem:
        """Of the distinct baskets, or of others beside them."""
        given = (self.distinct if baskets is None else baskets, options.threads, options.given_nonempty)
        if options.how.model == "dpp":
            return Problem(*given)
        if options.how is FACTORED:
            return FactoredProblem(*given, options.n_segments, options.n_columns, options.n_pairs)
        return MixtureProblem(*given, options.n_segments, options.n_columns, bool(options.attraction))
