"""Where the golden values are, and what counts as equal to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from golden.reference import Arrays

FILE = Path(__file__).parent / "values.npz"
TOLERANCE = 1e-10

# A probability of 0 under a rank-deficient model may come out as rounding noise after restriction or conditioning: a
# subset of its rows has the same rank only up to rounding, so a set of more items has a determinant of about eps².
ZERO_IF_DERIVED = 1e-15

# Gradients that the learner itself does not compute to 1e-10, relative to their largest entry.
GRADIENT_TOLERANCES = {
    "low_rank": 1e-5,  # single precision, by design: eps is 6e-8, and some 100 terms are summed
    "posterior": 1e-8,  # central differences with a step of 1e-5: an error of O(step²) and of O(eps/step)
}


def assert_close(
    actual: npt.ArrayLike,
    expected: npt.ArrayLike,
    tolerance: float = TOLERANCE,
    *,
    of_norm: bool = False,
    zero: float = 0.0,
) -> None:
    """Compare relative to each entry, or relative to the largest entry. NaN in `expected` means "not compared"."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0) if of_norm else 0.0
    compared = ~np.isnan(expected)
    rtol, atol = (0.0, tolerance * scale) if of_norm else (tolerance, zero)
    np.testing.assert_allclose(actual[compared], expected[compared], rtol=rtol, atol=atol)


def assert_gradient(actual: Arrays, expected: Arrays, tolerance: float = TOLERANCE) -> None:
    """Compare relative to the largest entry of the whole gradient; that of some parameters is exactly 0."""
    assert actual.keys() == expected.keys()
    flat = [np.concatenate([np.ravel(each[name]) for name in expected]) for each in (actual, expected)]
    assert_close(*flat, tolerance, of_norm=True)


def assert_logs(actual: npt.ArrayLike, expected: npt.ArrayLike, zero: float = 0.0) -> None:
    """Compare log-probabilities. The error of a logarithm is the relative error of the probability."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    impossible = np.isneginf(expected)
    np.testing.assert_allclose(actual[~impossible], expected[~impossible], rtol=0, atol=TOLERANCE)
    assert np.all(np.exp(actual[impossible]) <= zero)


def assert_answers(actual: Arrays, expected: Arrays, zero: float = 0.0) -> None:
    """Compare two sets of answers to the same questions. Up to `zero`, a value passes for a probability of 0."""
    for name in ("log_prob", "log_sizes"):
        assert_logs(actual[name], expected[name], zero)
    for name in ("marginals", "pair_marginals", "inclusion", "scores", "probabilities"):
        assert_close(actual[name], expected[name], zero=zero)
    assert_top(actual, expected, zero)


def assert_top(actual: Arrays, expected: Arrays, zero: float = 0.0) -> None:
    """Compare lists of best items. Items of equal value may come in any order."""
    for row, recorded in enumerate(expected["top_items"]):
        n = np.count_nonzero(recorded >= 0)
        items = actual["top_items"][row]
        scores, probabilities = actual["top_scores"][row], actual["top_probabilities"][row]
        assert np.all(items[:n] >= 0)
        assert np.all((items[n:] < 0) | (np.fmin(scores[n:], probabilities[n:]) <= zero))
        assert len(set(items[:n].tolist())) == n
        for name, values in (("scores", scores), ("probabilities", probabilities)):
            assert_close(values[:n], expected[f"top_{name}"][row, :n])
            assert_close(expected[name][row, items[:n]], expected[f"top_{name}"][row, :n])
