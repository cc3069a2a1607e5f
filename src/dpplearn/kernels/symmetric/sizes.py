"""The law of |Y|: a sum of independent coin flips with probabilities λ_j, in logarithms so that nothing underflows.

The elementary symmetric polynomials of a k-DPP are this law times det(L + I); unlike them it exists for λ_j = 1.
"""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.kernels.symmetric.kernel import Kernel

ROUNDS = 200  # of bisection


def log_size_table(eigenvalues: Floats, largest: int) -> Floats:
    """log P(k of the first n flips come up), for n = 0..N and k = 0..largest."""
    table = np.full((len(eigenvalues) + 1, largest + 1), -np.inf)
    table[0, 0] = 0
    with np.errstate(divide="ignore"):
        up, down = np.log(eigenvalues), np.log1p(-eigenvalues)
    for n in range(len(eigenvalues)):
        table[n + 1] = table[n] + down[n]
        table[n + 1, 1:] = np.logaddexp(table[n + 1, 1:], table[n, :-1] + up[n])
    return table


def log_size_distribution(kernel: Kernel) -> Floats:
    """log P(|Y| = k) for k = 0..N."""
    row = np.full(kernel.n_items + 1, -np.inf)
    row[0] = 0
    with np.errstate(divide="ignore"):
        up, down = np.log(kernel.eigenvalues), np.log1p(-kernel.eigenvalues)
    for n in range(kernel.n_items):
        shifted = row[:-1] + up[n]
        row = row + down[n]
        row[1:] = np.logaddexp(row[1:], shifted)
    return row


def inclusion_given_size(kernel: Kernel, k: int) -> Floats:
    """P(eigenvector j is active given that k are): λ_j P(k − 1 of the others) / P(k)."""
    if k == 0:
        return np.zeros(kernel.n_items)
    lam = kernel.eigenvalues
    before = log_size_table(lam, k - 1)
    after = log_size_table(lam[::-1], k - 1)[::-1]
    others = np.logaddexp.reduce(before[:-1] + after[1:, ::-1], axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(lam) + others - log_size_distribution(kernel)[k]))


def with_mean_size(kernel: Kernel, k: int) -> Kernel:
    """t·L with t such that a set has k items on average, k a possible size: its law given that size is that of L."""
    finite = ~kernel.at_one & (kernel.eigenvalues > 0)
    lam, wanted = kernel.eigenvalues.copy(), k - int(np.count_nonzero(kernel.at_one))
    if 0 < wanted < np.count_nonzero(finite):
        odds = kernel.odds[finite]
        low, high = -700.0, 700.0
        for _ in range(ROUNDS):
            middle = (low + high) / 2
            inside = 1 / (1 + np.exp(-(np.log(odds) + middle)))
            low, high = (middle, high) if inside.sum() < wanted else (low, middle)
        lam[finite] = inside
    else:
        lam[finite] = float(wanted > 0)
    return Kernel(lam, kernel.eigenvectors)
