"""Next-item recommendation: what to offer someone who has these items already, and how good the offers are.

Run: python examples/next_item.py
"""

import dpplearn as dl

registries = dl.datasets.make_registries("toys", 6000, rng=1)
train, test = registries.split(0.7, rng=1)
model = dl.fit(train, rng=1).model

# Offers for one basket, best score first: P(basket and the item)/P(basket), of the sets that are just these. The
# probability is that of finding the item in a basket that holds these and may hold more; it is calibrated.
basket = ["Willow activity gym", "Sorrel teether"]
print("in the basket:", "; ".join(basket))
for item, score, probability in model.recommend(basket, k=5):
    print(f"  {score:.3f}  {probability:5.1%}  {item}")

# Only what is in stock, and nothing that the shop will not advertise.
in_stock = [item for item in model.items if not str(item).startswith("Tansy")]
offers = model.recommend(basket, k=3, allow=in_stock, deny=["Rowan musical mobile"])
print("in stock:", "; ".join(str(offer.item) for offer in offers))

# Each item of the basket has its share in what is offered: the teether goes with a rabbit, and a popular second gym
# is not among the offers, because the basket has one.
print(f"\n{model.explain(basket, 'Tansy plush rabbit')}")
print(f"\n{model.explain(basket, 'Hazel activity gym')}")

# Many baskets at once: one list per basket.
lists = model.recommend(test[:100], k=3)
distinct = {offer.item for offers in lists for offer in offers}
print(f"\n{len(lists)} baskets got {sum(map(len, lists))} offers, of {len(distinct)} different items")

# Are the offers good? One item of every test basket is held out, and has to be found from what is left of it.
# print(evaluated) says much more: likelihoods, calibration, and which differences are real.
evaluated = dl.evaluate(model, test, k=10)
print("\nheld-out item among the first 10 (95 % interval):")
for name in evaluated.names:
    found = evaluated.estimate(name, "recall@10")
    print(f"  {name:18} {found.value:.1%}  [{found.low:.1%}, {found.high:.1%}]")
