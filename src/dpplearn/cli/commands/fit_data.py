"""Training and held-out baskets of dpplearn fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import Reader, Reading, Unknown, check_target, ids_of
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.writing import check_format, write_table
from dpplearn.errors import InputError
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.utils.files import OutputKind

NEW_FILE = OutputKind("an earlier output", lambda path: False)  # existing tables are replaced with --force only

Test = Annotated[str | None, typer.Option(metavar="FILE", help="Held-out baskets to evaluate on.")]
Holdout = Annotated[
    float | None, typer.Option(metavar="FRACTION", help="Hold out this fraction of DATA to evaluate on.")
]
HoldoutFile = Annotated[
    Path | None,
    typer.Option(
        "--holdout-file", metavar="FILE", help="With --holdout: write the held-out baskets, as CSV or Parquet."
    ),
]


@dataclass(frozen=True)
class HeldOut:
    """Options for baskets that are not used for fitting."""

    test: Test = None
    holdout: Holdout = None
    holdout_file: HoldoutFile = None
    unknown: Unknown = "error"

    def check(self, seed: int | None, checkpoint: Path | None, *, in_parts: bool) -> None:
        """Raise an error if the options do not fit together."""
        if self.holdout_file is not None and self.holdout is None:
            raise UsageError("--holdout-file needs --holdout")
        if self.holdout is None:
            return
        if in_parts:
            raise UsageError("--holdout cannot be used with parts; leave files out of DATA and pass them as --test")
        if self.test is not None:
            raise UsageError("--test and --holdout are mutually exclusive")
        if not 0 < self.holdout < 1:
            raise UsageError(f"--holdout must be between 0 and 1, got {self.holdout:g}")
        if checkpoint is not None and seed is None:
            raise UsageError("--holdout with --checkpoint needs --seed, so that --start holds out the same baskets")

    def check_file(self, sources: Sequence[str | Path | None], force: bool) -> None:
        if self.holdout_file is not None:
            check_format(self.holdout_file)
            check_target("--holdout-file", self.holdout_file, sources, NEW_FILE, force=force)

    def split(self, baskets: Baskets, seed: int) -> tuple[Baskets, Baskets | None]:
        """Return the training and the held-out part."""
        if self.holdout is None:
            return baskets, None
        train, test = baskets.split(1 - self.holdout, rng=seed)
        if not test.total_weight > 0:
            raise InputError(f"--holdout {self.holdout:g} of {len(baskets)} baskets leaves nothing to evaluate on")
        return train, test

    def write(self, baskets: Baskets | None, reading: Reading) -> None:
        """Write held-out baskets with the column names that they were read with. Empty baskets have no rows."""
        if self.holdout_file is None or baskets is None:
            return
        labels = np.array(baskets.catalogue.labels, dtype=object)
        columns = {reading.basket: np.repeat(np.array(ids_of(baskets)), baskets.sizes)}
        columns[reading.item] = labels[baskets.indices]
        if reading.weight is not None:
            columns[reading.weight] = np.repeat(baskets.weights, baskets.sizes)
        write_table(columns, self.holdout_file)


def check_targets(
    output: Path, checkpoint: Path | None, start: Path | None, sources: Sequence[str | Path | None], force: bool
) -> None:
    """Refuse to overwrite input files. A fit may continue from a checkpoint and save to the same file."""
    check_target("--output", output, (*sources, checkpoint, start), MODEL_FILE, force=force)
    check_target("--checkpoint", checkpoint, sources, MODEL_FILE, force=force)


class Source(NamedTuple):
    """Training and held-out baskets."""

    reader: Reader
    data: str
    held_out: HeldOut
    seed: int
    in_parts: bool
    cluster: str | None

    @contextmanager
    def opened(self) -> Iterator[tuple[AnyBaskets, Baskets | None]]:
        """Yield both. Workers that hold parts run until the end."""
        if self.in_parts:
            with self.reader.read_parts(self.data, self.cluster) as parts:
                yield parts, self._test(parts.catalogue)
        else:
            yield self._train_and_test()

    def _train_and_test(self) -> tuple[Baskets, Baskets | None]:
        baskets = self.reader.read(self.data)
        train, test = self.held_out.split(baskets, self.seed)
        return (train, test) if test is not None else (train, self._test(baskets.catalogue))

    def _test(self, catalogue: Catalogue) -> Baskets | None:
        file = self.held_out.test
        return None if file is None else self.reader.read_for("--test", file, catalogue)
