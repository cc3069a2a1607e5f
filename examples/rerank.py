"""Diverse top-k: re-rank the items of another recommender.

A recommender that scores items one by one may return ten similar items. `rerank` combines its scores with the
substitutes and complements that a model has learned.

Run: python examples/rerank.py
"""

import numpy as np

import dpplearn as dl

CATEGORY, K = "safety", 8
registries = dl.datasets.make_registries(CATEGORY, 5000, rng=2)
model = dl.fit_dpp(registries).model
kind_of = {item: kind for kind, group in enumerate(dl.datasets.items_by_kind(CATEGORY)) for item in group}

# Scores of the other recommender: here popularity with noise, as for one user.
rng = np.random.default_rng(0)
scores = registries.frequencies() * np.exp(rng.normal(0, 0.5, registries.n_items))

for strength in (0, 0.1, 0.2, 0.5, 1):
    chosen = model.rerank(model.items, scores, K, strength)
    kinds = len({kind_of[item] for item in chosen})
    mean = np.mean([np.log(scores[model.catalogue.position(item)]) for item in chosen])
    print(f"strength {strength:<3}: {kinds} kinds of product in {K}, mean log-score {mean:.2f}")

print(f"\n{'top by score':36}strength 1")
for left, right in zip(*(model.rerank(model.items, scores, K, strength) for strength in (0, 1)), strict=True):
    print(f"{left:36}{right}")
