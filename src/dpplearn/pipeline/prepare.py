"""prepare: baskets per category from a table of raw orders, by one SQL script.

Every product (an item of a category), category and basket gets a *fate*: the number of the rule that removes it. The
fate of a category or basket is the latest among its products.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shutil
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import filter as matching
from numbers import Real
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dpplearn.data.files import Paths, find_files
from dpplearn.data.times import as_time
from dpplearn.data.transactions import Columns, Transactions, all_plain, source_name, sql_text
from dpplearn.data.writing import copy_table
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.pipeline.database import as_memory, open_database
from dpplearn.pipeline.prepared import FILES, PREPARED_FOLDER, SIDES, Prepared, PreparedFile, write_prepared
from dpplearn.utils.files import check_replaceable, content_digest, digest
from dpplearn.utils.progress import Bar, shown_progress
from dpplearn.utils.text import contents
from dpplearn.version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_SLUG = 60  # characters
MIN_TRAIN, MAX_RATIO = 1e-9, 1e9  # limits of `train` and `min_baskets_per_item`
MAX_SHOWN = 3  # examples in a note
# Codes that shops book like products.
NO_PRODUCT = (
    r"(?i)^(post(age)?|shipping|carriage|delivery|discount|voucher|coupon|gift ?wrap|fees?|bank charges|manual)\b"
)

# The rules in the order in which they are applied. A rule removes part of what all rules before it have kept.
RULES = {
    "drop": "named with --drop, or not with --keep-items",
    "weights": "baskets whose rows differ in their weight",
    "min_products": "baskets of fewer than {min_products} products",
    "max_products": "baskets of more than {max_products} products",
    "repeats": "the same item again in one basket",
    "min_count": "items in fewer than {min_count} sub-baskets",
    "top_items": "items beyond the {top_items} most frequent of a category",
    "min_items": "categories of fewer than {min_items} items",
    "min_baskets_per_item": "categories of fewer than {min_baskets_per_item:g} sub-baskets per item",
    "split": "categories without training baskets after the split",
    "kept": "kept",
}
FATE = SimpleNamespace(**{rule: number for number, rule in enumerate(RULES)})

# The SQL script: titles of steps and their statements. `format` inserts the values of a call.
READ = {
    "numbering items": """
        CREATE TABLE products AS SELECT
            CAST(row_number() OVER (ORDER BY category, item) AS INTEGER) AS product,
            CAST(dense_rank() OVER (ORDER BY category) AS INTEGER) AS category_number,
            CAST(dense_rank() OVER (ORDER BY item) AS INTEGER) AS item_number,
            item, category, n_rows, {dropped} AS dropped
        FROM (SELECT item, category, count(*) AS n_rows FROM transactions GROUP BY ALL) LEFT JOIN names USING (item)
    """,
    "merging rows": """
        CREATE TABLE pairs AS SELECT basket, product, item_number, dropped, count(*) AS n
        FROM transactions JOIN products USING (item, category) GROUP BY ALL
    """,
}
# Only if the input has weights or times: aggregates of columns that do not exist would cost a quarter of the time.
READ_EXTRAS = {
    "weights and times": """
        CREATE TABLE extras AS SELECT basket, min(weight) AS weight, max(weight) AS highest, max(time) AS time
        FROM transactions JOIN products USING (item, category) WHERE NOT dropped GROUP BY basket
    """,
}
APPLY = {
    "rules on baskets": """
        CREATE TABLE sized AS SELECT basket, {weight} AS weight, CASE
            WHEN {unequal} THEN {fate.weights}
            WHEN size < {rules.min_products} THEN {fate.min_products}
            WHEN size > {rules.max_products} THEN {fate.max_products} ELSE {fate.kept} END AS fate
        FROM (SELECT basket, count(DISTINCT item_number) AS size FROM pairs WHERE NOT dropped GROUP BY basket)
        {join_extras}
    """,
    "counting items": """
        CREATE TABLE tally AS SELECT product, fate, sum(n) AS rows, count(*) AS baskets, sum(weight) AS weight
        FROM pairs JOIN sized USING (basket) WHERE NOT dropped GROUP BY product, fate
    """,
    # One pass is enough: an item that is removed takes no basket with it that holds another.
    "rules on items": """
        CREATE TABLE item_fates AS SELECT product, category_number, baskets, CASE
            WHEN latest < {fate.kept} THEN latest
            WHEN weight < {rules.min_count} THEN {fate.min_count}
            WHEN row_number() OVER (PARTITION BY category_number ORDER BY weight DESC, product) > {rules.top_items}
            THEN {fate.top_items} ELSE {fate.kept} END AS fate
        FROM (SELECT product, category_number, coalesce(max(fate), {fate.drop}) AS latest,
              coalesce(sum(baskets) FILTER (fate = {fate.kept}), 0) AS baskets,
              coalesce(sum(weight) FILTER (fate = {fate.kept}), 0) AS weight
              FROM products LEFT JOIN tally USING (product) GROUP BY product, category_number)
    """,
    "rules on categories": """
        CREATE TABLE categories AS SELECT *, CASE
            WHEN n_items = 0 THEN latest
            WHEN n_items < {rules.min_items} THEN {fate.min_items}
            WHEN weight < {rules.min_baskets_per_item} * n_items THEN {fate.min_baskets_per_item}
            ELSE {fate.kept} END AS fate, row_number() OVER (ORDER BY n_baskets, category_number) AS rank
        FROM (SELECT category_number, count(*) FILTER (fate = {fate.kept}) AS n_items, max(fate) AS latest
              FROM item_fates GROUP BY category_number)
        LEFT JOIN (SELECT category_number, count(*) AS n_baskets, sum(weight) AS weight
              FROM (SELECT DISTINCT basket, category_number FROM pairs JOIN item_fates USING (product)
                    WHERE fate = {fate.kept})
              JOIN (SELECT basket, weight FROM sized WHERE fate = {fate.kept}) USING (basket) GROUP BY category_number)
        USING (category_number);
        CREATE TABLE fates AS SELECT product, category_number, baskets, least(i.fate, c.fate) AS fate, rank
        FROM item_fates i JOIN categories c USING (category_number)
    """,
    # A basket belongs to the rarest of its categories, its home.
    "keeping baskets": """
        CREATE TABLE homes AS SELECT basket, max(fate) AS fate,
            arg_min(category_number, rank) FILTER (fate = {fate.kept}) AS home
        FROM pairs JOIN fates USING (product)
        JOIN (SELECT basket FROM sized WHERE fate = {fate.kept}) USING (basket) GROUP BY basket
    """,
    "splitting": """
        CREATE TABLE sides AS SELECT basket, {is_test} AS test{extras}
        FROM homes {join_extras} WHERE fate = {fate.kept}
    """,
    "collecting": """
        CREATE TABLE kept_pairs AS SELECT category_number, test, basket, product{extras}
        FROM pairs JOIN fates USING (product) JOIN sides USING (basket)
        WHERE fate = {fate.kept} ORDER BY category_number, test
    """,
    "counting baskets": """
        CREATE TABLE lost_baskets AS SELECT fate, count(*) AS baskets FROM
            (SELECT fate FROM sized UNION ALL SELECT fate FROM homes) WHERE fate < {fate.kept} GROUP BY fate
        UNION ALL SELECT {fate.drop}, count(DISTINCT basket) FROM pairs ANTI JOIN sized USING (basket)
    """,
    "removing categories": """
        CREATE TABLE untrained AS SELECT category_number FROM kept_pairs GROUP BY category_number HAVING bool_and(test);
        CREATE TABLE untrained_baskets AS SELECT basket FROM kept_pairs
        GROUP BY basket HAVING bool_and(category_number IN (FROM untrained));
        INSERT INTO lost_baskets SELECT {fate.split}, count(*) FROM untrained_baskets;
        DELETE FROM sides WHERE basket IN (FROM untrained_baskets);
        UPDATE fates SET fate = {fate.split} WHERE fate = {fate.kept} AND category_number IN (FROM untrained);
        UPDATE categories SET fate = {fate.split} WHERE fate = {fate.kept} AND category_number IN (FROM untrained)
    """,
    # By their name, followed by the identifier if several items share the name.
    "naming items": """
        CREATE TABLE labels AS SELECT product, category_number, CASE
            WHEN count(*) OVER (PARTITION BY category_number, name) > 1 THEN concat(name, ' (', item, ')')
            ELSE name END AS label
        FROM (SELECT product, f.category_number, item, coalesce(name, item) AS name
              FROM fates f JOIN products USING (product) LEFT JOIN names USING (item) WHERE fate = {fate.kept})
    """,
}
# What each rule removed; "kept" is what is left. Before the rules on items, all rows of a product go with its baskets.
ACCOUNT = {
    "rows": """
        SELECT fate, sum(n) FROM (SELECT {fate.drop} AS fate, n_rows AS n FROM products WHERE dropped
        UNION ALL SELECT fate, rows FROM tally WHERE fate < {fate.kept}
        UNION ALL SELECT {fate.repeats}, rows - baskets FROM tally WHERE fate = {fate.kept}
        UNION ALL SELECT fate, baskets FROM fates WHERE fate > {fate.repeats}) GROUP BY fate
    """,
    "baskets": """
        SELECT fate, sum(baskets) FROM (FROM lost_baskets UNION ALL SELECT {fate.kept}, count(*) FROM sides)
        GROUP BY fate
    """,
    "items": "SELECT fate, count(*) FROM fates GROUP BY fate",
    "categories": "SELECT fate, count(*) FROM categories GROUP BY fate",
}


@dataclass
class Rules:
    """The rules of `prepare`. The defaults are those of the paper. [GKFT14, section 4.1]"""

    min_products: int = 5
    max_products: int = 100
    top_items: int = 100
    min_count: int = 100
    min_items: int = 25
    min_baskets_per_item: float = 2
    train: float = 0.7
    seed: int = 0
    split_time: str | None = None
    drop: tuple[str, ...] = ()
    items: tuple[str, ...] = ()  # all if empty

    def __post_init__(self) -> None:
        self.drop, self.items = _labels(self.drop), _labels(self.items)
        for name in ("min_products", "max_products", "top_items", "min_count", "min_items"):
            whole_number(name, getattr(self, name), 1)
        whole_number("seed", self.seed, 0, math.inf)
        for name, least, most in (("min_baskets_per_item", 0, MAX_RATIO), ("train", MIN_TRAIN, 1)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not least <= float(value) <= most:
                raise InputError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")
            setattr(self, name, float(value))  # 2 and 2.0 are the same rule
        for low, high in (("min_products", "max_products"), ("min_items", "top_items")):
            if getattr(self, low) > getattr(self, high):
                raise InputError(f"{low} is {getattr(self, low)}, more than {high}, {getattr(self, high)}")
        if self.split_time is not None:
            as_time(self.split_time)

    @property
    def is_test(self) -> str:
        """SQL for whether a basket is a test basket.

        At random, baskets are drawn within their homes, so that every category gets its share as nearly as whole
        baskets allow. The order is that of a digest, which is the same on every machine.
        """
        if self.split_time is not None:
            return f"time >= CAST('{as_time(self.split_time)}+00' AS TIMESTAMPTZ)"
        if self.train == 1:
            return "false"
        place = f"row_number() OVER (PARTITION BY home ORDER BY md5(concat('{self.seed}:', basket)), basket)"
        return f"{place} > floor({self.train!r} * count(*) OVER (PARTITION BY home) + 1e-9)"


def _labels(labels: str | int | Iterable[str | int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, [labels] if isinstance(labels, str | int) else labels)))


def prepare(
    inputs: Paths,
    output: str | PathLike[str],
    *,
    basket: str | None = None,
    item: str | None = None,
    category: str | None = "auto",
    time: str | None = None,
    weight: str | None = None,
    names: str | PathLike[str] | None = None,
    name: str = "name",
    memory: str | float | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool = False,
    **rules: Any,
) -> Prepared:
    """Make baskets per category from a table of raw orders, which may be larger than memory.

    The rules are applied once, in the order below. The same input with the same rules is not prepared again. The
    previous result stays until the new one is complete. Rows that cannot be used are left out and counted.

    Parameters
    ----------
    inputs : path, pattern, folder, or list of these
        CSV (.csv, .tsv), Parquet or JSON lines (.jsonl, .ndjson, .json) with one row per item of a basket. Text may be
        gzipped (.gz).
    output : path
        The folder to write: new, empty, or the output of an earlier run.
    basket, item : str, optional
        Columns of basket identifiers and of items. By default they are found by usual names, as in `read_baskets`.
    category : str, optional
        Column of categories. "auto" is the column called category, if there is one. None makes one category.
    time : str, optional
        Column of dates, times or Unix timestamps, for `split_time`. The time of a basket is that of its latest row.
    weight : str, optional
        Column of the weights of baskets, the same in all rows of a basket. A basket counts with its weight in
        `min_count`, `top_items` and `min_baskets_per_item`.
    names, name : str, optional
        A file with the column `item` and a column of names, called `name`, that replace item identifiers.
    memory : str or float, optional
        Memory of the whole process, in bytes or as "4GB". By default half of the available memory.
    threads : int, optional
        By default one per core.
    force : bool, default False
        Write into an existing folder whatever it holds. Other files in it are kept, except manifest.json.
    progress : bool, default False
        Show progress on standard error.
    rules
        The rules, as keyword arguments:
    drop : list of str
        Items that are not products, such as postage, by identifier or name. `*` and `?` match any characters.
    items : list of str
        The only items to keep, by identifier or name. By default all.
    min_products, max_products : int, default 5 and 100
        Limits of the number of different products of a basket, over all its categories.
    min_count : int, default 100
        Minimum number of sub-baskets of its category that hold an item.
    top_items : int, default 100
        Maximum number of items of a category; the most frequent are kept.
    min_items : int, default 25
        Minimum number of items of a category, after the rules on items.
    min_baskets_per_item : float, default 2
        Minimum number of sub-baskets per item of a category, after the rules on items.
    train : float, default 0.7
        Fraction of training baskets; the others are test baskets. A basket is on the same side in all its categories.
    seed : int, default 0
        Seed of the random split.
    split_time : str, optional
        Split by time instead: baskets before this date or time are training baskets.

    Returns
    -------
    Prepared
        The categories that are kept, and in its manifest the number of rows, baskets, items and categories that each
        rule removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     orders = Path(folder) / "orders.csv"
    ...     _ = orders.write_text("basket,item,category\\n1,crib,sleep\\n1,cot,sleep\\n1,bib,meals\\n2,cot,sleep\\n")
    ...     prepared = prepare(orders, Path(folder) / "out", min_products=1, min_count=1, min_items=2, train=1,
    ...                        min_baskets_per_item=1)
    ...     [(each.slug, each.n_items, each.n_baskets["train"]) for each in prepared.categories]
    [('sleep', 2, 2)]
    """
    import duckdb

    checked, folder, limit = Rules(**rules), Path(output), as_memory(memory)
    if checked.split_time is not None and time is None:
        raise InputError("split_time needs the column of times; name it with time= (--columns time=)")
    check_replaceable(folder, PREPARED_FOLDER, force=force)
    columns = Columns(basket, item, weight, category, time)
    paths = find_files(inputs, folder)
    read = paths if names is None else [*paths, *find_files(names)]
    digests = [{"path": os.path.abspath(path), "sha256": digest(path)} for path in read]
    files = [[Path(each["path"]).name, each["sha256"]] for each in digests]
    key = content_digest([PREPARED_FOLDER.format, files, asdict(columns), names and name, asdict(checked)])
    target, what = FILES + key[:8], f"preparing {source_name(paths)}"
    with PREPARED_FOLDER.locked(folder) as work:
        old = _unchanged(folder, key)
        if old is not None:
            _remove_others(folder, target)
            return old
        with shown_progress(progress, transient=True) as shown, open_database(work, what, limit, threads) as database:
            script = _Script(database, checked, columns, shown.bar("preparing"))
            script.read(paths, names, name)
            script.apply_rules()
            entries = script.write(work / "new", target)
            manifest = {
                "kind": PREPARED_FOLDER.kind,
                "format": PREPARED_FOLDER.format,
                "versions": {"dpplearn": __version__, "duckdb": duckdb.__version__, "python": sys.version.split()[0]},
                "key": key,
                "inputs": digests,
                "columns": {**asdict(script.columns), "name": names and name},
                "rules": asdict(checked),
                **script.report(),
                "categories": entries,
            }
            _publish(folder, work / "new", target, manifest)
    for note in manifest["notes"]:
        warnings.warn(note, InputWarning, stacklevel=2)
    return replace(Prepared.open(folder), new=True)


def _unchanged(folder: Path, key: str) -> Prepared | None:
    """Return the result in the folder, if it is complete and has this key."""
    try:
        old = Prepared.open(folder)
    except InputError:
        return None
    return old if old.manifest["key"] == key and old.is_whole() else None


def _publish(output: Path, files: Path, target: str, manifest: Mapping[str, Any]) -> None:
    """Move the files to their place, replace the manifest, and remove the files of earlier runs, in this order."""
    # A folder of this name is either damaged or of a run that was killed before it replaced the manifest.
    shutil.rmtree(output / target, ignore_errors=True)
    os.rename(files, output / target)
    write_prepared(output, manifest)
    _remove_others(output, target)


def _remove_others(output: Path, target: str) -> None:
    """Remove the files of earlier runs."""
    for each in output.glob(FILES + 8 * "[0-9a-f]"):  # another folder, such as baskets-2024, is not ours
        if each.name != target:
            shutil.rmtree(each, ignore_errors=True)


class _Script:
    """The SQL script of one call. Its tables are

    products      product, category_number, item_number, item, category, n_rows, dropped
    pairs         basket, product, item_number, dropped, n (rows)
    extras        basket, weight, highest, time: only if the input has weights or times
    sized         basket, fate by the rules on baskets, weight
    tally         product, fate, rows, baskets, weight
    fates         product, category_number, baskets, fate, rank of the category
    categories    category_number, n_items, n_baskets, weight, fate, rank
    sides         basket, test, and weight and time as in the input: the baskets that are kept
    kept_pairs    category_number, test, basket, product, weight, time
    lost_baskets  fate, baskets
    """

    def __init__(self, database: DuckDBPyConnection, rules: Rules, columns: Columns, bar: Bar) -> None:
        self.database, self.rules, self.columns, self.bar = database, rules, columns, bar
        self.extras = "".join(f", {name}" for name in ("weight", "time") if getattr(columns, name) is not None)
        self.weight = "weight" if columns.weight else "1"

    def run(self, steps: Mapping[str, str], **values: str) -> None:
        for title, query in steps.items():
            self.bar.advance(text=title)
            self.rows(query, **values)

    def rows(self, query: str, **values: str) -> list[tuple[Any, ...]]:
        own = {"fate": FATE, "rules": self.rules, "weight": self.weight, "extras": self.extras}
        return self.database.execute(query.format(**own, **values)).fetchall()

    def read(self, paths: Paths, names: str | PathLike[str] | None, name: str) -> None:
        """Read the input into pairs of basket and product."""
        self.bar.update(0, "reading")
        read = Transactions.open(paths, self.columns, on_bad_rows="skip", connection=self.database)
        self.read_names(names, Columns(name, read.columns.item))
        self.columns, self.rejects, self.n_rows = read.columns, read.rejects, read.n_rows
        self.integer_items = read.integer_items
        dropped = _named(self.rules.drop)
        if self.rules.items:
            dropped = f"{dropped} OR NOT {_named(self.rules.items)}"
        self.run(READ, dropped=dropped)
        if self.extras:
            self.run(READ_EXTRAS)
        read.drop()

    def read_names(self, names: str | PathLike[str] | None, columns: Columns) -> None:
        """Create the table of names by item, which is empty without a file."""
        self.rows("CREATE TABLE names (item VARCHAR, name VARCHAR)")
        if names is not None:
            Transactions.open(names, columns, on_bad_rows="skip", connection=self.database, name="named")
            self.rows("INSERT INTO names SELECT item, min(CAST(basket AS VARCHAR)) FROM named GROUP BY item")

    def apply_rules(self) -> None:
        """Decide the fate of every basket, product and category, and which baskets are test baskets."""
        values = {"unequal": "false", "is_test": self.rules.is_test}
        values["join_extras"] = "JOIN extras USING (basket)" if self.extras else ""
        if self.columns.weight:
            values["unequal"] = "weight <> highest"
        self.run(APPLY, **values)
        account = self.account()
        if not account[-1]["categories"]:
            lost = [
                f"{each['categories']} by {each['rule']} ({each['what']})" for each in account if each["categories"]
            ]
            raise InputError(f"no category is left; the rules removed {', '.join(lost)}; relax them")

    def write(self, folder: Path, target: str) -> list[dict[str, Any]]:
        """Write the files of every category. Return what the manifest says about them."""
        if self.integer_items and self.rows(f"SELECT {all_plain('label')} FROM labels")[0][0]:
            self.rows("ALTER TABLE labels ALTER label TYPE BIGINT")
        items = dict(self.rows("SELECT category_number, list(label ORDER BY label) FROM labels GROUP BY ALL"))
        sides = self.rows("""
            SELECT category, category_number, test, count(*), CAST(sum(w) AS DOUBLE)
            FROM (SELECT DISTINCT category_number, test, basket, {weight} AS w FROM kept_pairs)
            JOIN (SELECT DISTINCT category_number, category FROM products) USING (category_number)
            JOIN categories USING (category_number) WHERE fate = {fate.kept} GROUP BY ALL ORDER BY category, test
        """)
        slug_of, entries = slugs(dict.fromkeys(name for name, *_ in sides)), dict[int, dict[str, Any]]()
        folder.mkdir()
        self.rows("SET preserve_insertion_order = true")
        for name, number, test, n_baskets, weight in sides:
            slug, side = slug_of[name], SIDES[test]
            self.bar.advance(text=f"writing {slug}")
            file = f"{slug}.{side}.parquet"
            # Sorted, so that the same content gives the same file in whatever order the rows came.
            query = f"""(
                SELECT basket, label AS item{self.extras}
                FROM (SELECT * FROM kept_pairs WHERE category_number = {number} AND test = {test})
                JOIN labels USING (product) ORDER BY basket, item
            )"""
            copy_table(self.database, query, folder / file)
            written = PreparedFile(f"{target}/{file}", digest(folder / file), n_baskets, weight)
            entry = {"slug": slug, "name": name, "items": items[number], "files": {}}
            entries.setdefault(number, entry)["files"][side] = asdict(written)
        return list(entries.values())

    def report(self) -> dict[str, Any]:
        """Return what the manifest says about the rows."""
        lost = self.rows("""
            SELECT DISTINCT category, fate FROM categories JOIN products USING (category_number)
            WHERE fate < {fate.kept} ORDER BY category
        """)
        return {
            "n_rows": self.n_rows + sum(each.count for each in self.rejects),
            "bad_rows": [
                {"reason": each.reason, "rows": each.count, "examples": [row._asdict() for row in each.examples]}
                for each in self.rejects
            ],
            "account": self.account(),
            "total_weight": float(self.rows("SELECT sum({weight}) FROM sides")[0][0]),
            "lost_categories": {name: list(RULES)[fate] for name, fate in lost},
            "notes": list(self.notes()),
        }

    def notes(self) -> Iterator[str]:
        """Yield what a user may have overlooked."""
        if self.rejects:
            n, first = sum(each.count for each in self.rejects), self.rejects[0]
            where = "".join(f", for instance in line {row.line} of {row.file}" for row in first.examples[:1])
            yield f"{n} of {self.n_rows + n} rows cannot be used and were left out: {first.reason}{where}"
        named = self.rows("SELECT item FROM products UNION SELECT name FROM products JOIN names USING (item)")
        known, asked = {label for (label,) in named}, (*self.rules.drop, *self.rules.items)
        missing = [each for each in asked if each not in known and not matching(known, each)]
        if missing:
            yield f"{len(missing)} of the items to drop or keep are in no row ({contents(missing[:MAX_SHOWN])})"
        variants = self.rows("""
            SELECT list(CAST(label AS VARCHAR) ORDER BY label) FROM labels
            GROUP BY category_number, lower(CAST(label AS VARCHAR)) HAVING count(*) > 1 ORDER BY 1
        """)
        if variants:
            some = " and ".join(map(repr, variants[0][0]))
            yield f"{len(variants)} items have labels that differ only in case, such as {some}"
        no_products = self.rows(f"""
            SELECT DISTINCT CAST(label AS VARCHAR) AS item FROM labels
            WHERE regexp_matches(item, {sql_text(NO_PRODUCT)}) ORDER BY item LIMIT {MAX_SHOWN}
        """)
        if no_products:
            some = contents(each for (each,) in no_products)
            yield f"items that may not be products were kept ({some}); leave them out with drop= (--drop)"

    def account(self) -> list[dict[str, Any]]:
        """Return the rows, baskets, items and categories that each rule removed; the last entry is what is kept."""
        counts = {name: dict(self.rows(query)) for name, query in ACCOUNT.items()}
        words = {rule: text.format(**asdict(self.rules)) for rule, text in RULES.items()}
        return [
            {"rule": rule, "what": words[rule], **{name: int(each.get(fate, 0)) for name, each in counts.items()}}
            for fate, rule in enumerate(RULES)
        ]


def _named(labels: tuple[str, ...]) -> str:
    """Return SQL for whether the identifier or the name of an item is among labels, or matches one as a pattern."""
    patterns = [f"GLOB {sql_text(label)}" for label in labels if set("*?") & set(label)]
    tests = [f"IN ({', '.join(map(sql_text, labels)) or 'NULL'})", *patterns]
    return f"coalesce({' OR '.join(f'{column} {test}' for column in ('item', 'name') for test in tests)}, false)"


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return the name of each category in files and addresses: ASCII letters, digits and hyphens, all different.

    >>> slugs(["Car Seats & Co.", "Möbel", "car seats co", "玩具"])
    {'Car Seats & Co.': 'car-seats-co', 'Möbel': 'mobel', 'car seats co': 'car-seats-co-2', '玩具': 'category'}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        slug = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG].strip("-") or "category"
        candidates = itertools.chain([slug], (f"{slug}-{number}" for number in itertools.count(2)))
        found[name] = next(each for each in candidates if each not in found.values())
    return found
