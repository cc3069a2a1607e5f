"""Times of baskets: datetimes in UTC; what is before a time, periods of the calendar, and decay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.errors import InputError

Time = Any  # a datetime64[us]
Times = npt.NDArray[Any]  # datetime64[us]
DAY = np.timedelta64(1, "D")
MIN_UNIX_TIME = 1e8  # seconds, in 1973; smaller numbers are counters, or dates such as 20260301
MIN_UNIX_MILLISECONDS = 1e11  # in seconds it is the year 5138
EXPECTED = "expected a date or a time, such as 2026-10-01 or 2026-10-01T12:00, or a Unix timestamp"
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def as_time(value: Any) -> Time:
    """Return a date, a time or a Unix timestamp as a datetime in UTC. Values without a time zone are in UTC."""
    try:
        found: Any = _parsed(value.strip()) if isinstance(value, str) else value
        if isinstance(found, datetime) and found.tzinfo is not None:
            found = found.astimezone(UTC).replace(tzinfo=None)
        if not isinstance(found, date | np.datetime64):
            seconds = float(found) / (1e3 if found >= MIN_UNIX_MILLISECONDS else 1)
            found = np.datetime64(round(seconds * 1e6) if found >= MIN_UNIX_TIME else "NaT", "us")
        found = np.datetime64(found, "us")
    except (OverflowError, TypeError, ValueError):
        found = np.datetime64("NaT")
    if np.isnat(found):
        raise InputError(f"the time is {value!r}; {EXPECTED}")
    return found


def _parsed(text: str) -> datetime | float:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return float(text)


def as_times(values: Any, n_baskets: int) -> Times:
    """Return one datetime per basket."""
    found = list(map(as_time, values))
    if len(found) != n_baskets:
        raise InputError(f"there are {len(found)} times, but {n_baskets} baskets; expected one per basket")
    return np.array(found, dtype="datetime64[us]")


def known_times(times: Times | None) -> Times:
    """Return the times; raise an error if there are none."""
    if times is None:
        raise InputError(
            "the baskets have no times; name their column with time= (--columns time=), or pass times= to from_lists"
        )
    return times


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
    """Return the names of the periods that occur, in order, and the period of each basket as a position among them.

    The name of a week is the date of its Monday.
    """
    if by not in PERIODS:
        raise InputError(f"by is {by!r}; expected one of {', '.join(PERIODS)}")
    found, which = np.unique(PERIODS[by](known_times(times)), return_inverse=True)
    names = [f"{1970 + each // 4}-Q{each % 4 + 1}" for each in found] if by == "quarter" else found.astype(str).tolist()
    return names, which


def as_span(value: Any) -> np.timedelta64:
    """Return a length of time: "90d", "12w", "36h", or a number of days."""
    try:
        text = str(value).strip()
        unit = UNITS.get(text[-1:].lower()) if isinstance(value, str) else None
        length = float(text[:-1]) if unit else float(value)
        span = np.timedelta64(length * (unit or UNITS["d"]), "us")
    except (TypeError, ValueError, OverflowError):
        span = np.timedelta64(0, "us")
    if not span > np.timedelta64(0, "us"):
        raise InputError(f"the half-life is {value!r}; expected days, above 0, or a text such as 90d, 12w or 36h")
    return span


def decay(times: Times, half_life: Any, now: Any) -> Floats:
    """Return the weight that a basket keeps: half after every half-life."""
    return np.asarray(np.exp2(-((now - times) / as_span(half_life))), dtype=float)
