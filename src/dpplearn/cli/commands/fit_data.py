"""What dpplearn fit reads, and that it overwrites none of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import Reader, check_target
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets
from dpplearn.errors import InputError
from dpplearn.models.model_file import MODEL_FILE


def check_holdout(
    holdout: float | None, test: str | None, seed: int | None, state: Path | None, *, in_parts: bool
) -> None:
    if holdout is None:
        return
    if in_parts:
        raise UsageError(
            "--holdout is not for baskets in parts; leave some files out of DATA, and name them with --test"
        )
    if test is not None:
        raise UsageError("--test and --holdout are two ways to say the same; give one of them")
    if not 0 < holdout < 1:
        raise UsageError(f"--holdout is {holdout:g}; expected a number between 0 and 1")
    if state is not None and seed is None:
        raise UsageError("--holdout with --checkpoint needs --seed, so that --start holds out the same baskets")


def check_targets(
    output: Path, checkpoint: Path | None, start: Path | None, sources: Sequence[str | Path | None], force: bool
) -> None:
    """Refuse to overwrite input files. A fit may continue from a checkpoint and save to the same file."""
    check_target("--output", output, (*sources, checkpoint, start), MODEL_FILE, force=force)
    check_target("--checkpoint", checkpoint, sources, MODEL_FILE, force=force)


class Source(NamedTuple):
    """What a fit learns from, and what it reports on."""

    reader: Reader
    data: str
    test: str | None
    holdout: float | None
    seed: int
    in_parts: bool
    cluster: str | None

    @contextmanager
    def opened(self) -> Iterator[tuple[AnyBaskets, Baskets | None]]:
        """Both; workers that hold parts are there until the end."""
        if self.in_parts:
            with self.reader.read_parts(self.data, self.cluster) as parts:
                yield parts, self._test(parts.catalogue)
        else:
            yield self._train_and_test()

    def _train_and_test(self) -> tuple[Baskets, Baskets | None]:
        baskets = self.reader.read(self.data)
        if self.holdout is None:
            return baskets, self._test(baskets.catalogue)
        train, held_out = baskets.split(1 - self.holdout, rng=self.seed)
        if not held_out.total_weight > 0:
            raise InputError(f"--holdout {self.holdout:g} of {len(baskets)} baskets leaves nothing to report on")
        return train, held_out

    def _test(self, catalogue: Catalogue) -> Baskets | None:
        return None if self.test is None else self.reader.read_for("--test", self.test, catalogue)
