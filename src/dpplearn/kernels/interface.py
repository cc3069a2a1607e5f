"""What a family of kernels answers: all that a model asks, whatever the family. Items are positions here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.errors import InputError
from dpplearn.kernels.interaction import Interaction
from dpplearn.kernels.ranking import Best, BestOfMany

Arrays = Mapping[str, npt.NDArray[Any]]


class Law(Protocol):
    """A law of random sets Y of the items 0..N−1. It is a value: no method changes it."""

    @property
    def family(self) -> str:
        """What model files call it."""
        ...

    @property
    def n_items(self) -> int: ...

    @property
    def possible_sizes(self) -> range:
        """Of the sets that have a probability."""
        ...

    def log_probabilities(self, baskets: Baskets, threads: int | None = None) -> Floats:
        """log P(Y) of every basket; −inf where it is zero."""
        ...

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        """The weighted mean of log P(Y)."""
        ...

    def log_empty(self) -> float:
        """log P(∅)."""
        ...

    @property
    def expected_size(self) -> float:
        """E|Y|."""
        ...

    def marginals(self, k: int | None = None) -> Floats:
        """P(i ∈ Y) of every item; with k, given that |Y| = k."""
        ...

    def pairs(self) -> Floats:
        """P(i, j ∈ Y) of every two items; what stands on the diagonal means nothing."""
        ...

    def pairs_with(self, item: int) -> Floats:
        """One row of that."""
        ...

    def inclusion(self, items: Ints) -> float:
        """P(A ⊆ Y)."""
        ...

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        """Of every item the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A. The
        score is NaN where P(A) is zero although P(A ⊆ Y) is not."""
        ...

    def scores(self, basket: Ints) -> Floats:
        """The scores alone."""
        ...

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> Best:
        """The k items of the highest score among the candidates, all by default, best first; their scores and
        probabilities. Ties by probability, then position; by probability alone where scores are NaN. Those of the
        basket and those of score 0 are left out."""
        ...

    def best_next_of_many(self, baskets: Baskets, k: int, threads: int | None = None) -> BestOfMany:
        """The same of every basket, to the last bit."""
        ...

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        """The same of one item, beside each of some baskets that do not hold it."""
        ...

    def given(self, include: Ints, exclude: Ints) -> tuple[Law, Ints]:
        """The law of the remaining items given that Y holds all of `include` and none of `exclude`; which remain."""
        ...

    def restricted(self, items: Ints) -> Law:
        """The law of Y ∩ S, over the items of S in the order given."""
        ...

    def log_sizes(self) -> Floats:
        """log P(|Y| = k) for k = 0..N."""
        ...

    def sample(
        self, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
    ) -> list[Ints]:
        """Draw n independent sets: of k items if k is given, otherwise given Y ≠ ∅ if `nonempty`."""
        ...

    def greedy(self, k: int | None, include: Ints) -> tuple[Ints, Floats]:
        """A set grown from `include`, each time by the item that raises P most, to k items, or without k until none
        does: the items as they were taken, and the factor by which each raised P."""
        ...

    def interaction(self) -> Interaction:
        """How items act on each other in a set, apart from how likely each is."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name, as a model file keeps it."""
        ...


def check_nonempty(probability: float) -> None:
    """Raise if no set but the empty one has a probability above 0."""
    if not probability > 0:
        raise InputError("under this model every set is empty, so there is no nonempty set to draw")


def check_size(possible: range, k: int) -> None:
    """Refuse a size that no set has."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k not in possible:
        sizes = f"{possible[0]} to {possible[-1]} items"
        raise InputError(f"k is {k!r}; under this model a set has {sizes}, so k must be from that range")
