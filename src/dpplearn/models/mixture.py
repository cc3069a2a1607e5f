"""Mixture: segments that share the interactions of items and differ in item qualities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, read_only
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.errors import InputError, whole_number
from dpplearn.models.answers import Segment
from dpplearn.models.model import Basket, SetModel

RATIO_ROUNDING = 1e-10  # ratios of probabilities closer to 1 are rounding


class Mixture(SetModel):
    """A mixture of determinantal point processes, P(Y) = Σ_c π_c det((L_c)_Y) / det(I + L_c).

    `fit` learns segments c that share one interaction X, L_c = D_c (I + X) D_c, and differ in the item qualities D_c.
    `Mixture.of` combines given models.

    Parameters
    ----------
    distribution : SetDistribution
    items : sequence of labels, optional
        Item labels. Default 0, 1, ...
    learned, training
        Record of the fit.

    Examples
    --------
    >>> model = Mixture.from_arrays([1.0], [[-2.0, -2.0]], [[0, 2], [-2, 0]], items=["crib", "mattress"])
    >>> model
    Mixture(2 named items, expected size 0.33)
    >>> [(each.item, round(each.lift, 1)) for each in model.complements("crib")]
    [('mattress', 2.4)]
    """

    kind: ClassVar[str] = "mixture"

    @classmethod
    def from_arrays(
        cls,
        weights: npt.ArrayLike,
        log_odds: npt.ArrayLike,
        interaction: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        items: Sequence[Label] | None = None,
        nonempty: bool = False,
    ) -> Mixture:
        """Return a mixture with given parameters.

        Parameters
        ----------
        weights : array-like of shape (n_segments,)
            Mixing weights, before conditioning on Y ≠ ∅.
        log_odds : array-like of shape (n_segments, n_items)
            Logarithms of the item odds of each segment, D_c² = diag(exp(log_odds_c)).
        interaction : array-like of shape (n_items, n_items), or pair (Z, core)
            X with a positive semidefinite symmetric part, or low-rank as X = Z core Zᵀ. A first axis of length
            n_segments gives each segment its own interaction.
        items : sequence of labels, optional
            Item labels. Default 0, 1, ...
        nonempty : bool, default False
            Whether the distribution is conditioned on Y ≠ ∅.
        """
        if isinstance(interaction, tuple):
            Z, core = interaction
            X: Dense | LowRank = LowRank.checked(Z, _stacked(core))
        else:
            X = Dense.checked(_stacked(interaction))
        components = ScaledDPPs.checked(log_odds, X)
        make = SetDistribution.truncated if nonempty else SetDistribution.mixture
        return cls(make(weights, components), items)

    @classmethod
    def of(cls, models: Sequence[SetModel], weights: npt.ArrayLike | None = None) -> Mixture:
        """Return the mixture Σ_c w_c P_c of given models.

        Parameters
        ----------
        models : sequence of DPP and Mixture
            Models over the same items, which are matched by label.
        weights : array-like, optional
            Nonnegative weights, scaled to sum to 1. Default: equal weights.

        Examples
        --------
        >>> import dpplearn as dl
        >>> repulsive = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["crib", "cot"])
        >>> independent = dl.DPP.from_K([[0.5, 0], [0, 0.5]], ["crib", "cot"])
        >>> round(Mixture.of([repulsive, independent], [1, 3]).inclusion_prob(["crib", "cot"]), 3)  # 0.09 and 0.25
        0.21
        """
        models = list(models)
        w = np.ones(len(models)) if weights is None else np.asarray(weights)
        if not models or not all(isinstance(model, SetModel) for model in models):
            raise InputError(f"models must be one or more of DPP and Mixture, got {models!r}")
        if w.shape != (len(models),) or w.dtype.kind not in "iuf" or not (w >= 0).all() or not 0 < w.sum() < np.inf:
            raise InputError(f"weights must be {len(models)} nonnegative numbers, one per model, got {weights!r}")
        catalogue = models[0].catalogue
        each = [distribution_over(model, catalogue) for model in models]
        return cls(SetDistribution.combined(each, w / w.sum()), catalogue.labels)

    @property
    def n_segments(self) -> int:
        """The number of segments."""
        return len(self.distribution.segment_weights)

    @cached_property
    def _order(self) -> Ints:
        """The segments, largest first; equal ones, up to rounding, in the order of the distribution."""
        return np.argsort(-self.distribution.segment_weights.round(12), kind="stable")

    def segments(self, k: int = 5) -> list[Segment]:
        """Return the segments, largest first, with the k items that distinguish each of them.

        Examples
        --------
        >>> likes = [[2.0, -2.0], [-2.0, 2.0]]
        >>> model = Mixture.from_arrays([0.7, 0.3], likes, np.zeros((2, 2)), items=["tea", "coffee"])
        >>> [(round(each.weight, 2), each.likes[0][0]) for each in model.segments(1)]
        [(0.7, 'tea'), (0.3, 'coffee')]
        """
        k, weights = whole_number("k", k, 0), self.distribution.segment_weights[self._order]
        overall = weights @ self.segment_marginals
        found = []
        for weight, p in zip(weights.tolist(), self.segment_marginals, strict=True):
            ratio = np.divide(p, overall, out=np.ones_like(p), where=overall > 0)
            # Contribution of an item to the Kullback–Leibler divergence of the segment from the mixture.
            divergence = p * np.log(np.maximum(ratio, 1))
            best = np.argsort(-divergence, kind="stable")[:k]
            likes = tuple((self.items[i], float(ratio[i])) for i in best if ratio[i] > 1 + RATIO_ROUNDING)
            found.append(Segment(weight, float(p.sum()), likes))
        return found

    @cached_property
    def segment_marginals(self) -> Floats:
        """P(i ∈ Y | segment), (n_segments, n_items), in the order of `segments`."""
        return read_only(self.distribution.segment_marginals()[self._order])

    def segment_of(self, basket: Basket) -> Floats:
        """Return the posterior probability of each segment given A ⊆ Y, in the order of `segments`.

        Examples
        --------
        >>> likes = [[2.0, -2.0], [-2.0, 2.0]]
        >>> model = Mixture.from_arrays([0.7, 0.3], likes, np.zeros((2, 2)), items=["tea", "coffee"])
        >>> model.segment_of(["coffee"]).round(2).tolist()
        [0.24, 0.76]
        """
        return self.distribution.segment_posterior(self.catalogue.positions(basket))[self._order]


def distribution_over(model: SetModel, catalogue: Catalogue) -> SetDistribution:
    """Return the distribution of a model with its items in the order of a catalogue, which must have the same items."""
    odd = {*map(str, model.items)} ^ {*map(str, catalogue.labels)}
    if odd:
        raise InputError(f"item {min(odd)!r} is missing from a model or from the data; see restrict and with_items")
    order = model.catalogue.translation(catalogue)
    same = np.array_equal(order, np.arange(len(order)))
    return model.distribution if same else model.distribution.reorder(order)


def _stacked(matrices: npt.ArrayLike) -> Floats:
    array = np.asarray(matrices, dtype=float)
    return array[None] if array.ndim == 2 else array
