"""SetModel: a distribution over sets of named items. `DPP` and `Mixture` are thin subclasses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from os import PathLike
from typing import Any, ClassVar, Self, overload

import numpy as np

from dpplearn.arrays import Floats, Seed, read_only
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.pairs import FDR_LEVEL
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import IMPOSSIBLE, SetDistribution
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import Recommendation, Relation, Selection
from dpplearn.models.blending import top_blended
from dpplearn.models.explaining import N_ORDERS, Explanation, explanation
from dpplearn.models.independence import why_independent
from dpplearn.models.new_items import Like, added
from dpplearn.models.record import Provenance, Training
from dpplearn.models.relations import pair_table, related_items
from dpplearn.models.reranking import SlatesFit, reranked
from dpplearn.utils.memory import PausedCollection
from dpplearn.utils.text import count

Basket = Iterable[Label]


class SetModel:
    """A probability distribution over subsets of a catalogue of items.

    Attributes
    ----------
    distribution : SetDistribution
        The distribution, with items as integers.
    catalogue : Catalogue
        The item labels.
    learned : Provenance
        How the model was fitted.
    training : Training or None
        Item and pair counts of the training baskets.
    """

    kind: ClassVar[str]  # "dpp" or "mixture"

    def __init__(
        self,
        distribution: SetDistribution,
        items: Sequence[Label] | None = None,
        *,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        n = distribution.n_items
        self.distribution = distribution
        self.catalogue = Catalogue.of(items) if items is not None else Catalogue.numbered(n)
        self.learned = learned or Provenance()
        self.training = training
        if len(self.catalogue) != n:
            raise InputError(f"items must have {n} labels, one per item of the distribution, got {len(self.catalogue)}")
        if training is not None and len(training.item_weights) != n:
            raise InputError(f"training must have counts of {n} items, got {len(training.item_weights)}")

    @property
    def items(self) -> tuple[Label, ...]:
        """The item labels."""
        return self.catalogue.labels

    @property
    def nonempty(self) -> bool:
        """Whether the distribution is conditioned on Y ≠ ∅."""
        return self.distribution.nonempty

    def __repr__(self) -> str:
        learner = f", learned by {self.learned.learner}" if self.learned.learner else ""
        n_segments = len(self.distribution.segment_weights)
        items = count(len(self.items), "named item" if self.catalogue.named else "item")
        segments = f", {n_segments} segments" if n_segments > 1 else ""
        return f"{type(self).__name__}({items}{segments}, expected size {self.expected_size:.2f}{learner})"

    # Probabilities.

    @overload
    def log_prob(self, basket: Baskets, k: int | None = None) -> Floats: ...
    @overload
    def log_prob(self, basket: Basket, k: int | None = None) -> float: ...
    def log_prob(self, basket: Baskets | Basket, k: int | None = None) -> Floats | float:
        """Return log P(Y) of one basket, or of each.

        Parameters
        ----------
        basket : iterable of labels, or Baskets
        k : int, optional
            Condition on sets of k items.

        Returns
        -------
        float, or array of float
            −inf where the probability is zero.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> round(float(np.exp(dpp.log_prob(["crib", "monitor"]))), 3)
        0.117
        """
        one = not isinstance(basket, Baskets)
        sets = basket.over(self.catalogue) if isinstance(basket, Baskets) else self._sets(basket)
        values = self.distribution.log_prob(sets)
        if k is not None:
            self.distribution.check_size(k)
            values = np.where(sets.sizes == k, values - self.distribution.log_size(k), -np.inf)
        return float(values[0]) if one else values

    def log_likelihood(self, baskets: Baskets | Iterable[Basket]) -> float:
        """Return the weighted mean of log P(Y) over baskets, in nats; −inf if one has probability zero."""
        baskets = as_baskets(baskets, self.catalogue)
        if not baskets.total_weight > 0:
            raise InputError(f"baskets must have a positive total weight, got {baskets.total_weight:g}")
        return self.distribution.mean_log_likelihood(baskets)

    def marginals(self) -> Floats:
        """Return P(i ∈ Y) of each item, in the order of `items`.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dl.DPP.from_K([[0.5, 0.3], [0.3, 0.4]]).marginals().round(3).tolist()
        [0.5, 0.4]
        """
        return self.distribution.marginals()

    def inclusion_prob(self, items: Basket) -> float:
        """Return P(A ⊆ Y), the probability that a set contains all of these items."""
        return float(np.exp(self.distribution.log_inclusion(self._sets(items))[0]))

    @cached_property
    def size_distribution(self) -> Floats:
        """`P(|Y| = k)` for k = 0..N."""
        return read_only(np.exp(self.distribution.log_sizes()))

    @property
    def expected_size(self) -> float:
        """E|Y|."""
        return self.distribution.expected_size

    # Derived models.

    @classmethod
    def of_distribution(
        cls, distribution: SetDistribution, items: Sequence[Label] | None = None, **record: Any
    ) -> Self:
        """Return a model of this class with a given distribution, and perhaps `learned` and `training`."""
        model = cls.__new__(cls)
        SetModel.__init__(model, distribution, items, **record)
        return model

    def with_record(self, learned: Provenance, training: Training | None) -> Self:
        """Return the same model with another record of its training."""
        return self.of_distribution(self.distribution, self.items, learned=learned, training=training)

    def given(self, include: Basket = (), exclude: Basket = ()) -> Self:
        """Return the distribution of the other items, given that Y contains `include` and nothing of `exclude`.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> rest = dpp.given(include=["crib"])
        >>> dict(zip(rest.items, rest.marginals().round(3).tolist()))
        {'cot': 0.22, 'monitor': 0.3}
        """
        A, B = self.catalogue.positions(include), self.catalogue.positions(exclude)
        both = np.intersect1d(A, B)
        if len(both):
            raise InputError(f"item {self.items[both[0]]!r} is both included and excluded")
        if len(A) + len(B) == len(self.items):
            raise InputError("every item is included or excluded; leave at least one out of both")
        distribution, remaining = self.distribution.condition(A, B)
        return self.of_distribution(distribution, self.catalogue.select(remaining))

    def restrict(self, items: Basket) -> Self:
        """Return the distribution of Y ∩ S, over the items of S in the order given.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> dpp.restrict(["monitor", "crib"]).marginals().round(3).tolist()
        [0.3, 0.5]
        """
        S = self.catalogue.positions(items)
        if not len(S):
            raise InputError("items must have at least one item, got none")
        return self.of_distribution(self.distribution.restrict(S), self.catalogue.select(S))

    def with_items(self, labels: Iterable[Label], *, features: Any = None, like: Like | None = None) -> Self:
        """Return the model with further items at the end of its catalogue.

        By default a new item is independent of all others and has the average item's probability.

        Parameters
        ----------
        labels : iterable of labels
            The new items.
        features : table, optional
            One row per item, old and new: a DataFrame, a dict of columns, or a path to CSV or Parquet. The probability
            of new items is predicted from it. If that predicts held-out items no better than their average, the average
            is used, with a warning.
        like : label, or dict of labels, optional
            Existing item whose popularity and interactions the new items copy. A copy and its original repel each other
            by what they share with other items, so the original becomes somewhat less probable.

        Returns
        -------
        model of the same class
            `learned.added` describes the new items.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"])
        >>> dpp.with_items(["monitor"]).marginals().round(3).tolist()
        [0.5, 0.4, 0.45]
        """
        distribution, catalogue, note = added(self.distribution, self.catalogue, labels, features, like)
        n = len(catalogue) - len(self.items)
        notes = "; ".join(each for each in (self.learned.added, note) if each)
        training = self.training.with_items(n) if self.training is not None else None
        learned = replace(self.learned, added=notes)
        return self.of_distribution(distribution, catalogue.labels, learned=learned, training=training)

    # Recommendations.

    def recommend(
        self,
        basket: Baskets | Basket,
        k: int = 10,
        *,
        allow: Basket | None = None,
        deny: Basket | None = None,
        blend: float | str | None = None,
        unknown: str = "error",
    ) -> list[Any]:
        """Return the best items to add to a basket, or to each of many.

        Items are ranked by their score P(A ∪ i)/P(A). Where P(A) = 0, as for the empty basket under a model of nonempty
        baskets, scores are NaN and items are ranked by P(i ∈ Y | A ⊆ Y).

        Parameters
        ----------
        basket : iterable of labels, or Baskets
        k : int, default 10
            Maximum number of items.
        allow, deny : iterable of labels, optional
            Items to choose from, by default all; and items to leave out.
        blend : float or "auto", optional
            Weight of item-to-item in the ranking, from 0 to 1, or "auto" for the weight that `fit` learned. The score
            is then (1 − blend) · model + blend · item-to-item, each scaled to sum to 1 over the candidates.
            Probabilities remain those of the model. By default only the model ranks.
        unknown : {"error", "drop"}
            What to do with items that the model does not have.

        Returns
        -------
        list of Recommendation, or list of lists
            Best first.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> [(each.item, round(each.probability, 3)) for each in dpp.recommend(["crib"])]
        [('monitor', 0.3), ('cot', 0.22)]
        """
        k, many = min(whole_number("k", k, 0), len(self.items)), isinstance(basket, Baskets)
        if isinstance(basket, Baskets):
            sets: Baskets = basket.over(self.catalogue, unknown)
        else:
            sets = self._sets(known_items(basket, self.catalogue, unknown)[0])
        candidate = None
        if allow is not None or deny is not None:
            candidate = np.full(len(self.items), allow is None)
            candidate[self.catalogue.positions(() if allow is None else allow)] = True
            candidate[self.catalogue.positions(() if deny is None else deny)] = False
        if blend is None:
            top = self.distribution.top_next(sets, k, candidate)
        else:
            top = top_blended(self.distribution, self.training, blend, sets, k, candidate)
        if not all(possible := top.possible.tolist()):
            row = f"basket {possible.index(False)}: " if many else ""
            raise InputError(f"{row}{IMPOSSIBLE}")
        with PausedCollection():
            items: list[int] = top.items.ravel().tolist()
            scores, probabilities = (each.ravel().tolist() for each in (top.scores, top.probabilities))
            rows = zip(map(self.items.__getitem__, items), scores, probabilities, strict=True)
            every = list(map(tuple.__new__, repeat(Recommendation), rows))  # faster than `Recommendation(*row)`
            found = [every[row * k : row * k + k] for row in range(len(sets))]
            if min(items, default=0) < 0:
                lengths = (top.items >= 0).sum(axis=1).tolist()
                found = [row[:length] for row, length in zip(found, lengths, strict=True)]
        return found if many else found[0]

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
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> dpp.complete(["cot"], k=2).items
        ('cot', 'monitor')
        """
        A = self.catalogue.positions(basket)
        if k is not None and whole_number("k", k, 0) < len(A):
            raise InputError(f"k must be at least {len(A)}, the number of items in the basket, got {k}")
        positions, gains, log_prob = self.distribution.greedy(k, A)
        items, note = self.catalogue.select(positions), ""
        if log_prob == -np.inf:
            note = "this set has probability zero"
        elif k is not None and len(items) < k:
            note = f"stopped at {len(items)} of {k} items: larger sets have probability zero or do not exist"
        return Selection(items, tuple(gains.tolist()), log_prob, note, n_given=len(A))

    def greedy_map(self, k: int | None = None) -> Selection:
        """Return `complete` of the empty basket: the most probable set found greedily."""
        return self.complete((), k)

    def rerank(
        self,
        items: Any,
        scores: Any,
        k: int = 10,
        strength: float | SlatesFit = 1.0,
        *,
        log: bool = False,
        unknown: str = "error",
    ) -> list[Any]:
        """Choose k candidates of another recommender by its scores and by the interactions of this model.

        A greedy search for the set Y with the largest Σ log(score) + strength · log det S_Y, where S is the interaction
        of the model scaled to a unit diagonal.

        Parameters
        ----------
        items : sequence of labels, or one sequence per user
            The candidates.
        scores : array-like of the same shape
            Nonnegative scores such as probabilities, or with `log` any numbers such as logits.
        k : int, default 10
            Maximum number of items.
        strength : float or SlatesFit, default 1
            Weight of the interaction; 0 keeps the order of the scores. Or the result of `fit_slates` with this model;
            scores are then of the kind that the slates have.
        log : bool, default False
            Whether scores are logarithms.
        unknown : {"error", "drop"}
            What to do with items that the model does not have.

        Returns
        -------
        list of labels, or list of lists
            In the order of selection.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.4, 0], [0.4, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> dpp.rerank(["crib", "cot", "monitor"], [0.9, 0.8, 0.5])
        ['crib', 'monitor', 'cot']
        """
        return reranked(self.distribution.similarity, self.catalogue, items, scores, k, strength, log, unknown)

    # Draws.

    def sample(
        self, n: int | None = None, k: int | None = None, rng: Seed = None, *, threads: int | None = None
    ) -> list[Any]:
        """Draw sets exactly from the distribution.

        Parameters
        ----------
        n : int, optional
            Number of independent sets. By default a single set is returned.
        k : int, optional
            Size of each set: draws from the distribution given the size, for a DPP the k-DPP.
        rng : int or numpy.random.Generator, optional
            Seed. The same seed gives the same draws for any number of threads.
        threads : int, optional
            Number of threads. Default: all cores.

        Returns
        -------
        list of labels, or with n a list of lists

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.5]], ["crib", "cot", "monitor"])
        >>> any("crib" in each and "cot" in each for each in dpp.sample(100, rng=0))
        False
        """
        n_sets = 1 if n is None else whole_number("n", n, 0)
        sets = self.distribution.sample(n_sets, k, rng, threads)
        named = [list(self.catalogue.select(positions)) for positions in sets]
        return named[0] if n is None else named

    # Pairs of items and explanations.

    @cached_property
    def lift(self) -> Floats:
        """P(i, j ∈ Y) divided by its value expected under independence, for all pairs; 1 on the diagonal."""
        return read_only(pair_table(self.distribution).lift)

    def substitutes(self, item: Label, k: int = 10, *, level: float | None = FDR_LEVEL) -> list[Relation]:
        """Return the items that co-occur with this one less often than expected under independence.

        Parameters
        ----------
        item : label
        k : int, default 10
            Maximum number of items.
        level : float, optional
            False discovery rate of the test that the training baskets contain both items less often than expected.
            None for all items with a lift below 1. Models without training counts are not tested.

        Returns
        -------
        list of Relation
            Lowest lift first. In catalogues of more than 2,000 items, by the end of the interval that is nearer to 1.

        Examples
        --------
        >>> import dpplearn as dl
        >>> [(each.item, round(each.lift, 2)) for each in dl.DPP.from_K([[0.5, 0.3], [0.3, 0.4]]).substitutes(0)]
        [(1, 0.55)]
        """
        return related_items(self, item, k, above=False, level=level)

    def complements(self, item: Label, k: int = 10, *, level: float | None = FDR_LEVEL) -> list[Relation]:
        """Return the items that co-occur with this one more often than expected under independence.

        Parameters are those of `substitutes`. In catalogues of more than 2,000 items, complements must have co-occurred
        at least three times.

        Returns
        -------
        list of Relation
            Highest lift first.

        Examples
        --------
        >>> import dpplearn as dl
        >>> model = dl.Mixture.from_arrays([1.0], [[-2.0, -2.0]], [[0, 2], [-2, 0]], items=["crib", "mattress"])
        >>> [(each.item, round(each.lift, 1)) for each in model.complements("crib")]
        [('mattress', 2.4)]
        """
        return related_items(self, item, k, above=True, level=level)

    def explain(self, basket: Basket, item: Label, *, n_orders: int = N_ORDERS, rng: Seed = 0) -> Explanation:
        """Return the factor by which each item of a basket changes the probability of another item.

        P(i ∈ Y) times all factors is P(i ∈ Y | A ⊆ Y).

        Parameters
        ----------
        basket : iterable of labels
        item : label
            The candidate.
        n_orders, rng : int
            For baskets of more than ten items, factors are averages over this many random orders.

        Returns
        -------
        Explanation
            Strongest influence first.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dpp = dl.DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
        >>> [(each.item, round(each.factor, 2)) for each in dpp.explain(["crib", "monitor"], "cot").influences]
        [('crib', 0.55), ('monitor', 1.0)]
        """
        positions = self.catalogue.positions(basket)
        return explanation(self.distribution, self.catalogue, positions, self.catalogue.position(item), n_orders, rng)

    @cached_property
    def caution(self) -> str:
        """Why the model is not better than independent items, in one sentence; empty if it is better."""
        return why_independent(self.distribution, self.learned, self.training)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a safetensors file; `dpplearn.load` reads it.

        Parameters
        ----------
        path : path
            An existing model file is replaced.
        force : bool, default False
            Replace an existing file of any other type, too.
        """
        from dpplearn.models.model_file import save

        save(self, path, force=force)

    def _sets(self, basket: Basket) -> Baskets:
        return sets_of([self.catalogue.positions(basket)], len(self.items))
