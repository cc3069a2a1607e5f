"""The families of kernels by the name that model files have."""

from __future__ import annotations

from typing import Any

from dpplearn.arrays import Ints
from dpplearn.errors import InputError
from dpplearn.kernels import emptiness
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.interface import Arrays, Law
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.law import SymmetricLaw
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.kernels.weighted.law import TOLD_BY, WeightedLaw

FAMILIES = {each.family: each for each in (SymmetricLaw, MixtureLaw, FactoredLaw, WeightedLaw)}

AnyKernel = Kernel | MixtureKernel | FactoredKernel | WeightedKernel


def law_of(kernel: AnyKernel, *, nonempty: bool = False) -> Law:
    """The law that a kernel gives, or that law given that sets are not empty."""
    law: Law
    if isinstance(kernel, Kernel):
        law = SymmetricLaw(kernel)
    elif isinstance(kernel, WeightedKernel):
        law = WeightedLaw(kernel)
    else:
        law = MixtureLaw(kernel) if isinstance(kernel, MixtureKernel) else FactoredLaw(kernel)
    return WithEmptyShare(law) if nonempty else law


def kernel_of(law: Law) -> AnyKernel:
    """The kernel that a law comes from."""
    if isinstance(law, WithEmptyShare):
        return kernel_of(law.law)
    assert isinstance(law, SymmetricLaw | MixtureLaw | FactoredLaw | WeightedLaw)
    return law.kernel


def reordered(law: Law, order: Ints) -> Law:
    """The same law with its items in another order, to the last digit."""
    if isinstance(law, WithEmptyShare):
        return WithEmptyShare(reordered(law.law, order), law.share)
    kernel = kernel_of(law)
    if isinstance(kernel, Kernel):
        return law_of(Kernel(kernel.eigenvalues, kernel.eigenvectors[order]))
    if isinstance(kernel, WeightedKernel):
        return law_of(WeightedKernel(kernel.weights, tuple(reordered(each, order) for each in kernel.laws)))
    if isinstance(kernel, FactoredKernel):
        factors = kernel.factors[order]
        return law_of(FactoredKernel(kernel.weights, kernel.log_odds[:, order], factors, kernel.coupling))
    interaction = kernel.interaction[:, order[:, None], order]
    return law_of(MixtureKernel(kernel.weights, kernel.log_odds[:, order], interaction))


def kernel_from(arrays: Arrays) -> AnyKernel:
    """What the arrays of a law without more of its own gave, told by their names."""
    told_by: dict[str, Any] = {**TOLD_BY, "law_weights": WeightedLaw}
    return kernel_of(law_from(next(law.family for name, law in told_by.items() if name in arrays), arrays))


def law_from(family: str, arrays: Arrays) -> Law:
    """What `Law.arrays` gave."""
    if family not in FAMILIES:
        raise InputError(f"its family of kernels is {family!r}, and this version knows {', '.join(FAMILIES)}")
    law: Law = FAMILIES[family].from_arrays(arrays)
    return WithEmptyShare(law, float(arrays[emptiness.NAME][0])) if emptiness.NAME in arrays else law
