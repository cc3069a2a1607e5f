"""Little data: with two baskets per item, what was never seen looks impossible to a DPP; a prior puts that right.

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
    "maximum likelihood": dl.fit(train, prior=0),
    # Set a quarter aside and stop when it becomes no likelier. This is for data that can spare a quarter.
    "early stopping": dl.fit(train, prior=0, validation=0.25, rng=0),
    # A prior adds baskets of independent items, here of a tenth of the weight of the data: nothing is impossible.
    "prior 0.1": dl.fit(train, prior=0.1),
    "prior 0.1, stopped": dl.fit(train, prior=0.1, validation=0.25, rng=0),
    # Cross-validation chooses how strong it is to be, from none to nothing but the prior. This is the default of a DPP.
    "prior chosen": dl.fit(train, prior="auto", rng=0),
    "independent items": dl.fit(train, prior=math.inf),
    # What fit learns if it is not asked for a DPP needs no such care: all of it is shrunk, by as much as always.
    "mixture": dl.fit(train, rng=0),
}

print(f"{'log-likelihood of':20}{'test':>9}   impossible")
for name, fit in fits.items():
    each = fit.model.log_prob(test)
    print(f"{name:20}{each.mean():9.3f}   {(each == -math.inf).sum()} of {len(test)} baskets")

print(f"\nstrength of the prior chosen: {fits['prior chosen'].prior:g} of the weight of the data")
