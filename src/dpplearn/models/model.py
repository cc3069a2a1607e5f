"""SetModel: what every model that a user holds can do. Thin methods over the law; names in, names out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, Self, overload

import numpy as np

from dpplearn.arrays import Bools, Ints, Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.interface import Law
from dpplearn.models.answers import Recommendation
from dpplearn.models.blending import blended
from dpplearn.models.explaining import N_ORDERS, Explanation, explanation
from dpplearn.models.independence import why_independent
from dpplearn.models.named_law import Basket, NamedLaw
from dpplearn.models.new_items import Like, added
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.words import count


class SetModel(NamedLaw):
    """A law of sets over a catalogue of items: what a `DPP` and a `Mixture` have in common.

    `learned` tells how it came about, `training` what it was learned from; both travel with the model file.
    """

    def __init__(
        self,
        law: Law,
        items: Sequence[Label] | None = None,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        n = law.n_items
        self.law = law
        self.catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(n)
        self.learned = learned or Provenance()
        self.training = training
        if len(self.catalogue) != n:
            raise InputError(f"the kernel has {count(n, 'item')}, but items names {len(self.catalogue)}")
        if training is not None and len(training.item_weights) != n:
            raise InputError(f"the kernel has {count(n, 'item')}, but the training data {len(training.item_weights)}")

    @classmethod
    def of_law(
        cls,
        law: Law,
        items: Sequence[Label] | None = None,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> Self:
        """The model of a law of its family, whatever that makes of the empty set.

        Parameters
        ----------
        law
            Of the family of this kind of model.
        items, learned, training
            As a model is made of.

        Returns
        -------
        a model of this kind

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"])
        >>> dl.DPP.of_law(dpp.law, ["Krippe", "Bett"]).items
        ('Krippe', 'Bett')
        """
        model = cls.__new__(cls)
        SetModel.__init__(model, law, items, learned, training)
        return model

    def __repr__(self) -> str:
        how = f", learned by {self.learned.learner}" if self.learned.learner else ""
        what = f"{count(len(self.items), 'named item' if self.catalogue.named else 'item')}{self._more}"
        return f"{type(self).__name__}({what}, expected size {self.expected_size:.2f}{how})"

    _more = ""  # what else there is to say of it

    def given(self, include: Basket = (), exclude: Basket = ()) -> Self:
        """The law of the remaining items, given that Y holds all of `include` and none of `exclude`.

        Parameters
        ----------
        include, exclude
            Items that Y holds, and items that it does not hold.

        Returns
        -------
        a model of the same kind
            Over the items that are in neither.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
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
        return self.of_law(law, self.catalogue.select(remaining))

    def restrict(self, items: Basket) -> Self:
        """The law of Y ∩ S.

        Parameters
        ----------
        items
            The set S.

        Returns
        -------
        a model of the same kind
            Over the items of S in the order given.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dpp.restrict(["monitor", "crib"]).marginals().round(3).tolist()
        [0.3, 0.5]
        """
        S = self.catalogue.positions(items)
        if not len(S):
            raise InputError("no items to restrict to; name at least one")
        return self.of_law(self.law.restricted(S), self.catalogue.select(S))

    def with_items(self, labels: Iterable[Label], *, features: Any = None, like: Like | None = None) -> Self:
        """The model with items that no basket has held yet, at the end of its catalogue.

        By default each is independent of all others and as likely as they are on average. Nothing that was said of the
        others changes then; but where sets cannot be empty, one may now hold new items alone.

        Parameters
        ----------
        labels
            Of the new items.
        features
            A table with a row for every item, old and new: a DataFrame, a dict of columns, or a path to CSV or Parquet.
            How likely items are is then learned from it; where that predicts items held out no better than their
            average does, the average is taken, with a warning.
        like
            An item of the model that they are like, or one for each in a dict: as likely, and to all others as that is.
            What the two share with others keeps them apart from each other; so the one that was there becomes somewhat
            less likely.

        Returns
        -------
        a model of the same kind
            Its `learned.added` says what was done.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"])
        >>> more = dpp.with_items(["monitor"])
        >>> dict(zip(more.items, more.marginals().round(3).tolist()))
        {'crib': 0.5, 'cot': 0.4, 'monitor': 0.45}
        """
        new = added(self.law, self.catalogue, labels, features, like)
        n = len(new.catalogue) - len(self.items)
        said = "; ".join(each for each in (self.learned.added, new.note) if each)
        training = self.training.with_items(n) if self.training is not None else None
        return self.of_law(new.law, new.catalogue.labels, replace(self.learned, added=said), training)

    @overload
    def recommend(
        self,
        basket: Baskets,
        k: int = 10,
        *,
        allow: Basket | None = None,
        deny: Basket = (),
        blend: float | str | None = None,
        unknown: str = "error",
    ) -> list[list[Recommendation]]: ...
    @overload
    def recommend(
        self,
        basket: Basket,
        k: int = 10,
        *,
        allow: Basket | None = None,
        deny: Basket = (),
        blend: float | str | None = None,
        unknown: str = "error",
    ) -> list[Recommendation]: ...
    def recommend(
        self,
        basket: Baskets | Basket,
        k: int = 10,
        *,
        allow: Basket | None = None,
        deny: Basket = (),
        blend: float | str | None = None,
        unknown: str = "error",
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
        blend
            How much of item-to-item counts in the ranking, from 0 to 1, or "auto" for what `fit` found best on baskets
            set aside. The score is then (1 − blend) · model + blend · item-to-item, each a share of its sum over the
            items to choose from; probabilities stay the model's. By default the model alone ranks.
        unknown
            What to do about items of baskets that the model does not have: "error", or "drop" to leave them out, of
            `Baskets` with a warning that says how many.

        Returns
        -------
        list of Recommendation
            Best first; for `Baskets`, one list per basket.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> [(each.item, round(each.probability, 3)) for each in dpp.recommend(["crib"])]
        [('monitor', 0.3), ('cot', 0.22)]
        >>> [each.item for each in dpp.recommend(["crib"], deny=["monitor"])]
        ['cot']
        """
        k, weight = whole_number("k", k, 0), self._blend(blend)
        candidate = np.ones(len(self.items), dtype=bool)
        if allow is not None:
            candidate[:] = False
            candidate[self.catalogue.positions(allow)] = True
        candidate[self.catalogue.positions(deny)] = False
        if not isinstance(basket, Baskets):
            known, _ = known_items(basket, self.catalogue, unknown)
            return self._recommend(np.sort(self.catalogue.positions(known)), k, candidate, weight)
        baskets = basket.over(self.catalogue, unknown)
        found = []
        for row, (start, stop) in enumerate(pairwise(baskets.offsets)):
            try:
                found.append(self._recommend(baskets.indices[start:stop].astype(np.int64), k, candidate, weight))
            except InputError as error:
                raise InputError(f"basket {row}: {error}") from None
        return found

    def _recommend(self, basket: Ints, k: int, candidate: Bools, weight: float | None) -> list[Recommendation]:
        if weight is None:
            items, score, probability = self.law.best_next(basket, k, candidate)
            found = zip(items, score.tolist(), probability.tolist(), strict=True)
            return [Recommendation(self.items[i], *each) for i, *each in found]
        assert self.training is not None
        by = blended(self.law, self.training, basket, weight, candidate)
        best = np.argsort(-by, kind="stable")[:k]
        best = best[by[best] > 0]
        chosen = np.zeros(len(by), bool)
        chosen[best] = True
        items, _, probability = self.law.best_next(basket, len(best), chosen)
        likely = dict(zip(items.tolist(), probability.tolist(), strict=True))
        return [Recommendation(self.items[i], float(by[i]), likely.get(i, 0.0)) for i in best.tolist()]

    def _blend(self, blend: float | str | None) -> float | None:
        """The weight of item-to-item that is meant; None for none."""
        if blend is None:
            return None
        if self.training is None:
            raise InputError(f"blend is {blend!r}, but the model does not tell what it was learned from; leave it out")
        if blend == "auto":
            if self.training.blend is None:
                raise InputError(
                    "blend is 'auto', but the model has no weight that was learned on baskets set aside; learn it with "
                    "such a share (validation=0.1), or give a number from 0 to 1"
                )
            return self.training.blend
        if isinstance(blend, bool | str) or not 0 <= blend <= 1:
            raise InputError(f"blend is {blend!r}; expected 'auto', or a number from 0 to 1")
        return float(blend)

    def explain(self, basket: Basket, item: Label, *, n_orders: int = N_ORDERS, rng: Seed = 0) -> Explanation:
        """Which items of the basket push this one up or down, and by how much.

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
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> print(dpp.explain(["crib", "monitor"], "cot"))
        cot: 0.55 times as likely beside this basket
          probability 0.4 alone, 0.22 beside it
          × 0.5500  crib
          × 1.0000  monitor
        """
        positions = self.catalogue.positions(basket)
        return explanation(self.law, self.catalogue, positions, self.catalogue.position(item), n_orders, rng)

    @property
    def independent(self) -> bool:
        """Whether the model is no more than independent items, so that popularity says as much.

        So it is if in its law no two items repel or attract each other and nobody likes an item more than others do;
        if on baskets that it was not learned from, where there were any (`validation`, `--holdout`), it is not clearly
        better; or else if those that it was learned from are less than 0.01 nats likelier under it, or their items met
        as chance explains. `caution` says which.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dl.DPP(dl.Kernel.from_K([[0.5, 0], [0, 0.4]])).independent
        True
        >>> dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]])).independent
        False
        """
        return bool(self.caution)

    @cached_property
    def caution(self) -> str:
        """What to know before relying on it, in one sentence: that it is no more than independent items, and why; empty
        where it is more.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]])).caution
        ''
        """
        return why_independent(self.law, self.nonempty, self.learned, self.training)

    def _judged_by(self, baskets: Baskets | Iterable[Iterable[Any]] | None) -> Training | None:
        """What tells how often items met: baskets, or those learned from if these are known."""
        return self.training if baskets is None else Training.of(as_baskets(baskets, self.catalogue))

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to one safetensors file; `dpplearn.load` reads it.

        Parameters
        ----------
        path
            The file. An existing model file is replaced.
        force
            Replace an existing file of any other type, too.

        Examples
        --------
        >>> import dpplearn as dl
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     dl.DPP(dl.Kernel.from_K([[0.5, 0.3], [0.3, 0.4]]), ["crib", "cot"]).save(f"{folder}/cribs.dpp")
        """
        from dpplearn.models.model_file import save

        save(self, path, force=force)
