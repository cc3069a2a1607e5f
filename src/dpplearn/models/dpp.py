"""DPP: what a user holds. Thin methods over the modules that do the work; names in, names out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, overload

import numpy as np

from dpplearn.arrays import Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.models.answers import Recommendation, Selection, Substitute
from dpplearn.models.explaining import N_ORDERS, Explanation, explanation
from dpplearn.models.meetings import Together, together
from dpplearn.models.named_law import Basket, NamedLaw
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training

__all__ = ["DPP", "Recommendation", "Selection", "Substitute"]


class DPP(NamedLaw):
    """A determinantal point process over a catalogue of items.

    `learned` tells how the kernel came about, `training` what it was learned from; both travel with the model file.

    Parameters
    ----------
    kernel
        A `Kernel`; `fit` finds one from baskets.
    items
        The labels, in the order of the kernel's rows; 0, 1, ... by default.
    learned, training
        What `fit` says of the model that it returns.

    Examples
    --------
    >>> dpp = DPP(Kernel.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]), ["crib", "cot", "monitor"])
    >>> dpp
    DPP(3 named items, expected size 1.20)
    >>> [each.item for each in dpp.recommend(["crib"])]  # a cot is more frequent, but not beside a crib
    ['monitor', 'cot']
    """

    law: SymmetricLaw

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

    @cached_property
    def together(self) -> Together:
        """How often every two items meet in a set, under the model and by chance."""
        return together(self.law, nonempty=bool(self.learned.nonempty))

    def given(self, include: Basket = (), exclude: Basket = ()) -> DPP:
        """The law of the remaining items, given that Y holds all of `include` and none of `exclude`.

        Parameters
        ----------
        include, exclude
            Items that Y holds, and items that it does not hold.

        Returns
        -------
        DPP
            Over the items that are in neither.

        Examples
        --------
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = DPP(Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> rest = dpp.given(include=["crib"])
        >>> dict(zip(rest.items, rest.marginals().round(3).tolist()))
        {'cot': 0.22, 'monitor': 0.3}
        """
        A, B = self.catalogue.positions(include), self.catalogue.positions(exclude)
        both = np.intersect1d(A, B)
        if len(both):
            raise InputError(f"item {self.items[both[0]]!r} is to be both included and excluded")
        if len(A) + len(B) == len(self.items):
            raise InputError("every item is included or excluded, so nothing remains to have a distribution")
        law, remaining = self.law.given(A, B)
        return DPP(law.kernel, self.catalogue.select(remaining))

    def restrict(self, items: Basket) -> DPP:
        """The law of Y ∩ S, which is the DPP of K_S.

        Parameters
        ----------
        items
            The set S.

        Returns
        -------
        DPP
            Over the items of S in the order given.

        Examples
        --------
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = DPP(Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dpp.restrict(["monitor", "crib"]).marginals().round(3).tolist()
        [0.3, 0.5]
        """
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
        """The best items to add to a basket, without those that it has and those that cannot be added.

        Parameters
        ----------
        basket
            The items of one basket, or `Baskets`.
        k
            How many items at most.
        allow, deny
            Items to choose from, by default all; and items to leave out.

        Returns
        -------
        list of Recommendation
            Best first; for `Baskets`, one list per basket.

        Examples
        --------
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = DPP(Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> [(each.item, round(each.probability, 3)) for each in dpp.recommend(["crib"])]
        [('monitor', 0.3), ('cot', 0.22)]
        >>> [each.item for each in dpp.recommend(["crib"], deny=["monitor"])]
        ['cot']
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

    def substitutes(self, item: Label, k: int = 10) -> list[Substitute]:
        """The items that the model keeps most apart from this one, without those that it does not keep apart from it.

        By the share of the meetings by chance that it does not have, 1 − P(i, j ∈ Y)/chance. `substitute_pairs` and
        `substitute_groups` go by the same.

        Parameters
        ----------
        item
            The item to find others for.
        k
            How many at most.

        Returns
        -------
        list of Substitute
            The most apart first.

        Examples
        --------
        >>> dpp = DPP(Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"])
        >>> [(each.item, round(each.substitution, 2)) for each in dpp.substitutes("crib")]
        [('cot', 0.45)]
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

        Each has a factor, and P(i ∈ Y) times all of them is P(i ∈ Y given A ⊆ Y).

        Parameters
        ----------
        basket
            The items that are there already.
        item
            The item to be added.
        n_orders, rng
            For baskets of more than ten items, whose factors are averages over this many random orders.

        Returns
        -------
        Explanation
            The strongest influence first. Printed, it is a small table.

        Examples
        --------
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = DPP(Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> print(dpp.explain(["crib", "monitor"], "cot"))
        cot: probability 0.4 alone, 0.22 beside this basket
          × 0.5500  crib
          × 1.0000  monitor
        """
        positions = self.catalogue.positions(basket)
        return explanation(self.law, self.catalogue, positions, self.catalogue.position(item), n_orders, rng)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to one safetensors file; `dpplearn.load` reads it.

        Parameters
        ----------
        path
            The file; one that is there is replaced.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     DPP(Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"]).save(f"{folder}/cribs.dpp")
        """
        from dpplearn.models.model_file import save

        save(self, path)

    def to_dppy(self) -> Any:
        """The same law in the form of DPPy, a library of samplers.

        Returns
        -------
        FiniteDPP
            Its items are numbers: positions in `items`.

        Examples
        --------
        >>> theirs = DPP(Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"]).to_dppy()
        >>> theirs.kernel_type
        'likelihood'
        """
        try:
            from dppy.finite_dpps import FiniteDPP
        except ImportError as error:
            raise InputError(f"DPPy cannot be imported ({error}): pip install dppy") from None
        # With the eigenvalues, as those that it would find itself it may refuse for being a rounding error below 0.
        kernel = self.kernel
        if kernel.near_one.any():
            return FiniteDPP("correlation", K=kernel.K, K_eig_dec=(kernel.eigenvalues, kernel.eigenvectors))
        return FiniteDPP("likelihood", L=kernel.L, L_eig_dec=(kernel.odds, kernel.eigenvectors))
