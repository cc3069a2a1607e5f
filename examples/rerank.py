"""Diverse top-k: re-rank another recommender's scores with what a DPP learned about substitutes.

A recommender scores items one by one, so its top ten may be ten of a kind. Take its scores as quality q and the learned
similarity S of items, and choose a set of high probability under L_ij = q_i S_ij q_j.

Run: python examples/rerank.py
"""

import numpy as np

import dpplearn as dl

CATEGORY, K = "safety", 8
registries = dl.datasets.make_registries(CATEGORY, 5000, rng=2)
dpp = dl.fit(registries, model="dpp").dpp  # whose kernel says how alike items are
kind_of = {item: kind for kind, group in enumerate(dl.datasets.items_by_kind(CATEGORY)) for item in group}

# The other recommender. Any scores will do; these are popularity with noise, as for one particular user.
rng = np.random.default_rng(0)
scores = np.log(registries.frequencies()) + rng.normal(0, 0.5, registries.n_items)
top = [dpp.items[i] for i in np.argsort(-scores)[:K]]

# S_ij = K_ij / sqrt(K_ii K_jj): 1 for an item and itself, and S_ij² is the share of co-occurrence that is missing.
kernel = dpp.kernel.K
similarity = kernel / np.sqrt(np.outer(kernel.diagonal(), kernel.diagonal()))


def diverse(strength: float) -> tuple[str | int, ...]:
    """Quality is exp(strength · score): the larger, the more the scores count against diversity."""
    quality = np.exp(strength * (scores - scores.max()))
    return dl.DPP(dl.Kernel.from_L(np.outer(quality, quality) * similarity), dpp.items).greedy_map(K).items


def describe(name: str, items: list[str | int] | tuple[str | int, ...]) -> None:
    kinds = len({kind_of[item] for item in items})
    mean = np.mean([scores[dpp.catalogue.position(item)] for item in items])
    print(f"{name:24} {kinds} kinds of product in {len(items)}, mean score {mean:.2f}")


describe("top by score", top)
for strength in (2.0, 1.0, 0.5, 0.0):
    describe(f"diverse, strength {strength}", diverse(strength))

print(f"\n{'top by score':36}diverse, strength 0.5")
for left, right in zip(top, diverse(0.5), strict=True):
    print(f"{left:36}{right}")
