"""Little data: with two baskets per item, what was never seen looks impossible; a prior puts that right.

Run: python examples/small_data.py
"""

import math

import dpplearn as dl

# 72 registries to learn from, and many to be judged by. Some items do not occur among the 72 at all.
train = dl.datasets.make_registries("safety", 72, rng=8)
test = dl.datasets.make_registries("safety", 4000, rng=9)
print(f"{len(train)} baskets of {train.n_items} items, {(train.frequencies() == 0).sum()} of which never occur\n")

fits = {
    # Maximum likelihood takes much of what it has not seen to be impossible. If such baskets occur in test data, their
    # mean log-likelihood is minus infinity: that is the truth about the model, so it is shown.
    "maximum likelihood": dl.fit(train, prior=0, nonempty=False),
    # Set a quarter aside and stop when it becomes no likelier. This is for data that can spare a quarter.
    "early stopping": dl.fit(train, prior=0, validation=0.25, rng=0, nonempty=False),
    # A prior adds baskets of independent items, here of a tenth of the weight of the data: nothing is impossible.
    "prior 0.1": dl.fit(train, prior=0.1, nonempty=False),
    "prior 0.1, stopped": dl.fit(train, prior=0.1, validation=0.25, rng=0, nonempty=False),
    # Cross-validation chooses how strong it is to be, from none to nothing but the prior. This is the default.
    "prior chosen": dl.fit(train, prior="auto", rng=0, nonempty=False),
    "independent items": dl.fit(train, prior=math.inf, nonempty=False),
}

print(f"{'log-likelihood of':20}{'test':>9}   impossible")
for name, fit in fits.items():
    each = fit.dpp.log_prob(test)
    print(f"{name:20}{each.mean():9.3f}   {(each == -math.inf).sum()} of {len(test)} baskets")

print(f"\nstrength of the prior chosen: {fits['prior chosen'].prior:g} of the weight of the data")
