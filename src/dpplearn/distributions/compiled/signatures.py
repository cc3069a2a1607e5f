"""Types of the arguments of compiled loops.

Compiler options are defined in the file of each loop, because numba's cache does not notice changes in other files.
"""

from __future__ import annotations

from numba import types

MATRIX = types.Array(types.float64, 2, "C", readonly=True)
NUMBERS = types.Array(types.float64, 1, "C", readonly=True)
ITEMS = types.Array(types.int32, 1, "C", readonly=True)
COUNTS = types.Array(types.int64, 1, "C", readonly=True)
GROUPS = types.Array(types.int64, 2, "C", readonly=True)
OUT_MATRIX = types.float64[:, ::1]
OUT_NUMBERS = types.float64[::1]
