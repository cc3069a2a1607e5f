"""Mixture: segments of people that share how items repel and attract, and differ in what they like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.factored import conditioning as factored
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.families import kernel_of, law_of
from dpplearn.kernels.nonsymmetric import conditioning as nonsymmetric
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.weighted import conditioning as weighted
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.models.answers import Relation, Segment
from dpplearn.models.evidence import LEVEL, evidence_with, told
from dpplearn.models.meetings import Chance, chance_of, together
from dpplearn.models.mixing import mixed_models
from dpplearn.models.model import SetModel
from dpplearn.models.named_law import Basket
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools.memory import NUMBER, in_bytes

ROUNDING = 1e-10  # of a lift or a ratio of probabilities: what is nearer to 1 says nothing
LARGE = 2000  # items, beyond which there are so many pairs that chance alone would fill a list of the strongest
FEWEST_MET = 3  # meetings, of which a large catalogue has some pairs by chance alone
MOST_IN_FULL = 5000  # items of which every pair is kept, in 200 MB

SegmentKernel = MixtureKernel | FactoredKernel | WeightedKernel


class Mixture(SetModel):
    """A mixture of determinantal point processes over a catalogue of items: P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c).

    Its segments c share one interaction, which repels and attracts, and differ in how much they like each item. `fit`
    learns one; `learned` tells how, and `training` what from; both travel with the model file.

    Parameters
    ----------
    kernel
        A `MixtureKernel`; of large catalogues a `FactoredKernel`; of laws that are given, a `WeightedKernel`.
    items
        The labels, in the order of the kernel's rows; 0, 1, ... by default.
    nonempty
        Whether the law is P(Y given Y ≠ ∅).
    learned, training
        What `fit` says of the model that it returns.

    Examples
    --------
    >>> attracts = [[1, 2], [-2, 1]]
    >>> kernel = MixtureKernel(np.ones(1), np.array([[-2.0, -2.0]]), np.array([attracts]))
    >>> model = Mixture(kernel, ["crib", "mattress"])
    >>> model
    Mixture(2 named items, 1 segment, expected size 0.33)
    >>> [(each.item, round(each.lift, 1)) for each in model.complements("crib")]
    [('mattress', 2.4)]
    """

    def __init__(
        self,
        kernel: SegmentKernel,
        items: Sequence[Label] | None = None,
        *,
        nonempty: bool = False,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        if not isinstance(kernel, SegmentKernel):
            expected = "expected a MixtureKernel, FactoredKernel or WeightedKernel, as fit finds"
            raise InputError(f"got a {type(kernel).__name__}; {expected}")
        super().__init__(law_of(kernel, nonempty=nonempty), items, learned, training)

    @classmethod
    def of(cls, models: Sequence[SetModel], weights: npt.ArrayLike | None = None) -> Mixture:
        """The mixture of models that are given, P(Y) = Σ_c w_c P_c(Y), each of which becomes a segment.

        Parameters
        ----------
        models
            DPPs or mixtures over the same items, which are found by label and stand in the order of the first.
        weights
            How likely each is, 0 or more, taken as shares of their sum; by default all alike.

        Returns
        -------
        Mixture
            Of laws that exclude the empty set, one that does; in general the empty set is as likely as Σ_c w_c P_c(∅).

        Examples
        --------
        >>> import dpplearn as dl
        >>> repels = dl.DPP(dl.Kernel.from_K([[0.5, 0.4], [0.4, 0.5]]), ["crib", "cot"])
        >>> apart = dl.DPP(dl.Kernel.from_K([[0.5, 0], [0, 0.5]]), ["crib", "cot"])
        >>> model = Mixture.of([repels, apart], [1, 3])
        >>> round(model.inclusion_prob(["crib", "cot"]), 3)  # 0.09 and 0.25
        0.21
        """
        law, catalogue = mixed_models(models, weights)
        return cls.of_law(law, catalogue.labels)

    @property
    def kernel(self) -> SegmentKernel:
        """The segments' weights and log-odds, and the interaction that they share; or their weights and laws."""
        kernel = kernel_of(self.law)
        assert isinstance(kernel, SegmentKernel)
        return kernel

    @property
    def n_segments(self) -> int:
        """How many kinds of people there are."""
        return self.kernel.n_segments

    @property
    def _more(self) -> str:  # type: ignore[override]
        return f", {self.n_segments} segment{'s' if self.n_segments != 1 else ''}"

    @cached_property
    def lift(self) -> Floats:
        """How many times as often as by chance every two items are together; 1 on the diagonal.

        P(i, j ∈ Y)/(P(i ∈ Y) P(j ∈ Y)); of a law of sets that are not empty, chance is that of independent items given
        that not all are absent. Refused for more than 5,000 items.
        """
        p = self.law.marginals()
        if len(p) > MOST_IN_FULL:
            raise InputError(
                f"the lift of every two of {len(p):,} items would take {in_bytes(NUMBER * len(p) ** 2)}; ask for those "
                "of one item (substitutes, complements), or of the surest pairs (analysis.relations.related_pairs)"
            )
        return read_only(together(self.law, nonempty=self.nonempty).lift)

    @cached_property
    def chance(self) -> Chance:
        """What meetings by chance are."""
        return chance_of(self.law, nonempty=self.nonempty)

    def _lift_of(self, i: int) -> Floats:
        """The row of `lift` of one item."""
        m = self.chance.m
        both, by_chance = self.law.pairs_with(i) / self.chance.not_empty, self.chance.q * m[i] * m
        found = np.divide(both, by_chance, out=np.ones_like(both), where=by_chance > 0)
        found[i] = 1
        return np.asarray(found)

    def substitutes(
        self,
        item: Label,
        k: int = 10,
        *,
        level: float | None = LEVEL,
        baskets: Baskets | Iterable[Iterable[Any]] | None = None,
    ) -> list[Relation]:
        """The items that are together with this one less often than by chance.

        Those alone that chance does not explain: that met this one so much less often in the baskets learned from
        that, of the items given, at most a share of `level` is there by mistake [BH95]. A model that does not tell what
        it was learned from gives all, and so does `level=None`.

        Of more than 2,000 items, the surest come first: by the end of the interval that is nearer to 1, or by the lift
        where that is nearer still.

        Parameters
        ----------
        item
            The item to find others for.
        k
            How many at most.
        level
            The share that may be by mistake; None for all whose lift is below 1.
        baskets
            To judge by, instead of those learned from.

        Returns
        -------
        list of Relation
            The lowest lift first, all below 1.

        Examples
        --------
        >>> repels = [[2, 1], [1, 2]]
        >>> kernel = MixtureKernel(np.ones(1), np.array([[-2.0, -2.0]]), np.array([repels]))
        >>> [each.item for each in Mixture(kernel, ["crib", "cot"]).substitutes("crib")]
        ['cot']
        """
        return self._relations(item, k, np.negative, level, baskets)

    def complements(
        self,
        item: Label,
        k: int = 10,
        *,
        level: float | None = LEVEL,
        baskets: Baskets | Iterable[Iterable[Any]] | None = None,
    ) -> list[Relation]:
        """The items that are together with this one more often than by chance.

        Those alone that chance does not explain, as in `substitutes`; of more than 2,000 items, that met three times or
        more.

        Parameters
        ----------
        item
            The item to find others for.
        k
            How many at most.
        level, baskets
            As in `substitutes`.

        Returns
        -------
        list of Relation
            The highest lift first, all above 1.

        Examples
        --------
        >>> attracts = [[1, 2], [-2, 1]]
        >>> kernel = MixtureKernel(np.ones(1), np.array([[-2.0, -2.0]]), np.array([attracts]))
        >>> [each.item for each in Mixture(kernel, ["crib", "mattress"]).complements("crib")]
        ['mattress']
        """
        return self._relations(item, k, np.positive, level, baskets)

    def _relations(
        self,
        item: Label,
        k: int,
        side: np.ufunc,
        level: float | None,
        baskets: Baskets | Iterable[Iterable[Any]] | None,
    ) -> list[Relation]:
        """The k others whose lift is furthest on one side of 1: below it for `np.negative`."""
        i, training = self.catalogue.position(item), self._judged_by(baskets)
        lift, seen = self._lift_of(i), evidence_with(training, self.chance, i)
        (low, high), by = seen.interval(), side(lift)
        far = side(lift - 1) > ROUNDING
        if level is not None:
            p = seen.more() if side is np.positive else seen.fewer()
            p[i] = 1.0
            far &= told(p, level)
        if len(lift) > LARGE and training is not None:
            far &= (seen.met >= fewest_met(self)) | (side is np.negative)
            by = np.where(far, np.minimum(by, low if side is np.positive else -high), by)
            far &= by > side(1)
        others = np.flatnonzero(far)
        best = others[np.argsort(-by[others], kind="stable")][: whole_number("k", k, 0)]
        figures = np.stack([lift, seen.met, seen.expected, low, high], axis=1)[best]
        return [Relation(self.items[j], *each) for j, each in zip(best, figures.tolist(), strict=True)]

    def segments(self, k: int = 5) -> list[Segment]:
        """The kinds of people that the model knows.

        Parameters
        ----------
        k
            How many items to name for each.

        Returns
        -------
        list of Segment
            The largest first.

        Examples
        --------
        >>> likes = np.array([[2.0, -2.0], [-2.0, 2.0]])
        >>> kernel = MixtureKernel(np.array([0.7, 0.3]), likes, np.eye(2)[None])
        >>> for each in Mixture(kernel, ["tea", "coffee"]).segments(1):
        ...     print(round(each.weight, 2), each.likes[0][0])
        0.7 tea
        0.3 coffee
        """
        k, weights = whole_number("k", k, 0), np.sort(self._segment_weights[0])[::-1]
        overall = weights @ self.segment_marginals
        found = []
        for weight, p in zip(weights.tolist(), self.segment_marginals, strict=True):
            ratio = p / overall
            telling = p * np.log(np.maximum(ratio, 1))  # what an item adds to telling the segment from the others
            best = np.argsort(-telling, kind="stable")[:k]
            likes = tuple((self.items[i], float(ratio[i])) for i in best if ratio[i] > 1 + ROUNDING)
            found.append(Segment(weight, float(p.sum()), likes))
        return found

    @cached_property
    def segment_marginals(self) -> Floats:
        """P(i ∈ Y given the segment), (n_segments, n_items), in the order of `segments`."""
        weights, scale = self._segment_weights
        return read_only((scale[:, None] * _marginals(self.kernel))[np.argsort(-weights, kind="stable")])

    @cached_property
    def _segment_weights(self) -> tuple[Floats, Floats]:
        """How likely each segment is under the law, and by what that multiplies its probabilities."""
        kernel = self.kernel
        if not self.nonempty:
            return kernel.weights, np.ones(kernel.n_segments)
        not_empty = -np.expm1(-kernel.log_normalisers)
        weights = kernel.weights * not_empty
        return np.asarray(weights / weights.sum()), np.asarray(1 / not_empty)

    def segment_of(self, basket: Basket) -> Floats:
        """How likely each kind of people is, given the items of a basket that may still grow.

        Parameters
        ----------
        basket
            The items that are there already.

        Returns
        -------
        array of float
            One probability per segment, in the order of `segments`, adding up to 1.

        Examples
        --------
        >>> likes = np.array([[2.0, -2.0], [-2.0, 2.0]])
        >>> model = Mixture(MixtureKernel(np.array([0.7, 0.3]), likes, np.eye(2)[None]), ["tea", "coffee"])
        >>> model.segment_of(["coffee"]).round(2).tolist()
        [0.24, 0.76]
        """
        weights, _ = self._segment_weights
        order = np.argsort(-weights, kind="stable")
        positions = self.catalogue.positions(basket)
        return _segments_given(self.kernel, positions)[order] if len(positions) else weights[order]


def _marginals(kernel: SegmentKernel) -> Floats:
    """P(i ∈ Y given segment c), (n_segments, n_items)."""
    return np.diagonal(kernel.K, axis1=1, axis2=2) if isinstance(kernel, MixtureKernel) else kernel.marginals


def _segments_given(kernel: SegmentKernel, basket: Ints) -> Floats:
    if isinstance(kernel, WeightedKernel):
        return weighted.segment_probabilities(kernel, basket)
    if isinstance(kernel, MixtureKernel):
        return nonsymmetric.segment_probabilities(kernel, basket)
    return factored.segment_probabilities(kernel, basket)


def fewest_met(model: Mixture) -> float:
    """How often two items must have met to be said to go together."""
    return FEWEST_MET if len(model.items) > LARGE else 0.0
