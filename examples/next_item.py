"""Recommend items for a basket, explain recommendations, and measure recall on held-out data.

Run: python examples/next_item.py
"""

import dpplearn as dl

registries = dl.datasets.make_registries("toys", 6000, rng=1)
train, test = registries.split(0.7, rng=1)
model = dl.fit(train, rng=1).model

# Best score first. The score is P(basket with the item)/P(basket). The probability is that of a complete basket that
# contains these items to contain the recommended item, too.
basket = ["Willow activity gym", "Sorrel teether"]
print("in the basket:", "; ".join(basket))
for item, score, probability in model.recommend(basket, k=5):
    print(f"  {score:.3f}  {probability:5.1%}  {item}")

# Only items in stock, without one that should not be advertised.
in_stock = [item for item in model.items if not str(item).startswith("Tansy")]
offers = model.recommend(basket, k=3, allow=in_stock, deny=["Rowan musical mobile"])
print("in stock:", "; ".join(str(offer.item) for offer in offers))

# The rabbit is a complement of the teether. A second gym is a substitute of the first.
print(f"\n{model.explain(basket, 'Tansy plush rabbit')}")
print(f"\n{model.explain(basket, 'Hazel activity gym')}")

# Many baskets at once: one list per basket.
lists = model.recommend(test[:100], k=3)
distinct = {offer.item for offers in lists for offer in offers}
print(f"\n{len(lists)} baskets got {sum(map(len, lists))} recommendations of {len(distinct)} distinct items")

# One item of every test basket is hidden and ranked given the others. print(evaluated) shows all measures.
evaluated = dl.evaluate(model, test, k=10)
print("\nheld-out item among the first 10 (95 % interval):")
for name in evaluated.names:
    found = evaluated.estimate(name, "recall@10")
    print(f"  {name:18} {found.value:.1%}  [{found.low:.1%}, {found.high:.1%}]")
