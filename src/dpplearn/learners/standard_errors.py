"""Standard errors from the curvature of a log-likelihood."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats

MIN_EIGENVALUE = 1e-9  # of the information relative to that of single parameters
MIN_LOADING = 1e-4  # of a parameter on a direction without information, from which on its error is unknown


def standard_errors(information: Floats, rounding: float, J: Floats) -> Floats:
    """Return the standard errors of J x for parameters x; NaN where that depends on parameters that are not determined.

    These are parameters whose own information is at most `rounding`, and parameters that can change together without
    changing the likelihood.
    """
    H = (information + information.T) / 2  # differences leave it not quite symmetric
    known = H.diagonal() > rounding
    unit = np.where(known, np.sqrt(np.where(known, H.diagonal(), 1)), 1)
    values, vectors = np.linalg.eigh(H / np.outer(unit, unit) * np.outer(known, known))
    flat = values <= MIN_EIGENVALUE
    half = J / unit @ vectors / np.sqrt(np.where(flat, np.inf, values))
    free = (np.abs(vectors[:, flat]) > MIN_LOADING).any(axis=1)
    return np.where(J[:, free].any(axis=1), np.nan, np.sqrt((half**2).sum(axis=1)))
