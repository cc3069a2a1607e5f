"""Observers of a fit: the progress bar and the callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from dpplearn.fitting.result import FitProgress
from dpplearn.fitting.runs import Observer
from dpplearn.learners.loop import Arrays, Run
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.words import duration

Callback = Callable[[FitProgress], Any]
Build = Callable[[int, Run], DPP | Mixture]  # from the number of the run and its state


@contextmanager
def observers_of(
    restarts: int,
    progress: bool,
    callback: Callback | None,
    build: Build,
    schedule: Callable[[Run], Arrays | None] = lambda now: None,
) -> Iterator[Sequence[Observer]]:
    """Return the functions that are called after every iteration. `build` makes a model for the callback."""

    def tell(restart: int, now: Run) -> Any:
        assert callback is not None
        step, evaluations = now.step, now.record.evaluations[now.n_iter]
        validation = now.record.validation[now.n_iter]
        news = FitProgress(
            restart,
            now.n_iter,
            step.log_likelihood,
            now.seconds,
            step.step_size,
            evaluations,
            validation,
            step,
            partial(build, restart, now),
            schedule(now),
        )
        return callback(news)

    observers: list[Observer] = [tell] if callback is not None else []
    if not progress:
        yield observers
        return
    with shown_progress() as shown:
        bar = shown.bar("learning")

        def show(restart: int, run: Run) -> None:
            seconds = run.seconds - run.record.seconds[0]
            rate = f"{run.n_iter / seconds:.1f} iterations/s" if seconds > 0 else ""
            if run.step.share is not None:
                rate = _left(run.step.share, seconds)
            bar.update(
                run.n_iter,
                f"iteration {run.n_iter} log-likelihood {run.log_likelihood:.5f} {rate}",
                f"learning, run {restart + 1} of {restarts}" if restarts > 1 else "learning",
            )

        yield [show, *observers]


def _left(share: float, seconds: float) -> str:
    """How much of what is planned is done, and how long the rest will take."""
    left = f", {duration(seconds * (1 - share) / share)} left" if 0 < share < 1 and seconds > 1 else ""
    return f"{share:.0%} done{left}"
