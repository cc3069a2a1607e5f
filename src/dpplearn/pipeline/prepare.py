"""prepare: a table of raw orders to baskets per category."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from dpplearn.data.tables import Columns
from dpplearn.data.unknown import SHOWN
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.pipeline import filtering
from dpplearn.pipeline.account import account, dropped_items, lost_categories, missing_items, suspects
from dpplearn.pipeline.bad_rows import BadRow
from dpplearn.pipeline.filtering import Work
from dpplearn.pipeline.inputs import as_memory
from dpplearn.pipeline.job import RUN, Job, job_of
from dpplearn.pipeline.manifest import FORMAT, PREPARED_FOLDER, Prepared
from dpplearn.pipeline.reading import read
from dpplearn.pipeline.rules import STAGE, Rules
from dpplearn.pipeline.source import Inputs
from dpplearn.pipeline.stage import open_stage, remove_stage
from dpplearn.pipeline.writing import SIDES, make_labels, slugs, write_category
from dpplearn.utils.files import check_replaceable, write_manifest
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import contents
from dpplearn.version import __version__


def prepare(
    inputs: Inputs,
    output: str | PathLike[str],
    *,
    basket: str = "basket",
    item: str = "item",
    category: str | None = "auto",
    time: str | None = None,
    weight: str | None = None,
    names: str | PathLike[str] | None = None,
    name: str = "name",
    min_products: int = 5,
    max_products: int = 100,
    count: str = "products",
    top_items: int = 100,
    min_count: int = 100,
    min_items: int = 25,
    min_baskets_per_item: float = 2,
    train: float = 0.7,
    seed: int = 0,
    split_time: str | None = None,
    drop: Iterable[str | int] = (),
    items: Iterable[str | int] = (),
    memory: str | float | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Prepared:
    """Make baskets per category of a table of raw orders, which may be larger than memory.

    The rules are applied in the order of the parameters below, once: an item that goes takes no basket with it that
    holds another, so they all hold afterwards. The same input with the same rules is not prepared again, and a run
    that was cut off goes on where it was. What was there before stays until the new is whole.

    Parameters
    ----------
    inputs
        Files, folders and patterns such as `orders/*.parquet`, one or several: CSV (.csv, .tsv), Parquet and JSON
        lines (.jsonl, .ndjson, .json); text may be gzipped (.gz). One row per item of a basket.
    output
        The folder to write: a new or empty folder, or the output of an earlier run.
    basket, item
        The columns that tell which basket, and which item.
    category
        The column of categories. "auto" is the column called category, where there is one; None makes one category.
    time
        The column of dates or times, for `split_time`. Without a time zone they are UTC. A basket's is its latest.
    weight
        The column of weights of baskets, numbers above 0, the same in all rows of a basket.
    names, name
        A file with the column `item` and a column of names, of which this is the name, to call items by.
    drop
        Items, by identifier or name, that are no products, such as postage.
    items
        The only items to keep, by identifier or name; by default all. Those that no row has are named in a warning.
    min_products, max_products
        How many products a basket has, in all its categories together, for it to be kept.
    count
        What is counted there: different "products", or "rows".
    min_count
        In how many sub-baskets of its category an item is, for it to be kept.
    top_items
        How many items a category keeps, the most frequent.
    min_items
        How many items a category has, after the rules on items, for it to be kept.
    min_baskets_per_item
        How many sub-baskets per item it has, likewise.
    train
        The share of the baskets to learn from; the others are to test on. A basket is on the same side in all its
        categories. 1 for no test.
    seed
        Of the random split.
    split_time
        Instead of at random: learn from what is before this date or time, test on what is not.
    memory
        What the whole process may use, in bytes or as "4GB"; by default half of what there is.
    threads
        How many; by default one per core.
    force
        Write into an existing folder whatever it holds. Other files in it are kept, except manifest.json.
    progress
        Show on standard error what is being done.

    Returns
    -------
    Prepared
        The categories that are kept, and in its manifest what became of everything else.

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
    rules = Rules(
        min_products=min_products,
        max_products=max_products,
        count=count,
        top_items=top_items,
        min_count=min_count,
        min_items=min_items,
        min_baskets_per_item=min_baskets_per_item,
        train=train,
        seed=seed,
        split_time=split_time,
        drop=tuple(map(str, [drop] if isinstance(drop, str | int) else drop)),
        items=tuple(dict.fromkeys(map(str, [items] if isinstance(items, str | int) else items))),
    )
    if split_time is not None and time is None:
        raise InputError("split_time needs the column of times; name it with time= (--columns time=)")
    if threads is not None:
        whole_number("threads", threads, 1)
    check_replaceable(Path(output), PREPARED_FOLDER, force=force)
    columns = Columns(basket, item, weight, None, time)
    job = job_of(inputs, Path(output), columns, category, rules, None if names is None else fspath(names), name)
    old = _unchanged(job)
    if old is not None:
        _clean(job)
        return old
    with shown_progress(progress, transient=True) as shown:
        versions = {**job.setting, "versions": _versions()}
        with open_stage(job.output, versions, job.source, as_memory(memory), threads, shown) as stage:
            manifest = _made(job, Work(stage, rules, weight is not None, time is not None))
            write_manifest(job.output, manifest)
    _clean(job)
    _warn(manifest)
    return Prepared(job.output, manifest, new=True)


def _unchanged(job: Job) -> Prepared | None:
    """What is there, if it is what would be made."""
    try:
        old = Prepared.open(job.output)
    except InputError:
        return None
    return old if old.manifest.get("setting") == job.setting and old.is_whole() else None


def _clean(job: Job) -> None:
    """Remove what is not part of the result: the stage, and the files of runs before."""
    remove_stage(job.output)
    for each in job.output.glob(f"{RUN}*"):
        # Another folder whose name starts alike, such as baskets-2024, is the user's.
        if each.name != job.folder and re.fullmatch(f"{RUN}[0-9a-f]{{8}}", each.name):
            shutil.rmtree(each, ignore_errors=True)


def _made(job: Job, work: Work) -> dict[str, Any]:
    """Everything but the manifest, which is returned."""
    stage = work.stage
    read(job, work)
    _in_parts(work, "sifting baskets", filtering.sift_baskets)
    stage.step("judging items", lambda: filtering.judge_items(work))
    _in_parts(work, "counting sub-baskets", filtering.count_sub_baskets)
    stage.step("judging categories", lambda: filtering.judge_categories(work))
    _in_parts(work, "keeping baskets", filtering.keep_baskets)
    stage.step("splitting baskets", lambda: filtering.split_baskets(work))
    stage.step("collecting", lambda: filtering.collect(work))
    _check_anything_left(work)
    integers = bool(stage.one("SELECT integers FROM kinds"))
    stage.step("naming items", lambda: make_labels(work, integers))
    return _manifest(job, work, list(_written(job, work)))


def _in_parts(work: Work, name: str, each: Callable[[Work, int], None]) -> None:
    """One step per part of the baskets."""
    parts = work.stage.one("SELECT count(*) FROM parts")
    for part in range(parts):
        work.stage.step(f"{name}, part {part + 1} of {parts}", partial(each, work, part))


def _check_anything_left(work: Work) -> None:
    if work.stage.one(f"SELECT count(*) FROM categories WHERE fate = {STAGE['kept']}"):
        return
    lost: dict[str, int] = {}
    for each in lost_categories(work):
        lost[each["rule"]] = lost.get(each["rule"], 0) + 1
    why = ", ".join(f"{n} went by {rule} ({work.rules.words(rule)})" for rule, n in lost.items())
    raise InputError(f"no category is left of {sum(lost.values())}: {why}; relax the rules")


def _written(job: Job, work: Work) -> Iterator[dict[str, Any]]:
    """The files of every category, one after another."""
    stage = work.stage
    found = stage.rows(f"""
        SELECT category_number, any_value(category) AS name FROM products JOIN categories c USING (category_number)
        WHERE c.fate = {STAGE["kept"]} GROUP BY category_number ORDER BY name
    """)
    slug_of = slugs(name for _, name in found)
    for number, name in found:
        stage.bar.update(len(stage.done), f"writing {slug_of[name]}")
        files = write_category(work, job.output, job.folder, number, slug_of[name])
        items = stage.rows(f"SELECT label, baskets FROM labels WHERE category_number = {number} ORDER BY label")
        yield {
            "slug": slug_of[name],
            "name": name,
            "n_items": len(items),
            "n_baskets": {side: sum(each["n_baskets"] for each in files if each["side"] == side) for side in SIDES},
            "items": [label for label, _ in items],
            "item_baskets": [int(baskets) for _, baskets in items],
            "files": {each.pop("side"): each for each in files},
        }


def _manifest(job: Job, work: Work, categories: list[dict[str, Any]]) -> dict[str, Any]:
    stage = work.stage
    bad = stage.rows("SELECT reason, sum(n) FROM bad GROUP BY reason ORDER BY reason")
    some = [BadRow(*row)._asdict() for row in stage.rows("SELECT * FROM examples ORDER BY reason, file, line")]
    kept = account(work)
    n_bad = sum(int(n) for _, n in bad)
    return {
        "kind": "prepared",
        "format": FORMAT,
        "versions": _versions(),
        "setting": job.setting,
        "inputs": job.inputs,
        "columns": job.setting["columns"],
        "rules": job.setting["rules"],
        "n_rows": n_bad + sum(each["rows"] for each in kept),
        "bad_rows": [
            {
                "reason": reason,
                "rows": int(n),
                "examples": [
                    {name: row[name] for name in ("file", "line", "text")} for row in some if row["reason"] == reason
                ],
            }
            for reason, n in bad
        ],
        "account": kept,
        "dropped_items": dropped_items(work),
        "missing_items": missing_items(work),
        "nearly_everywhere": suspects(work),
        "lost_categories": lost_categories(work),
        "categories": categories,
    }


def _versions() -> dict[str, str]:
    import duckdb

    return {"dpplearn": __version__, "duckdb": duckdb.__version__, "python": sys.version.split()[0]}


def _warn(manifest: Mapping[str, Any]) -> None:
    """What a user may have overlooked; the report has the rest."""
    bad = sum(each["rows"] for each in manifest["bad_rows"])
    if bad:
        first = manifest["bad_rows"][0]
        where = first["examples"][0] if first["examples"] else {"line": "?", "file": "?"}
        warnings.warn(
            f"{bad} of {manifest['n_rows']} rows cannot be used and were left out, for instance line {where['line']} "
            f"of {where['file']}: {first['reason']}; the report has more",
            InputWarning,
            stacklevel=3,
        )
    for each in manifest["dropped_items"]:
        if not each["rows"]:
            warnings.warn(f"no row has the item {each['item']!r} that was to be dropped", InputWarning, stacklevel=3)
    if manifest["missing_items"]:
        some = contents(manifest["missing_items"][:SHOWN])
        what = f"{len(manifest['missing_items'])} of the items to keep are in no row (for instance {some})"
        warnings.warn(what, InputWarning, stacklevel=3)
