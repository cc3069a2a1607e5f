"""Files of one JSON object per line, read as lines, so that one bad line is one bad row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice

from dpplearn.data.tables import Columns, numbered, sql_files, sql_text
from dpplearn.data.texts import lines_of
from dpplearn.errors import InputError

LOOKED_AT = 1000  # lines, for the names of the columns
SEPARATOR = "\x01"  # no JSON text has it


def json_columns(path: str, columns: Columns) -> tuple[str, ...]:
    """The columns that the first lines have, and none that is not asked for: lines may differ."""
    seen: dict[str, None] = {}
    objects = 0
    for line in islice(lines_of(path, "replace"), LOOKED_AT):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            objects += 1
            seen |= dict.fromkeys(found)
    if not objects:
        raise InputError(f"{path} has no JSON object among its first {LOOKED_AT:,} lines; expected one per line")
    wanted = {column.strip() for column in (*columns.all, "category")}
    return tuple(sorted(name for name in seen if name.strip() in wanted)) or tuple(seen)


def json_query(files: Sequence[str], names: Sequence[str]) -> str:
    """The values as text. One that is itself a list or an object is no value, nor is a line that is no object."""
    values = ", ".join(f"{_value(name)} AS {short}" for name, short in zip(names, numbered(names), strict=True))
    return f"(SELECT {values}, filename FROM {json_lines(files)} WHERE nullif(trim(line), '') IS NOT NULL)"


def json_lines(files: Sequence[str]) -> str:
    """The lines as they are."""
    how = f"auto_detect = false, header = false, delim = {sql_text(SEPARATOR)}, quote = '', escape = ''"
    return (
        f"read_csv({sql_files(files)}, {how}, columns = {{'line': 'VARCHAR'}}, store_rejects = true, filename = true)"
    )


def _value(name: str) -> str:
    place = sql_text("/" + name.replace("~", "~0").replace("/", "~1"))
    nested = f"json_type(line, {place}) IN ('ARRAY', 'OBJECT')"
    return f"CASE WHEN NOT json_valid(line) OR {nested} THEN NULL ELSE line ->> {place} END"


def with_one_end_per_line(lines: Iterable[str], target: str) -> None:
    """A copy: no JSON text has a bare line end within it."""
    with open(target, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        out.writelines(f"{line}\n" for line in lines)
