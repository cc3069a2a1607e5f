"""Conversion between the parameters that learners hold and distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.distributions.components import Components, Stack, softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.symmetric.kernel import Kernel

AnyKernel = Kernel | MixtureKernel | FactoredKernel


def components_of(kernel: AnyKernel) -> tuple[Floats, Components]:
    if isinstance(kernel, Kernel):
        return np.ones(1), SpectralDPP(kernel.eigenvalues, kernel.eigenvectors)
    if isinstance(kernel, MixtureKernel):
        X = kernel.interaction - np.eye(kernel.n_items)
        return kernel.weights, ScaledDPPs.checked(kernel.log_odds, Dense.checked(X))
    return kernel.weights, ScaledDPPs.checked(kernel.log_odds, LowRank.checked(kernel.factors, kernel.coupling))


def law_of(kernel: AnyKernel, *, nonempty: bool = False) -> SetDistribution:
    weights, components = components_of(kernel)
    return SetDistribution.truncated(weights, components) if nonempty else SetDistribution.mixture(weights, components)


def kernel_of(distribution: SetDistribution) -> Any:
    components = distribution.components
    if isinstance(components, SpectralDPP):
        return Kernel(components.eigenvalues, components.eigenvectors)
    if isinstance(components, Stack):
        raise TypeError("a mixture of given models has no kernel")
    assert isinstance(components, ScaledDPPs)
    weights = softmax(distribution.log_mass)
    if isinstance(components.interaction, LowRank):
        return FactoredKernel(weights, components.log_odds, components.interaction.Z, components.interaction.core)
    assert isinstance(components.interaction, Dense)
    return MixtureKernel(weights, components.log_odds, components.interaction.C)
