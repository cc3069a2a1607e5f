"""What an update is worth, and what a check finds: `python -m benchmarks.upkeep updates` and `... checks`.

Registries in the order of their files. Updates: learned on the first 70 %, updated with the next 20 %, judged by the
last 10 %. Checks: of models learned on 70 % drawn at random, on parts of the others, as they are and with made shifts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source

Shift = Callable[[dl.Baskets, np.random.Generator], dl.Baskets]
RECENT, SPLITS = (300, 1000, 3000), 5


def updates() -> Table:
    shown = Table(
        "category", "items", "baskets", "old model", "new alone", "updated, drawn", "updated, --with", "learned anew",
        title=f"{source().kind} registries: mean log-likelihood of the last 10 %, and the seconds of an update",
    )  # fmt: skip
    for category in source().chosen([]):
        baskets = source().load(category)
        first, second = int(0.7 * len(baskets)), int(0.9 * len(baskets))
        old, new, test = baskets[:first], baskets[first:second], baskets[second:]
        before = dl.fit(old, rng=0).model
        began = time.perf_counter()
        drawn = dl.update(before, new, rng=0).model
        middle = time.perf_counter()
        given = dl.update(before, new, old=old, rng=0).model
        seconds = middle - began, time.perf_counter() - middle
        models = [before, dl.fit(new, rng=0).model, drawn, given, dl.fit(baskets[:second], rng=0).model]
        figures = [f"{model.log_likelihood(test):.4f}" for model in models]
        for place, each in zip((2, 3), seconds, strict=True):
            figures[place] += f" ({each:.1f} s)"
        shown.add_row(category, str(baskets.n_items), f"{len(baskets):,}", *figures)
    return shown


def as_they_are(baskets: dl.Baskets, rng: np.random.Generator) -> dl.Baskets:
    return baskets


def one_item_doubled(baskets: dl.Baskets, rng: np.random.Generator) -> dl.Baskets:
    """The fifth most frequent item is also put into as many other baskets."""
    item = int(np.argsort(-baskets.frequencies())[4])
    lists = [list(baskets.positions(row)) for row in range(len(baskets))]
    without = [row for row, each in enumerate(lists) if item not in each]
    for row in rng.choice(without, len(lists) - len(without), replace=False):
        lists[row].append(item)
    return _of_positions(lists, baskets)


def a_fifth_lost(baskets: dl.Baskets, rng: np.random.Generator) -> dl.Baskets:
    """Of every basket of several items each is lost with a chance of a fifth, but for one."""
    kept = [rng.permutation(baskets.positions(row)) for row in range(len(baskets))]
    return _of_positions(
        [[*each[:1], *each[1:][rng.random(len(each) - 1) > 0.2]] for each in kept if len(each)], baskets
    )


def shuffled(baskets: dl.Baskets, rng: np.random.Generator) -> dl.Baskets:
    """All items as frequent and all baskets as large as before, but for repeats, and nothing goes together any more."""
    mixed = rng.permutation(baskets.indices)
    lists = [sorted(set(part.tolist())) for part in np.split(mixed, baskets.offsets[1:-1])]
    return _of_positions(lists, baskets)


def a_tenth_with_new_items(baskets: dl.Baskets, rng: np.random.Generator) -> dl.Baskets:
    return dl.Baskets.from_lists([[*each, "new"] if rng.random() < 0.1 else list(each) for each in baskets])


def _of_positions(lists: list[list[int]], baskets: dl.Baskets) -> dl.Baskets:
    return dl.Baskets.from_lists([[baskets.items[each] for each in some] for some in lists], baskets.items)


SHIFTS: dict[str, Shift] = {
    "as they are": as_they_are,
    "one item twice as frequent": one_item_doubled,
    "a fifth of the items lost": a_fifth_lost,
    "nothing goes together": shuffled,
    "a tenth with a new item": a_tenth_with_new_items,
}


def checks() -> Table:
    found: dict[tuple[str, int], list[bool]] = {(shift, n): [] for shift in SHIFTS for n in RECENT}
    for category in source().chosen([]):
        baskets = source().load(category)
        for split in range(SPLITS):
            rng = np.random.default_rng(split)
            train, rest = baskets.split(0.7, rng)
            model = dl.fit(train, rng=split).model
            for shift, make in SHIFTS.items():
                for n in RECENT:
                    if n <= len(rest) and (split == 0 or shift == "as they are"):
                        found[shift, n].append(dl.check(model, make(rest[:n], rng)).drifted)
    title = f"{source().kind} registries: in how many checks there was an alarm"
    shown = Table("recent baskets", *(f"{n:,}" for n in RECENT), title=title)
    for shift in SHIFTS:
        shown.add_row(shift, *(f"{sum(found[shift, n])} of {len(found[shift, n])}" for n in RECENT))
    return shown


if __name__ == "__main__":
    Console(width=150).print({"updates": updates, "checks": checks}[sys.argv[1]]())
