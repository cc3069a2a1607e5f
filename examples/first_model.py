"""Fit a mixture and a symmetric DPP, ask questions, and compare both on held-out data.

Run: python examples/first_model.py
"""

import dpplearn as dl

# Generated gift registries: each is a set of item names. For your data: dl.read_baskets("orders.csv").
registries = dl.datasets.make_registries("safety", 4000, rng=0)
train, test = registries.split(0.7, rng=0)
print(train)

# The default model is a mixture: segments of customers, and items that repel and attract each other.
fit = dl.fit(train, rng=0)
print(fit)
model = fit.model

# Substitutes have a lift below 1, complements a lift above 1.
monitor, movement = "Willow video monitor", "Teasel movement monitor"
for item, found in ((monitor, model.substitutes(monitor, k=3)), (movement, model.complements(movement, k=1))):
    print(f"\nlift with {item}:")
    for other in found:
        print(f"  {other.lift:.2f}  {other.item}")

# Recommendations, and random registries.
print(f"\nprobability given {movement}:")
for item, _, probability in model.recommend([movement], k=3):
    print(f"  {probability:.0%}  {item}")
print("\nthree draws:")
for drawn in model.sample(3, rng=0):
    print("  " + "; ".join(map(str, drawn)))

# The paper's model is a symmetric DPP, in which items only repel each other. learner="em" is the paper's algorithm.
dpp = dl.fit_dpp(train, rng=0).model
print(f"\nlift with {monitor} under the DPP:")
for other in dpp.substitutes(monitor, k=3):
    print(f"  {other.lift:.2f}  {other.item}")

# Held-out log-likelihood per basket, in nats. No registry is empty, so all three are conditioned on nonempty baskets.
independent = dl.fit_dpp(train, shrinkage=1).model
print("\nlog-likelihood of test data:")
for name, each in (("mixture", model), ("DPP", dpp), ("independent items", independent)):
    print(f"  {name:18} {each.log_likelihood(test):.3f}")

# One safetensors file, which the command line also reads: dpplearn describe model.safetensors
model.save("model.safetensors")
print("\nloaded:", dl.load("model.safetensors"))
