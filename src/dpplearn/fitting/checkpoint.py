"""Checkpoint: a callback that saves the best model so far."""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, InputWarning
from dpplearn.fitting.options import FitOptions
from dpplearn.fitting.result import FitProgress
from dpplearn.learners.loop import Arrays
from dpplearn.learners.registry import FACTORED
from dpplearn.models.mixture import Mixture
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.tools.files import check_replaceable


class Checkpoint:
    """Callback for `fit` that saves the best model so far to a file.

    The file is a normal model file, replaced atomically. `fit(..., start=path)` continues from it. It is written every
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
    ...     first = dl.fit(baskets, "lbfgs", shrinkage=0, max_iter=3, callback=dl.Checkpoint(path))
    ...     second = dl.fit(baskets, "lbfgs", shrinkage=0, start=path)
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
        self._latest: FitProgress | None = None
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
        >>> dl.fit([["cot"], ["crib", "bib"]], "em", "wishart", max_iter=1, callback=lambda now: None).n_iter
        1
        """
        if not now.restart and not now.iteration:  # a new fit
            self.saved = self._failed = False
            self._best = None
            self._due = time.monotonic() + self.seconds
        if self._best is None or now.score > self._best.score:
            self._best = now
        self._latest = now
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
        if self._best is None or self._latest is None:
            return
        model = self._best.model
        if model.training is not None:
            model.training = replace(model.training, schedule=self._latest.schedule)
        try:
            model.save(self.path, force=self.force)
            self.saved, self._failed = True, False
        except InputError as error:
            if not self._failed:
                warnings.warn(f"checkpoint not saved: {error}; the fit goes on", InputWarning, stacklevel=2)
            self._failed = True
        self._due = time.monotonic() + self.seconds


@contextmanager
def saved_on_exit(callback: object) -> Iterator[None]:
    """Save a last time at the end of a fit, and when it is interrupted, if the callback is a checkpoint."""
    if not isinstance(callback, Checkpoint):
        yield
        return
    try:
        yield
    except KeyboardInterrupt:
        callback.save()
        raise
    if callback.seconds < math.inf:
        callback.save()


def fingerprint(baskets: Baskets, options: FitOptions) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A digest of deduplicated baskets and of the options that decide which of them are learned from and how."""
    settings = [list(baskets.items), options.given_nonempty, options.aside]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for array in (baskets.indices, baskets.offsets, baskets.weights):
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def schedule_to_continue(start: object, options: FitOptions, baskets: object) -> Arrays | None:
    """Return the schedule in a checkpoint, if it belongs to these deduplicated baskets and options."""
    if options.how is not FACTORED or not isinstance(start, Mixture) or start.training is None:
        return None
    found = start.training.schedule
    if found is None or not isinstance(baskets, Baskets):
        return None
    same = (
        np.array_equal(found["data"], fingerprint(baskets, options))
        and found["columns"].tolist() == [options.n_columns, options.n_pairs]
        and found["log_odds"].shape == (options.n_segments, baskets.n_items)
    )
    return found if same else None
