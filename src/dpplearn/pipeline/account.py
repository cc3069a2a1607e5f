"""What became of everything that came in: kept, or lost by which rule."""

from __future__ import annotations

from typing import Any

from dpplearn.pipeline.filtering import Work
from dpplearn.pipeline.rules import RULES, STAGE

NEARLY_EVERY = 0.8  # of the baskets; an item in so many is more likely postage than a product
MOST_SUSPECTS = 20


def account(work: Work) -> list[dict[str, Any]]:
    """Rows, baskets, items and categories by rule, in the order of the rules; what is kept is the last entry."""
    stage = work.stage
    rows = dict.fromkeys(STAGE.values(), 0)
    after_baskets = stage.rows("SELECT fate, sum(rows), sum(baskets) FROM product_tally GROUP BY fate")
    for fate, n_rows, n_pairs in after_baskets:
        if fate < STAGE["kept"]:
            rows[fate] += int(n_rows)
        else:
            rows[STAGE["repeats"]] += int(n_rows) - int(n_pairs)
    for fate, n_pairs in stage.rows("SELECT fate, sum(baskets) FROM fates GROUP BY fate"):
        if fate > STAGE["repeats"]:  # before that, all rows of a product went with their baskets
            rows[fate] += int(n_pairs)
    baskets = {fate: int(n) for fate, n in stage.rows("SELECT fate, sum(baskets) FROM basket_tally GROUP BY fate")}
    late = range(STAGE["repeats"], STAGE["kept"])
    baskets[STAGE["kept"]] = baskets.get(STAGE["kept"], 0) - sum(baskets.get(fate, 0) for fate in late)
    items, categories = (
        dict(stage.rows(f"SELECT fate, count(*) FROM {table} GROUP BY fate")) for table in ("fates", "categories")
    )
    counts = {"rows": rows, "baskets": baskets, "items": items, "categories": categories}
    return [
        {"rule": rule, "what": work.rules.words(rule), **{name: each.get(fate, 0) for name, each in counts.items()}}
        for rule, fate in zip(RULES, STAGE.values(), strict=True)
    ]


def lost_categories(work: Work) -> list[dict[str, Any]]:
    """Each with the rule that lost it, and how large it was after the rules on items."""
    names = list(RULES)
    found = work.stage.rows(f"""
        SELECT category, fate, n_items, coalesce(n_baskets, 0) FROM categories
        JOIN (SELECT DISTINCT category_number, category FROM products) USING (category_number)
        WHERE fate < {STAGE["kept"]} ORDER BY category
    """)
    return [
        {"name": name, "rule": names[fate], "n_items": int(n_items), "n_baskets": int(n_baskets)}
        for name, fate, n_items, n_baskets in found
    ]


def dropped_items(work: Work) -> list[dict[str, Any]]:
    """Each that was named, with the rows it had; none means that there is no such item."""
    found = []
    for label in work.rules.drop:
        rows = work.stage.connection.execute(
            "SELECT coalesce(sum(n_rows), 0) FROM products LEFT JOIN names USING (item) WHERE item = ? OR name = ?",
            [label, label],
        ).fetchall()
        found.append({"item": label, "rows": int(rows[0][0])})
    return found


def missing_items(work: Work) -> list[str]:
    """Those that were to be kept, and are in no row."""
    query = "SELECT item FROM products UNION SELECT name FROM products JOIN names USING (item)"
    known = {label for (label,) in work.stage.rows(query)} if work.rules.items else set()
    return [label for label in work.rules.items if label not in known]


def suspects(work: Work) -> list[dict[str, Any]]:
    """Items that are in nearly every basket that has anything: postage, perhaps, or a discount."""
    n_baskets = _all_baskets(work)
    found = work.stage.rows(f"""
        SELECT item, any_value(name), sum(baskets) AS n FROM product_tally JOIN products USING (product)
        LEFT JOIN names USING (item) WHERE NOT dropped GROUP BY item
        HAVING sum(baskets) >= {NEARLY_EVERY} * {n_baskets} ORDER BY n DESC, item LIMIT {MOST_SUSPECTS}
    """)
    return [{"item": name or item, "share": int(n) / n_baskets} for item, name, n in found]


def _all_baskets(work: Work) -> int:
    """That have anything but what was named to be dropped."""
    early = [STAGE[rule] for rule in ("weights", "min_products", "max_products", "kept")]
    chosen = ", ".join(map(str, early))
    return int(work.stage.one(f"SELECT coalesce(sum(baskets), 0) FROM basket_tally WHERE fate IN ({chosen})"))
