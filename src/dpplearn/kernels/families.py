"""The families of kernels by the name that model files have."""

from __future__ import annotations

from dpplearn.kernels.symmetric.law import SymmetricLaw

FAMILIES: dict[str, type[SymmetricLaw]] = {SymmetricLaw.family: SymmetricLaw}
