"""DPP: a symmetric determinantal point process over named items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.families import kernel_of, law_of
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.models.answers import Recommendation, Selection, Substitute
from dpplearn.models.evidence import LEVEL, evidence_with, told
from dpplearn.models.meetings import Chance, Together, chance_of, together
from dpplearn.models.model import SetModel
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training

ROUNDING = 1e-12  # of a substitution: what is less is none

__all__ = ["DPP", "Recommendation", "Selection", "Substitute"]


class DPP(SetModel):
    """A determinantal point process over a catalogue of items.

    `learned` tells how the kernel came about, `training` what it was learned from; both travel with the model file.

    Parameters
    ----------
    kernel
        A `Kernel`; `fit` finds one from baskets.
    items
        The labels, in the order of the kernel's rows; 0, 1, ... by default.
    nonempty
        Whether the law is P(Y given Y ≠ ∅).
    learned, training
        What `fit` says of the model that it returns.

    Examples
    --------
    >>> dpp = DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
    >>> dpp
    DPP(3 named items, expected size 1.20)
    >>> [each.item for each in dpp.recommend(["crib"])]  # a cot is more frequent, but not beside a crib
    ['monitor', 'cot']
    """

    def __init__(
        self,
        kernel: Kernel,
        items: Sequence[Label] | None = None,
        *,
        nonempty: bool = False,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"got a {type(kernel).__name__}; expected a Kernel (Kernel.from_L(L) or Kernel.from_K(K))")
        super().__init__(law_of(kernel, nonempty=nonempty), items, learned, training)

    @classmethod
    def from_L(cls, L: npt.ArrayLike, items: Sequence[Label] | None = None, *, nonempty: bool = False) -> DPP:
        """Return the DPP with L-ensemble kernel L, P(Y) = det(L_Y) / det(L + I).

        Parameters
        ----------
        L : array-like of shape (n_items, n_items)
            Symmetric and positive semidefinite, up to rounding.
        items : sequence of labels, optional
            Item labels, in the order of the rows. Default 0, 1, ...
        nonempty : bool, default False
            Whether the distribution is conditioned on the set not being empty.

        Returns
        -------
        DPP

        Raises
        ------
        InputError
            If L is not a symmetric positive semidefinite matrix, or if `items` has another length.

        Examples
        --------
        >>> dpp = DPP.from_L([[1.0, 0.5], [0.5, 1.0]], ["crib", "cot"])
        >>> dpp.marginals().round(3).tolist()
        [0.467, 0.467]
        """
        return cls(Kernel.from_L(L), items, nonempty=nonempty)

    @classmethod
    def from_K(cls, K: npt.ArrayLike, items: Sequence[Label] | None = None, *, nonempty: bool = False) -> DPP:
        """Return the DPP with marginal kernel K, P(A ⊆ Y) = det(K_A).

        Parameters
        ----------
        K : array-like of shape (n_items, n_items)
            Symmetric with eigenvalues between 0 and 1, up to rounding.
        items : sequence of labels, optional
            Item labels, in the order of the rows. Default 0, 1, ...
        nonempty : bool, default False
            Whether the distribution is conditioned on the set not being empty. K is the marginal kernel before
            conditioning.

        Returns
        -------
        DPP

        Raises
        ------
        InputError
            If K is not symmetric, if an eigenvalue is not between 0 and 1, or if `items` has another length.

        Examples
        --------
        >>> dpp = DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"])
        >>> round(dpp.inclusion_prob(["crib", "cot"]), 3)
        0.11
        """
        return cls(Kernel.from_K(K), items, nonempty=nonempty)

    @property
    def L(self) -> Floats:
        """The L-ensemble kernel, a read-only array of shape (n_items, n_items).

        It does not exist if an eigenvalue of K is exactly 1. Accessing it then raises `InputError`.
        """
        return self.kernel.L

    @property
    def K(self) -> Floats:
        """The marginal kernel, a read-only array of shape (n_items, n_items).

        If `nonempty`, this is the marginal kernel before conditioning on the set not being empty.
        """
        return self.kernel.K

    @property
    def kernel(self) -> Kernel:
        """The marginal kernel K and its eigenvectors."""
        kernel = kernel_of(self.law)
        assert isinstance(kernel, Kernel)
        return kernel

    @cached_property
    def together(self) -> Together:
        """How often every two items meet in a set, under the model and by chance."""
        return together(self.law, nonempty=self.nonempty)

    @cached_property
    def chance(self) -> Chance:
        """What meetings by chance are."""
        return chance_of(self.law, nonempty=self.nonempty)

    def substitutes(
        self,
        item: Label,
        k: int = 10,
        *,
        level: float | None = LEVEL,
        baskets: Baskets | Iterable[Iterable[Any]] | None = None,
    ) -> list[Substitute]:
        """The items that the model keeps most apart from this one, without those that it does not keep apart from it.

        By the share of the meetings by chance that it does not have, 1 − P(i, j ∈ Y)/chance. `substitute_pairs` and
        `Diagnosis.substitute_groups` use the same number.

        Those alone that chance does not explain: that met this one so much less often in the baskets learned from
        that, of the items given, at most a share of `level` is there by mistake [BH95]. A model that does not tell what
        it was learned from gives all, and so does `level=None`.

        Parameters
        ----------
        item
            The item to find others for.
        k
            How many at most.
        level
            The share that may be by mistake; None for all that the model keeps apart from it.
        baskets
            To judge by, instead of those learned from.

        Returns
        -------
        list of Substitute
            The most apart first.

        Examples
        --------
        >>> dpp = DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"])
        >>> [(each.item, round(each.substitution, 2)) for each in dpp.substitutes("crib")]
        [('cot', 0.45)]
        """
        i = self.catalogue.position(item)
        if not self.law.marginals()[i] > 0:
            raise InputError(f"item {item!r} has probability zero under this model, so it repels nothing")
        apart, seen = self.together.substitution[i], evidence_with(self._judged_by(baskets), self.chance, i)
        kept = apart > ROUNDING
        if level is not None:
            p = seen.fewer()
            p[i] = 1.0
            kept &= told(p, level)
        others = np.flatnonzero(kept)
        best = others[np.argsort(-apart[others], kind="stable")][: whole_number("k", k, 0)]
        low, high = seen.interval()
        figures = np.stack([apart, seen.met, seen.expected, 1 - high, 1 - low], axis=1)[best]
        return [Substitute(self.items[j], *each) for j, each in zip(best, figures.tolist(), strict=True)]

    def to_dppy(self) -> Any:
        """The same law in the form of DPPy, a library of samplers.

        Returns
        -------
        FiniteDPP
            Its items are numbers: positions in `items`.

        Examples
        --------
        >>> theirs = DPP.from_K([[0.5, 0.3], [0.3, 0.4]], ["crib", "cot"]).to_dppy()
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
