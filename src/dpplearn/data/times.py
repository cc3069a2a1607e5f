"""When baskets came about: dates and times in UTC, or numbers; what is before a time, and in which period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats
from dpplearn.data.checks import is_null
from dpplearn.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Time = Any  # a datetime64, or a float
Times = npt.NDArray[Any]  # datetime64[us], or float64
NUMBERS = "f"  # the kind of such an array
DAY = np.timedelta64(1, "D")
EXPECTED = "expected a date or a time, as 2026-10-01 or 2026-10-01T12:00, or a number"
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def as_time(value: Any) -> Time:
    """One date or time in UTC, which it is taken to be in where it does not say; or one number."""
    try:
        return _of_text(value) if isinstance(value, str) else _of_value(value)
    except (OverflowError, TypeError):  # beyond what dates and numbers can be
        raise InputError(f"the time is {value!r}; {EXPECTED}") from None


def _of_value(value: Any) -> Time:
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return value.astype("datetime64[us]")
    if isinstance(value, date) and not is_null(value):  # a datetime is one, too
        aware = isinstance(value, datetime) and value.tzinfo is not None
        moment = value.astimezone(UTC).replace(tzinfo=None) if aware else value  # type: ignore[attr-defined]
        return np.datetime64(moment, "us")
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise InputError(f"the time is {value!r}; {EXPECTED}")
    return float(value)


def _of_text(text: str) -> Time:
    for read in (datetime.fromisoformat, float):
        try:
            return _of_value(read(text.strip()))
        except ValueError:
            continue
    raise InputError(f"the time is {text!r}; {EXPECTED}")


def as_times(values: Any, n_baskets: int) -> Times:
    """One per basket, of one kind."""
    found = []
    for number, value in enumerate(values):
        try:
            found.append(as_time(value))
        except InputError as error:
            raise InputError(f"basket {number}: {error}") from None
    if len(found) != n_baskets:
        raise InputError(f"there are {len(found)} times, but {n_baskets} baskets; expected one per basket")
    if len({isinstance(each, float) for each in found}) > 1:
        raise InputError("some of the times are dates and others numbers; expected all of one kind")
    numbers = bool(found) and isinstance(found[0], float)
    return np.array(found, dtype=float if numbers else "datetime64[us]")


def times_of_column(connection: DuckDBPyConnection, source: str, column: str, name: str, kind: str) -> Times:
    """Return the time of every basket, the latest of its rows, from a column without nulls of the table `pairs`."""
    read = _reading(connection, name, kind)
    wrong = connection.execute(
        f"SELECT rowid + 1, {name} FROM pairs WHERE NOT coalesce(isfinite({read}), false) ORDER BY 1 LIMIT 1"
    ).fetchall()
    if wrong:
        row, value = wrong[0]
        raise InputError(
            f"column {column!r} of {source} holds {str(value)!r} in row {row}; {EXPECTED}, in all rows: mend it or "
            "leave the row out"
        )
    found = connection.execute(
        f"SELECT max({read}) AS time FROM pairs JOIN baskets ON c0 = id GROUP BY number ORDER BY number"
    ).fetchnumpy()["time"]
    return np.asarray(found).astype(float if "DOUBLE" in read else "datetime64[us]")


def _reading(connection: DuckDBPyConnection, name: str, kind: str) -> str:
    """How SQL reads a value: as a number where all are, else as a moment in UTC."""
    number, moment = f"TRY_CAST({name} AS DOUBLE)", f"make_timestamp(epoch_us(TRY_CAST({name} AS TIMESTAMPTZ)))"
    if kind.startswith(("TIMESTAMP", "DATE")):
        connection.execute("SET TimeZone = 'UTC'")
        return moment
    numbers = connection.execute(f"SELECT count(*) = count({number}) FROM pairs").fetchall()[0][0]
    if not numbers:
        connection.execute("SET TimeZone = 'UTC'")
    return number if numbers else moment


def cut(times: Times | None, at: Any) -> Bools:
    """Which baskets are before that time."""
    when, times = as_time(at), known_times(times)
    if isinstance(at, str) and times.dtype.kind == NUMBERS:
        when = _number_of(at, when)
    if isinstance(when, float) != (times.dtype.kind == NUMBERS):
        theirs = "numbers" if times.dtype.kind == NUMBERS else "dates"
        raise InputError(f"the time is {at!r}, but those of the baskets are {theirs}; expected one of these")
    return np.asarray(times < when)


def _number_of(text: str, otherwise: Time) -> Time:
    """20260301 is a date in one column, and a number in another."""
    try:
        return _of_value(float(text))
    except ValueError:
        return otherwise


def known_times(times: Times | None) -> Times:
    if times is None:
        raise InputError(
            "the baskets have no times; name their column with time= (--columns time=), or pass times= to from_lists"
        )
    return times


def joined_times(parts: Sequence[Times | None]) -> Times | None:
    """Those of all parts one after another; None where some have none."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return None
    if len({part.dtype.kind for part in there}) > 1:
        raise InputError("some of the times are dates and others numbers; expected all of one kind")
    return np.concatenate(there)


def _weeks(times: Times) -> npt.NDArray[Any]:
    days = times.astype("datetime64[D]")
    return days - (days.astype(np.int64) + 3) % 7 * DAY  # the first of January 1970 was a Thursday


PERIODS: dict[str, Callable[[Times], npt.NDArray[Any]]] = {
    "day": lambda times: times.astype("datetime64[D]"),
    "week": _weeks,
    "month": lambda times: times.astype("datetime64[M]"),
    "quarter": lambda times: times.astype("datetime64[M]").astype(np.int64) // 3,
    "year": lambda times: times.astype("datetime64[Y]"),
}


def periods(times: Times | None, by: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """What the periods that occur are called, in their order, and which of them each basket falls into. A week is
    called by its Monday."""
    if by not in PERIODS:
        raise InputError(f"by is {by!r}; expected one of {', '.join(PERIODS)}")
    times = known_times(times)
    if times.dtype.kind == NUMBERS:
        raise InputError(f"the times of the baskets are numbers, which have no {by}; expected dates")
    found, which = np.unique(PERIODS[by](times), return_inverse=True)
    names = [f"{1970 + each // 4}-Q{each % 4 + 1}" for each in found] if by == "quarter" else found.astype(str).tolist()
    return names, which


def as_span(value: Any, times: Times) -> Any:
    """A length of time as the times have it: of dates '90d', '12w', '36h' or a number of days; of others a number."""
    numbers = times.dtype.kind == NUMBERS
    try:
        text = str(value).strip()
        unit = UNITS.get(text[-1:].lower()) if isinstance(value, str) else None
        length = float(text[:-1]) if unit else float(value)
        span = length if numbers else np.timedelta64(length * (unit or UNITS["d"]), "us")
    except (TypeError, ValueError, OverflowError):
        length, unit, span = np.nan, None, np.timedelta64(0, "us")
    if not 0 < length < np.inf or (numbers and unit) or not span:
        expected = "a number above 0" if numbers else "days, above 0, or a text such as 90d, 12w or 36h"
        raise InputError(f"the half-life is {value!r}; expected {expected}")
    return span


def decay(times: Times, half_life: Any, now: Any) -> Floats:
    """What a basket still counts: half of what it did, for every half-life that has passed since."""
    return np.asarray(np.exp2(-((now - times) / as_span(half_life, times))), dtype=float)
