"""Small samples: maximum likelihood gives many unseen sets probability zero; shrinkage fixes that.

Run: python examples/small_data.py
"""

import math

import dpplearn as dl

# 124 training registries and 4,000 test registries. Some items do not occur in the training registries.
train = dl.datasets.make_registries("toys", 124, rng=8)
test = dl.datasets.make_registries("toys", 4000, rng=9)
print(f"{len(train)} baskets of {train.n_items} items; {(train.frequencies() == 0).sum()} items never occur\n")

fits = {
    # Many test baskets are impossible under maximum likelihood, so the mean log-likelihood is minus infinity.
    "maximum likelihood": dl.fit_dpp(train, shrinkage=0),
    # Hold out a quarter of the baskets, and stop when their likelihood no longer increases.
    "early stopping": dl.fit_dpp(train, shrinkage=0, validation=0.25, rng=0),
    # Shrinkage mixes the learned kernel with independent items, here by a tenth. Every set has a positive probability.
    "shrinkage 0.1": dl.fit_dpp(train, shrinkage=0.1),
    # Cross-validation chooses the shrinkage. This is the default for a DPP.
    "shrinkage chosen": dl.fit_dpp(train, shrinkage="auto", rng=0),
    "independent items": dl.fit_dpp(train, shrinkage=1),
    # The mixture is regularised by fixed penalties.
    "mixture": dl.fit(train, rng=0),
}

print(f"{'log-likelihood of':20}{'test':>9}   impossible")
for name, fit in fits.items():
    each = fit.model.log_prob(test)
    print(f"{name:20}{each.mean():9.3f}   {(each == -math.inf).sum()} of {len(test)} baskets")

print(f"\nchosen shrinkage: {fits['shrinkage chosen'].shrinkage:.3g}")
