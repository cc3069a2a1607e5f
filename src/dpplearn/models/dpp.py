"""DPP: what a user holds. Thin methods over the modules that do the work; names in, names out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple, overload

import numpy as np

from dpplearn.arrays import NO_ITEMS, Floats, Ints, Seed, read_only
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.interface import Law, check_size
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.models.explaining import N_ORDERS, Explanation, explanation
from dpplearn.models.meetings import Together, together
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training

Basket = Iterable[Label]


class Recommendation(NamedTuple):
    """An item to add, the factor P(A ∪ i)/P(A), and the probability that a basket which holds A holds i."""

    item: Label
    score: float
    probability: float


class Substitute(NamedTuple):
    """An item, and the share of the meetings with it by chance that the model does not have."""

    item: Label
    substitution: float


@dataclass(frozen=True)
class Selection:
    """Items in the order they were taken, the factor by which each multiplied the probability, and log P of the set."""

    items: tuple[Label, ...]
    gains: tuple[float, ...]
    log_prob: float
    note: str = ""  # why there are fewer items than asked for, or why the set is impossible; empty otherwise

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.items)


class DPP:
    """A determinantal point process over a catalogue of items.

    `learned` tells how the kernel came about, `training` what it was learned from; both travel with the model file.
    """

    def __init__(
        self,
        kernel: Kernel,
        items: Sequence[Label] | None = None,
        *,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"got a {type(kernel).__name__}; expected a Kernel (Kernel.from_L(L) or Kernel.from_K(K))")
        self.law = SymmetricLaw(kernel)
        self.kernel = kernel
        self.catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(kernel.n_items)
        self.learned = learned or Provenance()
        self.training = training
        if len(self.catalogue) != kernel.n_items:
            raise InputError(f"the kernel has {kernel.n_items} items, but items names {len(self.catalogue)}")
        if training is not None and len(training.item_weights) != kernel.n_items:
            raise InputError(
                f"the kernel has {kernel.n_items} items, but the training data {len(training.item_weights)}"
            )

    def __repr__(self) -> str:
        how = f", learned by {self.learned.learner}" if self.learned.learner else ""
        named = "named " if self.catalogue.named else ""
        return f"DPP({len(self.items)} {named}items, expected size {self.expected_size:.2f}{how})"

    @property
    def items(self) -> tuple[Label, ...]:
        """The labels of the catalogue."""
        return self.catalogue.labels

    @overload
    def log_prob(self, basket: Baskets, k: int | None = None, *, nonempty: bool = False) -> Floats: ...
    @overload
    def log_prob(self, basket: Basket, k: int | None = None, *, nonempty: bool = False) -> float: ...
    def log_prob(self, basket: Baskets | Basket, k: int | None = None, *, nonempty: bool = False) -> Floats | float:
        """log P(Y) of one basket, or of each; −inf where it is zero. With k, under the k-DPP.

        With `nonempty`, given that Y is not empty.
        """
        one = not isinstance(basket, Baskets)
        baskets = basket.over(self.catalogue) if isinstance(basket, Baskets) else self._one(basket)
        values = self._law(nonempty and k is None).log_probabilities(baskets)
        if k is not None:
            check_size(self.law.possible_sizes, k)
            values = np.where(baskets.sizes == k, values - self.law.log_sizes()[k], -np.inf)
        return float(values[0]) if one else values

    def log_likelihood(self, baskets: Baskets | Iterable[Basket], *, nonempty: bool = False) -> float:
        """The weighted mean of log P(Y) over the baskets; with `nonempty`, given that Y is not empty."""
        baskets = as_baskets(baskets, self.catalogue)
        if not baskets.total_weight > 0:
            raise InputError(f"{len(baskets)} baskets with a total weight of {baskets.total_weight:g}: no mean exists")
        return self._law(nonempty).mean_log_likelihood(baskets)

    def marginals(self, k: int | None = None) -> Floats:
        """P(i ∈ Y) for every item, in the order of `items`. With k, given that Y has k items."""
        return self.law.marginals(k)

    def inclusion_prob(self, items: Basket) -> float:
        """P(A ⊆ Y) = det K_A."""
        return self.law.inclusion(self.catalogue.positions(items))

    @cached_property
    def size_distribution(self) -> Floats:
        """P(|Y| = k) for k = 0..N."""
        return read_only(np.exp(self.law.log_sizes()))

    @cached_property
    def together(self) -> Together:
        """How often every two items meet in a set, under the model and by chance."""
        return together(self.law, nonempty=bool(self.learned.nonempty))

    @property
    def expected_size(self) -> float:
        """E|Y|."""
        return self.law.expected_size

    def given(self, include: Basket = (), exclude: Basket = ()) -> DPP:
        """The DPP over the remaining items, given that Y holds all of `include` and none of `exclude`."""
        A, B = self.catalogue.positions(include), self.catalogue.positions(exclude)
        both = np.intersect1d(A, B)
        if len(both):
            raise InputError(f"item {self.items[both[0]]!r} is to be both included and excluded")
        if len(A) + len(B) == len(self.items):
            raise InputError("every item is included or excluded, so nothing remains to have a distribution")
        law, remaining = self.law.given(A, B)
        return DPP(law.kernel, self.catalogue.select(remaining))

    def restrict(self, items: Basket) -> DPP:
        """The law of Y ∩ S: the DPP of K_S, over the items of S in the order given."""
        S = self.catalogue.positions(items)
        if not len(S):
            raise InputError("no items to restrict to; name at least one")
        return DPP(self.law.restricted(S).kernel, self.catalogue.select(S))

    @overload
    def recommend(
        self, basket: Baskets, k: int = 10, *, allow: Basket | None = None, deny: Basket = ()
    ) -> list[list[Recommendation]]: ...
    @overload
    def recommend(
        self, basket: Basket, k: int = 10, *, allow: Basket | None = None, deny: Basket = ()
    ) -> list[Recommendation]: ...
    def recommend(
        self, basket: Baskets | Basket, k: int = 10, *, allow: Basket | None = None, deny: Basket = ()
    ) -> list[list[Recommendation]] | list[Recommendation]:
        """The k best items to add to a basket, best first; for `Baskets`, one list a basket.

        Items of the basket, those in `deny`, those not in `allow`, and those that cannot be added are left out.
        """
        k = whole_number("k", k, 0)
        candidate = np.ones(len(self.items), dtype=bool)
        if allow is not None:
            candidate[:] = False
            candidate[self.catalogue.positions(allow)] = True
        candidate[self.catalogue.positions(deny)] = False
        if not isinstance(basket, Baskets):
            return self._recommend(np.sort(self.catalogue.positions(basket)), k, candidate)
        baskets = basket.over(self.catalogue)
        found = []
        for row, (start, stop) in enumerate(pairwise(baskets.offsets)):
            try:
                found.append(self._recommend(baskets.indices[start:stop], k, candidate))
            except InputError as error:
                raise InputError(f"basket {row}: {error}") from None
        return found

    def _recommend(self, basket: Ints | Any, k: int, candidate: Any) -> list[Recommendation]:
        score, probability = self.law.next_item(basket)
        by = probability if np.isnan(score).any() else score
        wanted = candidate & (by > 0)
        wanted[basket] = False
        found = np.flatnonzero(wanted)
        best = found[np.lexsort((found, -probability[found], -by[found]))][:k]
        return [Recommendation(self.items[i], float(score[i]), float(probability[i])) for i in best]

    def complete(self, basket: Basket, k: int) -> Selection:
        """A diverse set of k items that contains the basket, grown greedily from it."""
        A = self.catalogue.positions(basket)
        if whole_number("k", k, 0) < len(A):
            raise InputError(f"k is {k}, but the basket already has {len(A)} items; k counts them too")
        return self._selection(k, A)

    def greedy_map(self, k: int | None = None) -> Selection:
        """A set of k items of high probability, grown greedily; without k, until no item raises the probability."""
        if k is not None:
            k = whole_number("k", k, 0)
        return self._selection(k, NO_ITEMS)

    def _selection(self, k: int | None, include: Ints) -> Selection:
        positions, gains = self.law.greedy(k, include)
        items, sizes = self.catalogue.select(positions), self.law.possible_sizes
        log_prob, note = self.log_prob(items), ""
        if log_prob == -np.inf:
            only = f", where a set has {sizes[0]} to {sizes[-1]} items" if len(items) not in sizes else ""
            note = f"this set has probability zero under this model{only}"
        elif k is not None and len(items) < k:
            note = (
                f"stopped at {len(items)} of {k} items: no further item can be added, "
                f"as every larger set has probability zero (the rank of the kernel is {sizes[-1]})"
            )
        return Selection(items, tuple(gains.tolist()), log_prob, note)

    @overload
    def sample(
        self, n: None = None, k: int | None = None, rng: Seed = None, *, threads: int | None = None
    ) -> list[Label]: ...
    @overload
    def sample(
        self, n: int, k: int | None = None, rng: Seed = None, *, threads: int | None = None
    ) -> list[list[Label]]: ...
    def sample(
        self, n: int | None = None, k: int | None = None, rng: Seed = None, *, threads: int | None = None
    ) -> list[Label] | list[list[Label]]:
        """One set, or a list of n independent sets, exactly from the DPP; with k, from the k-DPP.

        The same seed gives the same draws whatever the number of threads.
        """
        count = 1 if n is None else whole_number("n", n, 0)
        sets = self.law.sample(count, k, rng, threads)
        named = [list(self.catalogue.select(positions)) for positions in sets]
        return named[0] if n is None else named

    def substitutes(self, item: Label, k: int = 10) -> list[Substitute]:
        """The k items that the model keeps most apart from this one, without those that it does not keep apart from it.

        By the share of the meetings by chance that it does not have, 1 − P(i, j ∈ Y)/chance. `substitute_pairs` and
        `substitute_groups` go by the same.
        """
        i = self.catalogue.position(item)
        if not self.law.marginals()[i] > 0:
            raise InputError(f"item {item!r} has probability zero under this model, so it repels nothing")
        apart = self.together.substitution[i]
        others = np.flatnonzero(apart > 0)
        best = others[np.argsort(-apart[others], kind="stable")][: whole_number("k", k, 0)]
        return [Substitute(self.items[j], float(apart[j])) for j in best]

    def explain(self, basket: Basket, item: Label, *, n_orders: int = N_ORDERS, rng: Seed = 0) -> Explanation:
        """Which items of the basket push this one down, and by how much.

        Each has a factor, and P(i ∈ Y) times all of them is P(i ∈ Y given A ⊆ Y). Of baskets of more than ten items,
        averages over random orders; `n_orders` and `rng` are for those.
        """
        positions = self.catalogue.positions(basket)
        return explanation(self.law, self.catalogue, positions, self.catalogue.position(item), n_orders, rng)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one safetensors file; `dpplearn.load` reads it."""
        from dpplearn.models.model_file import save

        save(self, path)

    def to_dppy(self) -> Any:
        """The same law as a `FiniteDPP` of DPPy, where items are numbers: positions in `items`."""
        try:
            from dppy.finite_dpps import FiniteDPP
        except ImportError as error:
            raise InputError(f"DPPy cannot be imported ({error}): pip install dppy") from None
        # With the eigenvalues, as those that it would find itself it may refuse for being a rounding error below 0.
        kernel = self.kernel
        if kernel.near_one.any():
            return FiniteDPP("correlation", K=kernel.K, K_eig_dec=(kernel.eigenvalues, kernel.eigenvectors))
        return FiniteDPP("likelihood", L=kernel.L, L_eig_dec=(kernel.odds, kernel.eigenvectors))

    def _law(self, nonempty: bool) -> Law:
        return WithEmptyShare(self.law) if nonempty else self.law

    def _one(self, basket: Basket) -> Baskets:
        """A single basket, its items found by label."""
        positions = np.sort(self.catalogue.positions(basket))
        return Baskets.from_pairs(np.zeros_like(positions), positions, 1, self.catalogue)
