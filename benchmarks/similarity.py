"""Whether items of one brand avoid each other or go together, on the registries: `python -m benchmarks.similarity`.

The brand is the first word of an item's name. Of pairs of the same brand and of others: how often they meet in training
baskets over how often independent items would, with a 90 % interval.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source


def brands(baskets: dl.Baskets) -> dict[object, str]:
    """Of every item."""
    return {item: str(item).split()[0] for item in baskets.items}


def main() -> None:
    console, table = Console(), Table("category", "same brand", "other brand", "verdict")
    for category in source().chosen([]):
        train, _ = source().split(category, 0)
        found = dl.lift_by_similarity(train, brands(train), rng=0)
        other, same = (f"{each.ratio:.2f} [{each.ratio_low:.2f}, {each.ratio_high:.2f}]" for each in found.bins)
        table.add_row(category, same, other, found.verdict)
    console.print(table)


if __name__ == "__main__":
    main()
