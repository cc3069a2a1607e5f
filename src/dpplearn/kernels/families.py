"""The families of kernels by the name that model files have."""

from __future__ import annotations

from dpplearn.errors import InputError
from dpplearn.kernels import emptiness
from dpplearn.kernels.emptiness import WithEmptyShare
from dpplearn.kernels.interface import Arrays, Law
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.law import SymmetricLaw

FAMILIES = {each.family: each for each in (SymmetricLaw, MixtureLaw)}


def law_from(family: str, arrays: Arrays) -> Law:
    """What `Law.arrays` gave."""
    if family not in FAMILIES:
        raise InputError(f"its family of kernels is {family!r}, and this version knows {', '.join(FAMILIES)}")
    law: Law = FAMILIES[family].from_arrays(arrays)
    return WithEmptyShare(law, float(arrays[emptiness.NAME][0])) if emptiness.NAME in arrays else law
