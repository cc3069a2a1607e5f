"""What `diagnose` says of the registries: `python -m benchmarks.diagnosis`, all baskets of each category."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks.learners.problems import source
from dpplearn.tools.progress import shown_progress


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
        "verdict", title=f"{source().kind} registries; nats per basket, ± two standard errors",
    )  # fmt: skip
    categories = source().chosen([])
    with shown_progress() as progress:
        bar = progress.bar("categories", len(categories))
        for category in categories:
            shown.add_row(*row(category))
            bar.advance()
    Console(width=130).print(shown)


if __name__ == "__main__":
    main()
