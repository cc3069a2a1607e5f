"""A first model: learn which products replace each other, see whether it pays, and ask it questions.

Run: python examples/first_model.py
"""

import dpplearn as dl

# Registries of baby products, made up by code: each is a set of names. Yours: dl.read_baskets("orders.csv").
registries = dl.datasets.make_registries("safety", 4000, rng=0)
train, test = registries.split(0.7, rng=0)
print(train)

# Learn. The summary puts the likelihood of independent items beside the model's: the difference is what repulsion adds.
fit = dl.fit(train, rng=0, model="dpp", nonempty=False)
print(fit)
dpp = fit.dpp

# What counts is data that the model has not seen. Log-likelihoods are means per basket, in nats; more is better.
independent = dl.fit(train, prior=float("inf"), nonempty=False)
print(f"\nlog-likelihood of test data: {dpp.log_likelihood(test):.3f}")
print(f"          independent items: {independent.dpp.log_likelihood(test):.3f}")

# Which items compete? 1 means never in one basket; 0, together as often as by chance.
monitor = "Willow video monitor"
print(f"\nsubstitutes of {monitor}:")
for item, apart in dpp.substitutes(monitor, k=3):
    print(f"  {apart:.0%}  {item}")

# How likely are sets? A second video monitor makes this one far less likely than a night light does.
for other in ("Hazel video monitor", "Fennel night light"):
    ratio = dpp.inclusion_prob([monitor, other]) / (dpp.inclusion_prob([monitor]) * dpp.inclusion_prob([other]))
    print(f"with {other}: {ratio:.2f} times as often as by chance")

# Sets drawn from the model look like registries.
print("\nthree registries that it makes up:")
for drawn in dpp.sample(3, rng=0):
    print("  " + "; ".join(map(str, drawn)))

# One file, without pickle; the command line reads it as well: dpplearn describe model.safetensors
dpp.save("model.safetensors")
print("\nread again:", dl.load("model.safetensors"))
