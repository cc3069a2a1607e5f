"""Whether the four numbers of made slates are found again, and what reranking by them brings.

python -m benchmarks.slates  # 1,500 slates of 30 candidates, and 40 times 300
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.slates import Slates
from dpplearn.kernels.symmetric.sampling import sample_sets

TRUTH = {"intercept": -2.0, "slope": 1.0, "strength": 0.8, "reach": 0.5}
N_ITEMS, N_COLUMNS = 200, 3


def similarity_of(rng: np.random.Generator) -> Floats:
    """Products of unit vectors."""
    X = rng.standard_normal((N_ITEMS, N_COLUMNS))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X @ X.T)


def made_slates(S: Floats, n_slates: int, n: int, rng: np.random.Generator, truth: dict[str, float]) -> Slates:
    """Candidates and scores at random; what is chosen is drawn exactly."""
    items = np.array([rng.choice(N_ITEMS, n, replace=False) for _ in range(n_slates)])
    scores = rng.standard_normal((n_slates, n))
    chosen = np.zeros((n_slates, n), bool)
    for row in range(n_slates):
        alike = S[np.ix_(items[row], items[row])]
        repulsion = truth["strength"] * np.exp((alike - 1) / truth["reach"] ** 2)
        np.fill_diagonal(repulsion, 1)
        d = np.exp((truth["intercept"] + truth["slope"] * scores[row]) / 2)
        chosen[row, sample_sets(dl.Kernel.from_L(np.outer(d, d) * repulsion), 1, None, rng, 1)[0]] = True
    return Slates(Catalogue.numbered(N_ITEMS), items, scores, chosen, np.ones_like(chosen))


def z_scores(fit: dl.SlatesFit, truth: dict[str, float]) -> Floats:
    found = [getattr(fit, name) for name in truth]
    return np.array(
        [(each.value - true) / each.standard_error for each, true in zip(found, truth.values(), strict=True)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=40)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    S = similarity_of(rng)
    slates = made_slates(S, 1500, 30, rng, TRUTH)
    began = time.perf_counter()
    fit = dl.fit_slates(slates, S)
    print(fit)
    print(f"{fit.evaluations} evaluations, {time.perf_counter() - began:.1f} s; truth {TRUTH}")
    print("standard errors from the truth:", z_scores(fit, TRUTH).round(2).tolist())
    z = [z_scores(dl.fit_slates(made_slates(S, 300, 30, rng, TRUTH), S), TRUTH) for _ in range(arguments.replicates)]
    told = np.array(z)
    print(f"{len(told)} times 300 slates: standard deviation of z {told.std(axis=0).round(2).tolist()}")
    print(f"  within two standard errors {(np.abs(told) < 2).mean(axis=0).round(3).tolist()}")
    none = {**TRUTH, "strength": 0.0}
    shown = [dl.fit_slates(made_slates(S, 300, 30, rng, none), S).shown for _ in range(arguments.replicates)]
    print(f"without repulsion, it is called shown in {np.mean(shown):.3f} of {len(shown)}")


if __name__ == "__main__":
    main()
