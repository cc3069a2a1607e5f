"""A first model: learn what people take together, see whether it pays, ask questions; then the paper's DPP beside it.

Run: python examples/first_model.py
"""

import dpplearn as dl

# Registries of baby products, made up by code: each is a set of names. Yours: dl.read_baskets("orders.csv").
registries = dl.datasets.make_registries("safety", 4000, rng=0)
train, test = registries.split(0.7, rng=0)
print(train)

# Learn. Without being told more, fit learns a mixture: segments of people, and items that repel and attract each other.
# The summary puts the likelihood of independent items beside the model's.
fit = dl.fit(train, rng=0)
print(fit)
model = fit.model

# Which items replace each other, and which go together? By how often they meet, against chance.
monitor, movement = "Willow video monitor", "Teasel movement monitor"
for item, found in ((monitor, model.substitutes(monitor, k=3)), (movement, model.complements(movement, k=1))):
    print(f"\nbeside {item}, against chance:")
    for other in found:
        print(f"  {other.lift:.2f} times as often  {other.item}")

# What to offer to someone, and sets that look like registries.
print(f"\nnext to {movement}:")
for item, _, probability in model.recommend([movement], k=3):
    print(f"  {probability:.0%}  {item}")
print("\nthree registries that it makes up:")
for drawn in model.sample(3, rng=0):
    print("  " + "; ".join(map(str, drawn)))

# The paper's model is a DPP: items repel each other, and nothing else. learner="em" learns it as the paper does.
dpp = dl.fit_dpp(train, rng=0).model
print(f"\nwhat the DPP knows of {monitor}:")
for other in dpp.substitutes(monitor, k=3):
    print(f"  {other.substitution:.0%} rarer beside it  {other.item}")

# What counts is data that no model has seen. Log-likelihoods are means per basket, in nats; more is better. No registry
# is empty, so all three are given that a basket is not.
independent = dl.fit_dpp(train, shrinkage=1).model
print("\nlog-likelihood of test data:")
for name, each in (("mixture", model), ("DPP", dpp), ("independent items", independent)):
    print(f"  {name:18} {each.log_likelihood(test):.3f}")

# One file, without pickle; the command line reads it as well: dpplearn describe model.safetensors
model.save("model.safetensors")
print("\nread again:", dl.load("model.safetensors"))
