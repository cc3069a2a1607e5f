"""The registries that the experiments run on: the original files, or generated ones in their place."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.readers import read_registry
from dpplearn.datasets.registries import CATEGORIES, make_registries
from dpplearn.errors import InputError

TRAIN_SHARE = 0.7
FEWEST_ITEMS = 25
N_GENERATED = 5000

PREFIX, SETS, NAMES = "1_100_100_100_", "_regs.csv", "_item_names.txt"


@dataclass(frozen=True)
class Source:
    """Where registries come from, `folder` None meaning generated ones, and the seed of everything random.

    `reference` is a folder with the paper's tables and the authors' runs, where there is one.
    """

    folder: Path | None
    seed: int
    reference: Path | None = None

    @property
    def kind(self) -> str:
        return "generated" if self.folder is None else "original"

    @property
    def categories(self) -> tuple[str, ...]:
        """All that are there, the paper's first and in its order."""
        if self.folder is None:
            return tuple(CATEGORIES)
        found = {path.name[len(PREFIX) : -len(SETS)] for path in self.folder.glob(f"{PREFIX}*{SETS}")}
        if not found:
            raise InputError(
                f"there are no registries in {self.folder}: expected {PREFIX}<category>{SETS} and "
                f"{PREFIX}<category>{NAMES} for each category, the Amazon baby registries that the paper's authors "
                "published with their program. Put them there, name their folder with --data, or run on generated "
                "registries with --generated"
            )
        return *(name for name in CATEGORIES if name in found), *sorted(found - set(CATEGORIES))

    @property
    def files(self) -> tuple[Path, ...]:
        """The registries, in the order of their names."""
        return () if self.folder is None else tuple(sorted(self.folder.glob(f"{PREFIX}*")))

    def load(self, category: str) -> Baskets:
        return _load(self, category)

    def split(self, category: str, trial: int) -> tuple[Baskets, Baskets]:
        """70% to learn from and 30% to test on; every experiment with this trial number has the same."""
        return self.load(category).split(TRAIN_SHARE, rng=self.rng("split", category, trial))

    def rng(self, *key: str | int) -> np.random.Generator:
        """A stream of its own for every use, whatever else is run."""
        return np.random.default_rng([self.seed, zlib.crc32(" ".join(map(str, key)).encode())])

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The categories called so, or all of them, as far as the paper's rule admits them."""
        there = self.categories
        for name in names:
            if name not in there:
                near = difflib.get_close_matches(name, there, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise InputError(f"there is no category {name!r}; {hint}choose from {', '.join(there)}")
        kept = tuple(name for name in there if (not names or name in names) and admitted(self.load(name)))
        left_out = [name for name in names if name not in kept]
        if left_out or not kept:
            raise InputError(
                f"{', '.join(left_out or there)}: the paper asks for at least {FEWEST_ITEMS} items and twice as many "
                "training sets as items; choose other categories"
            )
        return kept


@lru_cache(maxsize=20)
def _load(source: Source, category: str) -> Baskets:
    if source.folder is None:
        return make_registries(category, N_GENERATED, rng=source.rng("registries", category))
    stem = f"{PREFIX}{category}"
    return read_registry(source.folder / f"{stem}{SETS}", source.folder / f"{stem}{NAMES}")


def admitted(registries: Baskets) -> bool:
    """The paper's rule: at least 25 items, and at least twice as many training sets as items. [GKFT14, section 5]"""
    return registries.n_items >= FEWEST_ITEMS and n_training(registries) >= 2 * registries.n_items


def n_training(registries: Baskets) -> int:
    return int(TRAIN_SHARE * len(registries) + 1e-9)


def off_diagonal_strength(registries: Baskets) -> float:
    """d = (1/N) ‖M‖_F / ‖diag M‖₂, M the frequencies of items and pairs. [GKFT14, section 5.1]"""
    M = registries.pair_frequencies()
    return float(np.linalg.norm(M) / np.linalg.norm(M.diagonal()) / len(M))
