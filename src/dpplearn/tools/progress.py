"""Progress bars for a fit and for experiments, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def fit_progress(restarts: int) -> Iterator[Callable[[int, int, float, float], None]]:
    """Within, call the function with the number of the run, its iterations, log-likelihood and seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("iteration {task.completed:.0f}"),
        TextColumn("log-likelihood {task.fields[log_likelihood]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("learning", total=None, log_likelihood="", rate="")

        def show(restart: int, n_iter: int, log_likelihood: float, seconds: float) -> None:
            bar.update(
                task,
                completed=n_iter,
                description=f"learning, run {restart + 1} of {restarts}" if restarts > 1 else "learning",
                log_likelihood=f"{log_likelihood:.5f}",
                rate=f"{n_iter / seconds:.1f} iterations/s" if seconds > 0 else "",
            )

        yield show


@contextmanager
def choice_progress(strengths: int) -> Iterator[Callable[[int], None]]:
    """Within, call the function with the number of strengths tried. There may be no need to try all."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("choosing the prior, strength", total=strengths)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def grouped_progress(
    totals: Mapping[str, int], done: Mapping[str, int], everything: str = "all trials"
) -> Iterator[Callable[[str], None]]:
    """A bar a group and one for all; within, call the function with the group of every trial that ends."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = {name: bar.add_task(name, total=total, completed=done.get(name, 0)) for name, total in totals.items()}
        total = bar.add_task(everything, total=sum(totals.values()), completed=sum(done.values()))

        def advance(group: str) -> None:
            bar.advance(tasks[group])
            bar.advance(total)

        yield advance
