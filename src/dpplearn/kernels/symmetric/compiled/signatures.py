"""What the compiled loops are given, and how they are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit, types

MATRIX = types.Array(types.float64, 2, "C", readonly=True)
NUMBERS = types.Array(types.float64, 1, "C", readonly=True)
ITEMS = types.Array(types.int32, 1, "C", readonly=True)
SETS = types.Array(types.int32, 2, "C", readonly=True)
GROUPS = types.Array(types.int64, 2, "C", readonly=True)
OUT_MATRIX = types.float64[:, ::1]
OUT_NUMBERS = types.float64[::1]
TWO_SUMS = types.Tuple([types.float64] * 2)  # type: ignore[no-untyped-call]


def compiled_as(signature: Any) -> Any:
    # contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
    return njit(signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


compiled: Any = compiled_as(
    types.void(MATRIX, NUMBERS, SETS, NUMBERS, types.float64, OUT_NUMBERS, OUT_MATRIX, types.boolean)
)
