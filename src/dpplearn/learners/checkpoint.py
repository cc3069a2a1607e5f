"""Callbacks of fits: Checkpoint saves the best model so far, and ProgressBar shows how far the fit is."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError, InputWarning
from dpplearn.learners.result import FitProgress
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.utils.files import check_replaceable
from dpplearn.utils.progress import Progress

Callback = Callable[[FitProgress], Any]
Callbacks = Callback | Sequence[Callback] | None


class Checkpoint:
    """Callback of `fit` and `fit_dpp` that saves the best model so far to a file.

    The file is a normal model file, replaced atomically. `start=path` continues from it. It is written every
    `seconds` seconds, at the end of the fit, and when the fit is interrupted by Ctrl-C. If writing fails, for example
    because the disk is full, a warning is given and the fit goes on. The saved model of a DPP is the one before
    shrinkage, from which learning can continue.

    Fits with more than 300 items follow a fixed schedule of passes over the baskets. Their checkpoints also hold the
    state of the schedule, and `start=path` with the same baskets and options continues it.

    Parameters
    ----------
    path : path
        The file. An existing model file is replaced.
    seconds : float, default 60
        Time between two saves. With `math.inf` the model is saved only when the fit is interrupted.
    force : bool, default False
        Replace an existing file of any other type, too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10
    >>> with TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     first = dl.fit_dpp(baskets, shrinkage=0, max_iter=3, callback=dl.Checkpoint(path))
    ...     second = dl.fit_dpp(baskets, shrinkage=0, start=path)
    >>> second.log_likelihood >= first.log_likelihood
    True
    """

    def __init__(self, path: str | PathLike[str], seconds: float = 60.0, *, force: bool = False) -> None:
        if not isinstance(seconds, Real) or not seconds >= 0:
            raise InputError(f"seconds must be a number, 0 or more, got {seconds!r}")
        self.path: Path = Path(path)
        self.seconds: float = float(seconds)
        self.force: bool = force
        check_replaceable(self.path, MODEL_FILE, force=force)
        self.saved: bool = False  # whether the file holds a model of the current fit
        self._best: FitProgress | None = None
        self._due: float = math.inf
        self._failed: bool = False

    def __call__(self, now: FitProgress) -> None:
        """Keep the model if it is the best so far, and save if it is time.

        Parameters
        ----------
        now
            The state of the fit.

        Examples
        --------
        >>> import dpplearn as dl
        >>> dl.fit_dpp([["cot"], ["crib", "bib"]], "em", init="wishart", max_iter=1, callback=lambda now: None).n_iter
        1
        """
        if not now.restart and not now.iteration:  # a new fit
            self.saved = self._failed = False
            self._best = None
            self._due = time.monotonic() + self.seconds
        if self._best is None or now.score > self._best.score:
            self._best = now
        self._schedule = now.schedule  # of the last iteration
        if time.monotonic() >= self._due:
            self.save()

    def save(self) -> None:
        """Save the best model so far now, if there is one.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     checkpoint = Checkpoint(f"{folder}/model.safetensors")
        ...     checkpoint.save()
        ...     checkpoint.saved
        False
        """
        if self._best is None:
            return
        model = self._best.model
        if model.training is not None:
            model.training = replace(model.training, schedule=self._schedule)
        try:
            model.save(self.path, force=self.force)
            self.saved, self._failed = True, False
        except InputError as error:
            if not self._failed:
                warnings.warn(f"checkpoint not saved: {error}; the fit goes on", InputWarning, stacklevel=2)
            self._failed = True
        self._due = time.monotonic() + self.seconds


class ProgressBar:
    """Callback of fits that shows a progress bar on standard error.

    Parameters
    ----------
    progress : Progress
        Where the bar is shown, from `shown_progress`.
    """

    def __init__(self, progress: Progress) -> None:
        self._bar = progress.bar("learning")

    def __call__(self, now: FitProgress) -> None:
        """Update the bar.

        Parameters
        ----------
        now
            The state of the fit.
        """
        text = f"iteration {now.iteration}, log-likelihood {now.log_likelihood:.5f}"
        if now.share is not None:
            text += f", {now.share:.0%} done"
        self._bar.update(now.iteration, text, f"learning, run {now.restart + 1}" if now.restart else "learning")


@contextmanager
def saved_on_exit(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Save checkpoints a last time at the end of a fit, and when it is interrupted."""
    checkpoints = [each for each in callbacks if isinstance(each, Checkpoint)]
    try:
        yield
    except KeyboardInterrupt:
        for each in checkpoints:
            each.save()
        raise
    for each in checkpoints:
        if each.seconds < math.inf:
            each.save()
