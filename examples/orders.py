"""Raw orders of thirteen categories, to prepare, to learn from and to recommend for: `make demo-shelf` does all of it.

python examples/orders.py orders.parquet
"""

import sys

import duckdb

import dpplearn as dl

N_BASKETS = 13_200

target = sys.argv[1] if len(sys.argv) > 1 else "orders.parquet"
orders = dl.datasets.make_orders(N_BASKETS, rng=0)
with duckdb.connect() as connection:
    connection.register("orders", orders)
    connection.execute(f"COPY (SELECT * FROM orders) TO '{target}' (FORMAT parquet)")
print(f"{len(orders['item']):,} rows of {N_BASKETS:,} baskets and {len(dl.datasets.CATEGORIES)} categories: {target}")
