"""Write generated raw orders of thirteen categories to a Parquet file. `make demo-orders` then fits all categories.

Run: python examples/orders.py orders.parquet
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
print(f"{len(orders['item']):,} rows, {N_BASKETS:,} baskets, {len(dl.datasets.CATEGORIES)} categories: {target}")
