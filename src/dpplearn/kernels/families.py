"""The families of kernels by the name that model files have."""

from __future__ import annotations

from dpplearn.arrays import Ints
from dpplearn.errors import InputError
from dpplearn.kernels import emptiness
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.interface import Arrays, Law
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.law import SymmetricLaw

FAMILIES = {each.family: each for each in (SymmetricLaw, MixtureLaw)}

AnyKernel = Kernel | MixtureKernel


def law_of(kernel: AnyKernel, *, nonempty: bool = False) -> Law:
    """The law that a kernel gives, or that law given that sets are not empty."""
    law: Law = SymmetricLaw(kernel) if isinstance(kernel, Kernel) else MixtureLaw(kernel)
    return WithEmptyShare(law) if nonempty else law


def kernel_of(law: Law) -> AnyKernel:
    """The kernel that a law comes from."""
    if isinstance(law, WithEmptyShare):
        return kernel_of(law.law)
    assert isinstance(law, SymmetricLaw | MixtureLaw)
    return law.kernel


def reordered(law: Law, order: Ints) -> Law:
    """The same law with its items in another order, to the last digit."""
    if isinstance(law, WithEmptyShare):
        return WithEmptyShare(reordered(law.law, order), law.share)
    kernel = kernel_of(law)
    if isinstance(kernel, Kernel):
        return law_of(Kernel(kernel.eigenvalues, kernel.eigenvectors[order]))
    interaction = kernel.interaction[:, order[:, None], order]
    return law_of(MixtureKernel(kernel.weights, kernel.log_odds[:, order], interaction))


def kernel_from(arrays: Arrays) -> AnyKernel:
    """What the arrays of a law without more of its own gave, told by their names."""
    return (
        Kernel(arrays["eigenvalues"], arrays["eigenvectors"])
        if "eigenvalues" in arrays
        else MixtureKernel(arrays["weights"], arrays["log_odds"], arrays["interaction"])
    )


def law_from(family: str, arrays: Arrays) -> Law:
    """What `Law.arrays` gave."""
    if family not in FAMILIES:
        raise InputError(f"its family of kernels is {family!r}, and this version knows {', '.join(FAMILIES)}")
    law: Law = FAMILIES[family].from_arrays(arrays)
    return WithEmptyShare(law, float(arrays[emptiness.NAME][0])) if emptiness.NAME in arrays else law
