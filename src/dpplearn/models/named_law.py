"""How likely sets of named items are, likely sets and draws: a law of positions, asked by the names of a catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import overload

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed, read_only
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.interface import check_size
from dpplearn.models.answers import Selection
from dpplearn.models.reranking import Reranking
from dpplearn.tools.words import count

Basket = Iterable[Label]


class NamedLaw(Reranking):
    """What a model says of sets by its law alone; names in, names out."""

    @property
    def items(self) -> tuple[Label, ...]:
        """The labels of the catalogue."""
        return self.catalogue.labels

    @overload
    def log_prob(self, basket: Baskets, k: int | None = None) -> Floats: ...
    @overload
    def log_prob(self, basket: Basket, k: int | None = None) -> float: ...
    def log_prob(self, basket: Baskets | Basket, k: int | None = None) -> Floats | float:
        """log P(Y) of one basket, or of each.

        Parameters
        ----------
        basket
            The items of one basket, or `Baskets`.
        k
            Given that Y has k items, which is the k-DPP.

        Returns
        -------
        float, or array of float
            −inf where the probability is zero; of `Baskets`, one per basket.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> round(float(np.exp(dpp.log_prob(["crib", "monitor"]))), 3)
        0.117
        >>> never_empty = dl.DPP(dpp.kernel, dpp.items, nonempty=True)
        >>> round(float(np.exp(never_empty.log_prob(["crib", "monitor"]))), 3)
        0.137
        """
        one = not isinstance(basket, Baskets)
        baskets = basket.over(self.catalogue) if isinstance(basket, Baskets) else self._one(basket)
        values = self.law.log_probabilities(baskets)
        if k is not None:
            check_size(self.law.possible_sizes, k)
            values = np.where(baskets.sizes == k, values - self.law.log_sizes()[k], -np.inf)
        return float(values[0]) if one else values

    def log_likelihood(self, baskets: Baskets | Iterable[Basket]) -> float:
        """The weighted mean of log P(Y) over the baskets.

        Parameters
        ----------
        baskets
            `Baskets`, or a list of lists; their items are found by label.

        Returns
        -------
        float
            In nats per basket; −inf where one of them has probability zero.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0], [0, 0.5]]), ["crib", "monitor"])
        >>> round(dpp.log_likelihood([["crib"], ["crib", "monitor"], []]), 3)  # each has probability ¼
        -1.386
        """
        baskets = as_baskets(baskets, self.catalogue)
        if not baskets.total_weight > 0:
            raise InputError(f"{len(baskets)} baskets with a total weight of {baskets.total_weight:g}: no mean exists")
        return self.law.mean_log_likelihood(baskets)

    def marginals(self, k: int | None = None) -> Floats:
        """P(i ∈ Y) of every item.

        Parameters
        ----------
        k
            Given that Y has k items.

        Returns
        -------
        array of float
            In the order of `items`; with k they add up to k.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dict(zip(dpp.items, dpp.marginals().round(3).tolist()))
        {'crib': 0.5, 'cot': 0.4, 'monitor': 0.3}
        """
        return self.law.marginals(k)

    def inclusion_prob(self, items: Basket) -> float:
        """P(A ⊆ Y) = det K_A: that a basket holds all of these, whatever else it holds.

        Parameters
        ----------
        items
            The set A.

        Returns
        -------
        float

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"])
        >>> round(dpp.inclusion_prob(["crib", "cot"]), 3)  # by chance it would be 0.5 · 0.4 = 0.2
        0.11
        """
        return self.law.inclusion(self.catalogue.positions(items))

    @cached_property
    def size_distribution(self) -> Floats:
        """`P(|Y| = k)` for k = 0..N."""
        return read_only(np.exp(self.law.log_sizes()))

    @property
    def expected_size(self) -> float:
        """E|Y|."""
        return self.law.expected_size

    def complete(self, basket: Basket = (), k: int | None = None) -> Selection:
        """Grow a basket greedily into a set of high probability.

        Each step adds the item that multiplies the probability by the largest factor.

        Parameters
        ----------
        basket : iterable of labels, default ()
            Items to start from. Without any, the result approximates the most probable set.
        k : int, optional
            Size of the set, including the items of `basket`. By default the set grows until no item raises its
            probability.

        Returns
        -------
        Selection
            The items of `basket` first, then the added items in the order of addition. `note` gives the reason if there
            are fewer than k items.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dpp.complete(["cot"], k=2).items
        ('cot', 'monitor')
        """
        A = self.catalogue.positions(basket)
        if k is not None and whole_number("k", k, 0) < len(A):
            raise InputError(f"k is {k}, but the basket already has {count(len(A), 'item')}; k counts them too")
        return self._selection(k, A)

    def greedy_map(self, k: int | None = None) -> Selection:
        """Return `complete` of the empty basket: the most probable set found greedily.

        Parameters
        ----------
        k : int, optional
            Size of the set. By default the set grows until no item raises its probability.

        Returns
        -------
        Selection
            The items in the order of addition.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dpp.greedy_map(2).items
        ('crib', 'monitor')
        """
        return self.complete((), k)

    def _selection(self, k: int | None, include: Ints) -> Selection:
        positions, gains = self.law.greedy(k, include)
        items, sizes = self.catalogue.select(positions), self.law.possible_sizes
        log_prob, note = self.log_prob(items), ""
        if log_prob == -np.inf:
            only = f", where a set has {sizes[0]} to {sizes[-1]} items" if len(items) not in sizes else ""
            note = f"this set has probability zero under this model{only}"
        elif k is not None and len(items) < k:
            why = f"every larger set has probability zero (the rank of the kernel is {sizes[-1]})"
            if len(items) == len(self.items):
                why = "there is no other in the catalogue"
            note = f"stopped at {len(items)} of {k} items: no further item can be added, as {why}"
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
        """Draw sets, exactly from the law.

        Parameters
        ----------
        n
            How many independent sets; by default a single one.
        k
            How many items each has: a draw from the law given that size, of a DPP the k-DPP.
        rng
            A seed or a generator. The same seed gives the same draws whatever the number of threads.
        threads
            How many threads; by default all cores.

        Returns
        -------
        list of labels, or list of lists
            One set, or with n as many.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.5]]), ["crib", "cot", "monitor"])
        >>> drawn = dpp.sample(100, rng=0)
        >>> any("crib" in each and "cot" in each for each in drawn)  # the one stands in for the other
        False
        >>> {len(each) for each in dpp.sample(100, k=2, rng=0)}
        {2}
        """
        count = 1 if n is None else whole_number("n", n, 0)
        sets = self.law.sample(count, k, rng, threads)
        named = [list(self.catalogue.select(positions)) for positions in sets]
        return named[0] if n is None else named

    @property
    def nonempty(self) -> bool:
        """Whether no set is empty under the law, as it is P(Y given Y ≠ ∅)."""
        return isinstance(self.law, WithEmptyShare) and not self.law.share

    def _one(self, basket: Basket) -> Baskets:
        """A single basket, its items found by label."""
        positions = np.sort(self.catalogue.positions(basket))
        return Baskets.from_pairs(np.zeros_like(positions), positions, 1, self.catalogue)
