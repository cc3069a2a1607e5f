"""What `diagnose` says of the registries: `python -m benchmarks.diagnosis`, all baskets of each category."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source


def row(category: str) -> list[str]:
    found = dl.diagnose(source().load(category))
    pairs, gain = found.pairs, found.gain
    return [
        category,
        f"{pairs.probability_empty:.2f}",
        *(f"{100 * share.mean():.1f} %" for share in (pairs.repels, pairs.attracts, pairs.could_repel)),
        f"{pairs.repelling.nats:.3f}",
        f"{pairs.attracting.nats:.3f}",
        f"{gain.mean:.3f} ± {2 * gain.standard_error:.3f}",
        f"{gain.strength:g}",
        str(found.verdict),
    ]


def main() -> None:
    shown = Table(
        "category", "P(∅), cut off", "repel", "attract", "could repel", "repulsion", "attraction", "gain", "prior",
        "verdict", title=f"{source().kind} registries; nats a basket, ± two standard errors",
    )  # fmt: skip
    console = Console(width=130)
    for category in track(source().chosen([]), console=console):
        shown.add_row(*row(category))
    console.print(shown)


if __name__ == "__main__":
    main()
