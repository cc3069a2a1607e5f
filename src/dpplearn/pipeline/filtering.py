"""The rules in SQL, in steps that each end in a table: rows, pairs of basket and item, fates.

Every product (an item of a category), category and basket has a *fate*, the number of the rule that it is lost by, and
that of a category or a basket is the latest among its products'. Baskets are taken in parts, by a hash of their
identifier, so that what is unique within a part fits in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpplearn.data.tables import sql_text
from dpplearn.errors import InputError
from dpplearn.pipeline.rules import STAGE, Rules
from dpplearn.pipeline.stage import Stage

ROWS_PER_PART = 3_000_000  # few enough that what is unique among them is found in memory
BYTES_PER_ROW = 400  # that a part takes, all in all
MOST_PARTS = 250


@dataclass(frozen=True)
class Work:
    """A stage, the rules, and which of the optional columns there are."""

    stage: Stage
    rules: Rules
    weighted: bool
    timed: bool

    @property
    def extras(self) -> list[str]:
        return ["weight"] * self.weighted + ["time"] * self.timed

    def listing(self, template: str) -> str:
        """One entry per optional column, each after a comma."""
        return "".join(", " + template.format(extra) for extra in self.extras)


def number_products(stage: Stage, rules: Rules) -> None:
    """Every item of every category gets a number, by category and name."""
    dropped = _named(rules.drop)
    if rules.items:
        dropped = f"{dropped} OR NOT {_named(rules.items)}"
    stage.run(f"""
        CREATE TABLE products AS
        SELECT CAST(row_number() OVER (ORDER BY category, item) AS INTEGER) AS product,
            CAST(dense_rank() OVER (ORDER BY category) AS INTEGER) AS category_number,
            CAST(dense_rank() OVER (ORDER BY item) AS INTEGER) AS item_number,
            item, category, n_rows, {dropped} AS dropped
        FROM (SELECT item, category, sum(n) AS n_rows FROM scanned WHERE reason IS NULL GROUP BY ALL)
        LEFT JOIN names USING (item)
    """)


def _named(labels: tuple[str, ...]) -> str:
    """Whether an item is one of these, by identifier or name."""
    these = ", ".join(map(sql_text, labels)) or "NULL"
    return f"coalesce(item IN ({these}) OR name IN ({these}), false)"


def make_orders(work: Work, rows: str) -> None:
    """Every usable row with the number of its product, and the part that its basket is in."""
    stage = work.stage
    expected = stage.one("SELECT coalesce(sum(n_rows), 0) FROM products")
    at_once = min(ROWS_PER_PART, stage.memory / 2 / BYTES_PER_ROW)
    parts = min(math.ceil(int(expected) / at_once), MOST_PARTS)
    stage.run(f"CREATE TABLE parts AS SELECT CAST(range AS UTINYINT) AS part FROM range({parts})")
    stage.run(f"""
        CREATE TABLE orders AS SELECT basket, product, CAST(hash(basket) % {parts} AS UTINYINT) AS part
            {work.listing("{}")}
        FROM ({rows}) JOIN products USING (item, category) WHERE reason IS NULL
    """)
    if stage.one("SELECT count(*) FROM orders") != expected:
        raise InputError(f"{stage.source} changed while it was read; prepare again when nobody writes to it")
    extras = work.listing("{0}").replace("weight", "weight DOUBLE").replace("time", "time TIMESTAMPTZ")
    kind = stage.one("SELECT data_type FROM duckdb_columns() WHERE table_name = 'orders' AND column_name = 'basket'")
    stage.run(f"CREATE TABLE baskets (basket {kind}, part UTINYINT{extras})")
    stage.run(f"CREATE TABLE pairs (basket {kind}, product INTEGER, part UTINYINT)")
    stage.run("CREATE TABLE product_tally (product INTEGER, fate INTEGER, rows BIGINT, baskets BIGINT)")
    stage.run("CREATE TABLE basket_tally (fate INTEGER, baskets BIGINT)")
    stage.run("CREATE TABLE category_tally (category_number INTEGER, baskets BIGINT)")
    stage.run(f"CREATE TABLE kept_baskets (basket {kind}, home INTEGER{extras})")


def sift_baskets(work: Work, part: int) -> None:
    """The rules on whole baskets, for one part of them: what is kept, and a tally of what is not."""
    stage, rules = work.stage, work.rules
    low_high = ", min(weight) AS lowest, max(weight) AS highest" if work.weighted else ""
    latest = ", max(time) AS time" if work.timed else ""
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE distinct_pairs AS SELECT basket, product, count(*) AS n{low_high}{latest}
        FROM orders WHERE part = {part} GROUP BY basket, product
    """)
    size, join = _size(work)
    low_high = ", min(lowest) AS lowest, max(highest) AS highest" if work.weighted else ""
    differ = f"WHEN lowest <> highest THEN {STAGE['weights']}" if work.weighted else ""
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE sized AS SELECT *, CASE {differ}
            WHEN size < {rules.min_products} THEN {STAGE["min_products"]}
            WHEN size > {rules.max_products} THEN {STAGE["max_products"]} ELSE {STAGE["kept"]} END AS fate
        FROM (SELECT basket, {size} AS size{low_high}{latest} FROM distinct_pairs {join}
              WHERE {_not_dropped(work)} GROUP BY basket)
    """)
    _tally(work)
    extras = work.listing("{}").replace("weight", "lowest")
    stage.run(f"INSERT INTO baskets SELECT basket, {part}{extras} FROM sized WHERE fate = {STAGE['kept']}")
    stage.run(f"""
        INSERT INTO pairs SELECT basket, product, {part} FROM distinct_pairs JOIN sized USING (basket)
        WHERE fate = {STAGE["kept"]} AND {_not_dropped(work)}
    """)


def _not_dropped(work: Work) -> str:
    return "product NOT IN (SELECT product FROM products WHERE dropped)" if work.rules.drops else "true"


def _size(work: Work) -> tuple[str, str]:
    """How the size of a basket is counted, and what to join for that: an item may be in several categories."""
    if work.rules.count == "rows":
        return "sum(n)", ""
    if work.stage.one("SELECT count(DISTINCT item_number) < count(*) FROM products"):
        return "count(DISTINCT item_number)", "JOIN products USING (product)"
    return "count(*)", ""


def _tally(work: Work) -> None:
    """How many rows and pairs of each product, and how many baskets, met which fate."""
    stage, drop = work.stage, STAGE["drop"]
    stage.run(f"""
        INSERT INTO product_tally SELECT product, fate, sum(n), count(*)
        FROM distinct_pairs JOIN sized USING (basket) WHERE {_not_dropped(work)} GROUP BY product, fate
    """)
    stage.run("INSERT INTO basket_tally SELECT fate, count(*) FROM sized GROUP BY fate")
    if work.rules.drops:
        stage.run(f"""
            INSERT INTO product_tally SELECT product, {drop}, sum(n), count(*) FROM distinct_pairs
            WHERE NOT ({_not_dropped(work)}) GROUP BY product
        """)
        stage.run(f"""
            INSERT INTO basket_tally SELECT {drop}, count(DISTINCT basket) - (SELECT count(*) FROM sized)
            FROM distinct_pairs
        """)


def judge_items(work: Work) -> None:
    """The rules on items. One pass is enough: an item that goes takes no basket with it that holds another."""
    rules = work.rules
    work.stage.run(f"""
        CREATE TABLE counted AS SELECT product, category_number, coalesce(max(t.fate), {STAGE["drop"]}) AS latest,
            coalesce(sum(baskets) FILTER (t.fate = {STAGE["kept"]}), 0) AS baskets
        FROM products p LEFT JOIN product_tally t USING (product) GROUP BY product, category_number
    """)
    work.stage.run(f"""
        CREATE TABLE item_fates AS SELECT product, category_number, baskets, CASE
            WHEN latest < {STAGE["kept"]} THEN latest
            WHEN baskets < {rules.min_count} THEN {STAGE["min_count"]}
            WHEN row_number() OVER (PARTITION BY category_number ORDER BY baskets DESC, product) > {rules.top_items}
            THEN {STAGE["top_items"]} ELSE {STAGE["kept"]} END AS fate
        FROM counted
    """)


def count_sub_baskets(work: Work, part: int) -> None:
    """How many baskets hold an item of each category that is still there."""
    work.stage.run(f"""
        INSERT INTO category_tally SELECT category_number, count(*)
        FROM (SELECT DISTINCT basket, category_number FROM pairs JOIN item_fates USING (product)
              WHERE part = {part} AND fate = {STAGE["kept"]}) GROUP BY category_number
    """)


def judge_categories(work: Work) -> None:
    """The rules on categories, after those on items; and the fate of every product."""
    rules, kept = work.rules, STAGE["kept"]
    work.stage.run(f"""
        CREATE TABLE categories AS SELECT *, CASE
            WHEN n_items = 0 THEN latest
            WHEN n_items < {rules.min_items} THEN {STAGE["min_items"]}
            WHEN n_baskets < {rules.min_baskets_per_item} * n_items THEN {STAGE["min_baskets_per_item"]}
            ELSE {kept} END AS fate, row_number() OVER (ORDER BY n_baskets, category_number) AS rank
        FROM (SELECT category_number, count(*) FILTER (fate = {kept}) AS n_items, max(fate) AS latest
              FROM item_fates GROUP BY category_number)
        LEFT JOIN (SELECT category_number, sum(baskets) AS n_baskets FROM category_tally GROUP BY ALL)
        USING (category_number)
    """)
    work.stage.run("""
        CREATE TABLE fates AS SELECT product, category_number, baskets, least(i.fate, c.fate) AS fate, rank
        FROM item_fates i JOIN categories c USING (category_number)
    """)


def keep_baskets(work: Work, part: int) -> None:
    """The baskets that have anything left, each with the rarest of its categories, its home."""
    kept, extras = STAGE["kept"], work.listing("any_value({0}) AS {0}")
    own = f"JOIN (SELECT * EXCLUDE (part) FROM baskets WHERE part = {part}) USING (basket)" if work.extras else ""
    work.stage.run(f"""
        CREATE OR REPLACE TEMP TABLE fated AS
        SELECT basket, max(fate) AS fate, arg_min(category_number, rank) FILTER (fate = {kept}) AS home{extras}
        FROM (SELECT * FROM pairs WHERE part = {part}) JOIN fates USING (product)
        {own}
        GROUP BY basket
    """)
    work.stage.run(f"INSERT INTO basket_tally SELECT fate, count(*) FROM fated WHERE fate < {kept} GROUP BY fate")
    work.stage.run(f"INSERT INTO kept_baskets SELECT basket, home{work.listing('{}')} FROM fated WHERE fate = {kept}")


def split_baskets(work: Work) -> None:
    """Which baskets are to test on. At random, whole baskets are drawn within their homes, so that every category gets
    its share as nearly as whole baskets allow, and exactly where baskets are of one category each. The order is that of
    a digest, the same on every machine and for any number of parts."""
    rules = work.rules
    if rules.split_time is not None:
        test = f"time >= CAST({sql_text(rules.split_time)} AS TIMESTAMPTZ)"
    elif rules.train == 1:
        test = "false"
    else:
        place = f"row_number() OVER (PARTITION BY home ORDER BY md5(concat('{rules.seed}:', basket)), basket)"
        test = f"{place} > floor({rules.train!r} * count(*) OVER (PARTITION BY home) + 1e-9)"
    work.stage.run(f"CREATE TABLE sides AS SELECT *, {test} AS test FROM kept_baskets")


def collect(work: Work) -> None:
    """All that is kept, category by category; those with nothing to learn from are lost after all."""
    stage, kept, split = work.stage, STAGE["kept"], STAGE["split"]
    stage.run(f"""
        CREATE TABLE kept_pairs AS SELECT category_number, test, basket, product{work.listing("{}")}
        FROM pairs JOIN fates USING (product) JOIN sides USING (basket)
        WHERE fate = {kept} ORDER BY category_number, test
    """)
    lost = "SELECT category_number FROM kept_pairs GROUP BY category_number HAVING bool_and(test)"
    if stage.one(f"SELECT count(*) FROM ({lost})"):
        stage.run(f"""
            INSERT INTO basket_tally SELECT {split}, count(*) FROM (SELECT basket FROM kept_pairs
            GROUP BY basket HAVING bool_and(category_number IN ({lost})))
        """)
        stage.run(f"CREATE TEMP TABLE lost AS {lost}")
        for table in ("fates", "categories"):
            stage.run(f"""
                UPDATE {table} SET fate = {split} WHERE fate = {kept}
                AND category_number IN (SELECT category_number FROM lost)
            """)
