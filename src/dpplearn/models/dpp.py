"""DPP: a symmetric determinantal point process over named items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Label
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError
from dpplearn.models.model import SetModel
from dpplearn.models.record import Provenance, Training


class DPP(SetModel):
    """A determinantal point process with a symmetric kernel, P(Y) = det(L_Y) / det(L + I).

    Parameters
    ----------
    kernel : SpectralDPP
        Eigenvalues and eigenvectors of the marginal kernel. `from_L`, `from_K` and `from_factor` compute them.
    items : sequence of labels, optional
        Item labels, in the order of the rows of the kernel. Default 0, 1, ...
    nonempty : bool, default False
        Whether the distribution is conditioned on Y ≠ ∅.
    learned, training
        Record of the fit.

    Examples
    --------
    >>> dpp = DPP.from_K([[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]], ["crib", "cot", "monitor"])
    >>> dpp
    DPP(3 named items, expected size 1.20)
    >>> [each.item for each in dpp.recommend(["crib"])]
    ['monitor', 'cot']
    """

    kind: ClassVar[str] = "dpp"

    def __init__(
        self,
        kernel: SpectralDPP,
        items: Sequence[Label] | None = None,
        *,
        nonempty: bool = False,
        learned: Provenance | None = None,
        training: Training | None = None,
    ) -> None:
        if not isinstance(kernel, SpectralDPP):
            raise InputError(
                f"kernel must be a SpectralDPP, got {type(kernel).__name__}; see DPP.from_L and DPP.from_K"
            )
        make = SetDistribution.truncated if nonempty else SetDistribution.mixture
        super().__init__(make([1.0], kernel), items, learned=learned, training=training)

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

        Raises
        ------
        InputError
            If L is not a symmetric positive semidefinite matrix, or if `items` has another length.

        Examples
        --------
        >>> DPP.from_L([[1.0, 0.5], [0.5, 1.0]], ["crib", "cot"]).marginals().round(3).tolist()
        [0.467, 0.467]
        """
        return cls(SpectralDPP.from_L(L), items, nonempty=nonempty)

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

        Raises
        ------
        InputError
            If K is not symmetric, if an eigenvalue is not between 0 and 1, or if `items` has another length.

        Examples
        --------
        >>> round(DPP.from_K([[0.5, 0.3], [0.3, 0.4]]).inclusion_prob([0, 1]), 3)
        0.11
        """
        return cls(SpectralDPP.from_K(K), items, nonempty=nonempty)

    @classmethod
    def from_factor(cls, B: npt.ArrayLike, items: Sequence[Label] | None = None, *, nonempty: bool = False) -> DPP:
        """Return the DPP with L-ensemble kernel L = B Bᵀ.

        Parameters
        ----------
        B : array-like of shape (n_items, rank)
            One row per item.
        items : sequence of labels, optional
            Item labels, in the order of the rows. Default 0, 1, ...
        nonempty : bool, default False
            Whether the distribution is conditioned on the set not being empty.

        Examples
        --------
        >>> DPP.from_factor([[1.0], [1.0]]).size_distribution.round(3).tolist()
        [0.333, 0.667, 0.0]
        """
        return cls(SpectralDPP.from_factor(np.asarray(B, dtype=float)), items, nonempty=nonempty)

    @property
    def kernel(self) -> SpectralDPP:
        """Eigenvalues and eigenvectors of the marginal kernel."""
        return cast(SpectralDPP, self.distribution.components)

    @property
    def L(self) -> Floats:
        """The L-ensemble kernel, a read-only array of shape (n_items, n_items).

        It does not exist if an eigenvalue of K is exactly 1. Accessing it then raises `InputError`.
        """
        return self.kernel.L

    @property
    def K(self) -> Floats:
        """The marginal kernel, a read-only array of shape (n_items, n_items).

        This is the marginal kernel before any conditioning on the set not being empty.
        """
        return self.kernel.K

    def to_dppy(self) -> Any:
        """Return the DPP as a `FiniteDPP` of DPPy, a library of samplers. Its items are positions in `items`.

        Like L and K, it is not conditioned on the set not being empty.
        """
        try:
            from dppy.finite_dpps import FiniteDPP
        except ImportError as error:
            raise InputError(f"DPPy cannot be imported ({error}): pip install dppy") from None
        # With the eigenvalues: DPPy may reject its own if one is a rounding error below 0.
        kernel = self.kernel
        if kernel.near_one.any():
            return FiniteDPP("correlation", K=kernel.K, K_eig_dec=(kernel.eigenvalues, kernel.eigenvectors))
        return FiniteDPP("likelihood", L=kernel.L, L_eig_dec=(kernel.odds, kernel.eigenvectors))
