"""The families of kernels by the name that model files have."""

from __future__ import annotations

from dpplearn.errors import InputError
from dpplearn.kernels.interface import Arrays
from dpplearn.kernels.symmetric.law import SymmetricLaw

FAMILIES = {SymmetricLaw.family: SymmetricLaw}


def law_from(family: str, arrays: Arrays) -> SymmetricLaw:
    """What `Law.arrays` gave."""
    if family not in FAMILIES:
        raise InputError(f"its family of kernels is {family!r}, and this version knows {', '.join(FAMILIES)}")
    return FAMILIES[family].from_arrays(arrays)
