"""Little data: with two baskets per item, maximum likelihood gives unseen sets probability zero; shrinkage fixes that.

Run: python examples/small_data.py
"""

import math

import dpplearn as dl

# 124 registries to learn from, and many to be judged by. Some items do not occur among the 124 at all.
train = dl.datasets.make_registries("toys", 124, rng=8)
test = dl.datasets.make_registries("toys", 4000, rng=9)
print(f"{len(train)} baskets of {train.n_items} items, {(train.frequencies() == 0).sum()} of which never occur\n")

fits = {
    # Maximum likelihood takes much of what it has not seen to be impossible. If such baskets occur in test data, their
    # mean log-likelihood is minus infinity: that is the truth about the model, so it is shown.
    "maximum likelihood": dl.fit_dpp(train, shrinkage=0),
    # Set a quarter aside and stop when it becomes no likelier. This is for data that can spare a quarter.
    "early stopping": dl.fit_dpp(train, shrinkage=0, validation=0.25, rng=0),
    # Shrinkage mixes the learned kernel with independent items, here by a tenth. Every set has a positive probability.
    "shrinkage 0.1": dl.fit_dpp(train, shrinkage=0.1),
    # Cross-validation chooses the shrinkage. This is the default for a DPP.
    "shrinkage chosen": dl.fit_dpp(train, shrinkage="auto", rng=0),
    "independent items": dl.fit_dpp(train, shrinkage=1),
    # What fit learns if it is not asked for a DPP needs no such care: all of it is shrunk, by as much as always.
    "mixture": dl.fit(train, rng=0),
}

print(f"{'log-likelihood of':20}{'test':>9}   impossible")
for name, fit in fits.items():
    each = fit.model.log_prob(test)
    print(f"{name:20}{each.mean():9.3f}   {(each == -math.inf).sum()} of {len(test)} baskets")

print(f"\nthe shrinkage that was chosen: {fits['shrinkage chosen'].shrinkage:.3g}")
