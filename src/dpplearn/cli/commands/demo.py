"""dpplearn demo: the paper's comparison on generated registries, and what a mixture adds to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dpplearn.cli.commands.demo_mixture import mixture_report, mixture_tables, run_mixture_demo
from dpplearn.cli.commands.demo_paper import paper_report, paper_tables, run_paper_demo
from dpplearn.cli.options import AsJson, Quiet
from dpplearn.cli.output import Report, Shown, wants_progress, write

PAPER, BEYOND = "safety", "apparel"  # the first has the video monitors; in the second, tastes show most


def demo(
    category: Annotated[
        str | None,
        typer.Option(
            help="A category of generated registries, such as safety or feeding. "
            f"[default: {PAPER} for the paper's comparison, {BEYOND} for the mixture]",
            show_default=False,
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=10, help="How many registries to generate.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the registries, the split and the start.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn generated registries: the paper's comparison, then what a mixture adds."""
    write(run_demo(category, n, seed, progress=wants_progress(quiet)), demo_tables, as_json)


def run_demo(category: str | None, n: int, seed: int, *, progress: bool = False) -> Report:
    """Both parts, on one category or on the one that shows each best."""
    paper = run_paper_demo(category or PAPER, n, seed, progress=progress)
    mixture = run_mixture_demo(category or BEYOND, n, seed, progress=progress)
    return {**paper_report(paper), "mixture": mixture_report(mixture)}


def demo_tables(report: Report) -> Iterator[Shown]:
    yield from paper_tables(report)
    yield from mixture_tables(report["mixture"])
