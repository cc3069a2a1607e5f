"""Next-item recommendation: what to offer someone who has these items already, and how good the offers are.

Run: python examples/next_item.py
"""

import dpplearn as dl

registries = dl.datasets.make_registries("feeding", 6000, rng=1)
train, test = registries.split(0.7, rng=1)
dpp = dl.fit(
    train, prior=0, nonempty=False
).dpp  # baskets are many; where they are few, a prior helps: see small_data.py

# Offers for one basket, best score first: P(basket and the item)/P(basket), of the sets that are just these. The
# probability is that of finding the item in a basket that holds these and may hold more; it is calibrated.
basket = ["Willow baby bottle", "Tansy high chair", "Heron pacifier"]
print("in the basket:", "; ".join(basket))
for item, score, probability in dpp.recommend(basket, k=5):
    print(f"  {score:.3f}  {probability:5.1%}  {item}")

# Only what is in stock, and nothing that the shop will not advertise.
in_stock = [item for item in dpp.items if not str(item).startswith("Sorrel")]
offers = dpp.recommend(basket, k=3, allow=in_stock, deny=["Larkspur nursing stool"])
print("in stock:", "; ".join(str(offer.item) for offer in offers))

# A popular bottle is not among them: the basket has one. Each item of the basket has its share in that.
print(f"\n{dpp.explain(basket, 'Hazel baby bottle')}")

# Many baskets at once: one list per basket.
lists = dpp.recommend(test[:100], k=3)
distinct = {offer.item for offers in lists for offer in offers}
print(f"\n{len(lists)} baskets got {sum(map(len, lists))} offers, of {len(distinct)} different items")

# Are the offers good? One item of every test basket is held out, and has to be found from what is left of it.
# print(evaluated) says much more: likelihoods, calibration, diversity, and which differences are real.
evaluated = dl.evaluate(dpp, test, k=10)
print("\nheld-out item among the first 10 (95 % interval):")
for name in evaluated.names:
    found = evaluated.estimate(name, "recall@10")
    print(f"  {name:18} {found.value:.1%}  [{found.low:.1%}, {found.high:.1%}]")
