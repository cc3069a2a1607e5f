"""Standard errors from the curvature of a log-likelihood."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats

MIN_EIGENVALUE = 1e-9  # of the information relative to that of single parameters
MIN_LOADING = 1e-4  # of a parameter on a direction without information, from which on its error is unknown


def covariance(information: Floats, rounding: float) -> Floats:
    """Return the inverse of an information matrix, with NaN for parameters that the data do not determine.

    These are parameters whose own information is at most `rounding`, and parameters that can change together without
    changing the likelihood.
    """
    H = (information + information.T) / 2  # differences leave it not quite symmetric
    known = H.diagonal() > rounding
    unit = np.where(known, np.sqrt(np.where(known, H.diagonal(), 1)), 1)
    values, vectors = np.linalg.eigh(H / np.outer(unit, unit) * np.outer(known, known))
    flat = values <= MIN_EIGENVALUE
    found = (vectors / np.where(flat, np.inf, values)) @ vectors.T / np.outer(unit, unit)
    free = (np.abs(vectors[:, flat]) > MIN_LOADING).any(axis=1)
    found[free] = found[:, free] = np.nan
    return np.asarray(found)
