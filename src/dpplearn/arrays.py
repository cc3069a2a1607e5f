"""Names for the array types that pass between modules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Items = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Seed = int | np.random.Generator | None
