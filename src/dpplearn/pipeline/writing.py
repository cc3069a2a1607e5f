"""What is kept, as one file per category and side, under names that people and file systems can read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpplearn.data.tables import sql_text
from dpplearn.pipeline.filtering import Work
from dpplearn.pipeline.rules import STAGE
from dpplearn.utils.files import digest, new_file

LONGEST_SLUG = 60
LONGEST_INTEGER = 18  # digits, that 64 bits surely hold
SIDES = {"train": False, "test": True}


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Each category's name in file names and addresses: ASCII letters, digits and hyphens, all different.

    >>> slugs(["Car Seats & Co.", "Möbel", "car seats co", "玩具"])
    {'Car Seats & Co.': 'car-seats-co', 'Möbel': 'mobel', 'car seats co': 'car-seats-co-2', '玩具': 'category'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        slug = base = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_SLUG].strip("-") or "category"
        number = 1
        while slug in taken:
            number += 1
            slug = f"{base}-{number}"
        taken.add(slug)
        found[name] = slug
    return found


def make_labels(work: Work, integers: bool) -> None:
    """What each item that is kept is called: its name, and its identifier too where several share the name."""
    work.stage.run(f"""
        CREATE TABLE labels AS SELECT product, category_number, baskets, CASE
            WHEN count(*) OVER (PARTITION BY category_number, name) > 1 THEN concat(name, ' (', item, ')')
            ELSE name END AS label
        FROM (SELECT product, f.category_number, f.baskets, item, coalesce(name, item) AS name
              FROM fates f JOIN products USING (product) LEFT JOIN names USING (item)
              WHERE fate = {STAGE["kept"]})
    """)
    plain = f"regexp_full_match(label, '0|-?[1-9][0-9]{{0,{LONGEST_INTEGER - 1}}}')"
    if integers and work.stage.one(f"SELECT bool_and({plain}) FROM labels"):
        work.stage.run("ALTER TABLE labels ALTER label TYPE BIGINT")
    work.stage.run("""
        CREATE TABLE files
        (category_number INTEGER, side VARCHAR, file VARCHAR, sha256 VARCHAR, baskets BIGINT, rows BIGINT)
    """)


def write_category(work: Work, output: Path, folder: str, number: int, slug: str) -> list[dict[str, Any]]:
    """The files of a category that are not there yet; of all of them, what the manifest says."""
    return [entry for side in SIDES if (entry := _write_side(work, output, folder, number, slug, side)) is not None]


def _write_side(work: Work, output: Path, folder: str, number: int, slug: str, side: str) -> dict[str, Any] | None:
    stage, file = work.stage, f"{folder}/{slug}.{side}.parquet"
    path = output / file
    here = f"category_number = {number} AND side = {sql_text(side)}"
    known = stage.rows(f"SELECT side, file, sha256, baskets, rows FROM files WHERE {here}")
    if not known or not path.is_file() or digest(path) != known[0][2]:
        chosen = f"FROM kept_pairs WHERE category_number = {number} AND test = {SIDES[side]}"
        baskets, rows = stage.rows(f"SELECT count(DISTINCT basket), count(*) {chosen}")[0]
        if not rows:
            return None
        path.parent.mkdir(exist_ok=True)
        with stage.within_means(), new_file(path) as temporary:
            _copy(work, chosen, temporary)
        stage.run(f"DELETE FROM files WHERE {here}")
        values = [number, side, file, digest(path), baskets, rows]
        stage.connection.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", values)
        known = [tuple(values[1:])]
    return dict(zip(("side", "file", "sha256", "n_baskets", "n_rows"), known[0], strict=True))


def _copy(work: Work, chosen: str, target: Path) -> None:
    """Sorted, so that one content has one file, whatever order the rows came in."""
    connection = work.stage.connection
    connection.execute("SET preserve_insertion_order = true")
    query = f"""
        SELECT basket, label AS item{work.listing("{}")} FROM (SELECT * {chosen})
        JOIN labels USING (product) ORDER BY basket, item
    """
    options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
    connection.execute(f"COPY ({query}) TO {sql_text(str(target))} ({options})").fetchall()
    connection.execute("SET preserve_insertion_order = false")
