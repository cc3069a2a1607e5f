"""Others on large catalogues: implicit's matrix factorisation, and the published low-rank DPP.

implicit is for this alone: pip install implicit. The low-rank DPP is the form of [GPK17], L = V Vᵀ, by Adam on batches;
like theirs it adds a little to the diagonal of minors, without which baskets of items alike have no likelihood.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dpplearn as dl
from dpplearn.arrays import Floats, Ints

ALS_FACTORS = 64
COLUMNS, EPOCHS, BATCH, RATE = 80, 5, 2000, 0.03
JITTER = 1e-5  # on the diagonal of minors
DECAY, SQUARE_DECAY, TINY = 0.9, 0.99, 1e-8


def als(train: dl.Baskets, seed: int) -> Callable[[Ints], Floats]:
    """Scores of implicit's alternating least squares, untuned."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    held = np.ones(len(train.indices), np.float32)
    model = AlternatingLeastSquares(factors=ALS_FACTORS, random_state=seed)
    table = csr_matrix((held, train.indices.copy(), train.offsets.copy()), (len(train), train.n_items))
    model.fit(table, show_progress=False)

    def scores(basket: Ints) -> Floats:
        row = csr_matrix((np.ones(len(basket), np.float32), basket, [0, len(basket)]), (1, train.n_items))
        return np.asarray(model.item_factors @ model.recalculate_user(0, row), float)

    return scores


class LowRank:
    """P(Y) = det (V Vᵀ)_Y / det(I + Vᵀ V), given that Y is not empty."""

    def __init__(self, V: Floats) -> None:
        self.V = V

    def log_likelihood(self, baskets: dl.Baskets) -> float:
        """The mean per basket."""
        log_Z = np.linalg.slogdet(np.eye(self.V.shape[1]) + self.V.T @ self.V)[1]
        total = sum(
            float(baskets.weights[group.rows] @ np.linalg.slogdet(_minors(self.V[group.sets]))[1])
            for group in baskets.by_size
        )
        return total / baskets.total_weight - log_Z - float(np.log1p(-np.exp(-log_Z)))


def _minors(rows: Floats) -> Floats:
    return np.asarray(rows @ rows.transpose(0, 2, 1) + JITTER * np.eye(rows.shape[1]))


def low_rank(train: dl.Baskets, seed: int) -> LowRank:
    """Learned by the plain likelihood; rows are scaled by how frequent their items are."""
    rng = np.random.default_rng(seed)
    p = (train.frequencies() * train.total_weight + 0.5) / (train.total_weight + 1)
    scale = np.sqrt(p)[:, None]
    B = rng.standard_normal((train.n_items, COLUMNS)) / np.sqrt(COLUMNS)
    mean, square = np.zeros_like(B), np.zeros_like(B)
    steps = [part for _ in range(EPOCHS) for part in np.array_split(rng.permutation(len(train)), len(train) // BATCH)]
    for step, part in enumerate(steps):
        gradient = _gradient(scale * B, train.subset(np.sort(part))) * scale
        mean += (1 - DECAY) * (gradient - mean)
        square += (1 - SQUARE_DECAY) * (gradient**2 - square)
        rate = RATE * (1 + np.cos(np.pi * step / len(steps))) / 2
        sure = mean / (1 - DECAY ** (step + 1)), square / (1 - SQUARE_DECAY ** (step + 1))
        B += rate * sure[0] / (np.sqrt(sure[1]) + TINY)
    return LowRank(scale * B)


def _gradient(V: Floats, baskets: dl.Baskets) -> Floats:
    """Of the mean log-likelihood of a batch."""
    found = np.zeros_like(V)
    for group in baskets.by_size:
        if group.sets.shape[1]:
            rows = V[group.sets]
            np.add.at(found, group.sets, 2 * np.linalg.solve(_minors(rows), rows))
    inside = np.eye(V.shape[1]) + V.T @ V
    log_Z = np.linalg.slogdet(inside)[1]
    nonempty = -np.expm1(-log_Z)
    return np.asarray(found / len(baskets) - 2 * V @ np.linalg.inv(inside) / nonempty)
