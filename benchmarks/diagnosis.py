"""What `diagnose` says of the registries and of groceries: `python -m benchmarks.diagnosis`, all baskets of each."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import SHARED, source
from dpplearn.tools.progress import shown_progress

GROCERIES = SHARED / "data" / "baskets" / "groceries.csv"


def problems() -> Iterator[tuple[str, dl.Baskets]]:
    yield from ((category, source().load(category)) for category in source().chosen([]))
    if GROCERIES.is_file():
        yield "groceries", dl.read_baskets(GROCERIES, format="lines")


def row(name: str, baskets: dl.Baskets) -> list[str]:
    began = time.process_time()
    found = dl.diagnose(baskets)
    seconds = time.process_time() - began
    pairs, bounds = found.pairs, found.bounds
    return [
        name,
        f"{pairs.probability_empty:.2f}",
        *(f"{100 * share.mean():.1f} %" for share in (pairs.repels, pairs.attracts)),
        *(f"{gain.mean:.3f} ± {2 * gain.standard_error:.3f}" for gain in found.gains.values()),
        f"{bounds.size_ratio:.2f}",
        str(found.verdict),
        f"{seconds:.1f}",
    ]


def main() -> None:
    shown = Table(
        "data", "P(∅), cut off", "repel", "attract", "symmetric", "nonsymmetric", "segments", "mixture",
        "variance/mean", "verdict", "CPU s",
        title=f"{source().kind} registries; gains in nats per basket, ± two standard errors",
    )  # fmt: skip
    with shown_progress() as progress:
        bar = progress.bar("data sets", len(source().chosen([])) + GROCERIES.is_file())
        for name, baskets in problems():
            shown.add_row(*row(name, baskets))
            bar.advance()
    Console(width=160).print(shown)


if __name__ == "__main__":
    main()
