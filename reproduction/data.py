"""The registries that the experiments use, their random splits, and the numbers that the paper reports."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpplearn import Baskets, InputError
from dpplearn.datasets import make_registries

TRAIN_FRACTION = 0.7
N_GENERATED = 5000  # registries per generated category
PREFIX, SETS, NAMES = "1_100_100_100_", "_regs.csv", "_item_names.txt"
ARCHIVE = "https://code.google.com/archive/p/em-for-dpps"

Quartiles = tuple[float, float, float]  # first quartile, median, third quartile


class PaperNumbers(NamedTuple):
    """What [GKFT14] reports for a category. Gains are 100·(EM − KA)/|KA| of the test log-likelihood, over 25 trials."""

    n_items: int
    n_train: int
    wishart: Quartiles
    moments: float  # no variability: the paper has one split
    moments_2N: Quartiles


PAPER = {
    "feeding": PaperNumbers(100, 13300, (-0.11, -0.09, -0.07), -0.03, (-1.32, 0.61, 1.22)),
    "gear": PaperNumbers(100, 11776, (0.03, 0.05, 0.07), 0.86, (1.36, 2.63, 3.22)),
    "diaper": PaperNumbers(100, 11731, (0.50, 0.58, 1.02), -0.47, (-0.87, -0.19, 1.26)),
    "bedding": PaperNumbers(100, 11459, (0.42, 1.34, 1.44), 2.81, (2.44, 3.19, 3.70)),
    "apparel": PaperNumbers(100, 10479, (0.88, 0.92, 0.93), 0.53, (0.78, 1.59, 2.23)),
    "bath": PaperNumbers(100, 10179, (2.50, 2.54, 2.59), -0.24, (2.22, 3.56, 4.23)),
    "toys": PaperNumbers(62, 7051, (1.76, 1.80, 1.83), 0.13, (1.01, 2.39, 4.30)),
    "health": PaperNumbers(62, 9839, (2.50, 2.54, 2.58), 1.37, (2.67, 5.36, 6.03)),
    "media": PaperNumbers(58, 4132, (2.37, 2.42, 2.49), -0.17, (0.44, 1.93, 2.77)),
    "strollers": PaperNumbers(40, 5175, (7.66, 7.77, 7.88), -0.07, (2.51, 5.35, 7.41)),
    "safety": PaperNumbers(36, 6224, (10.88, 11.05, 11.12), -0.13, (10.19, 16.53, 19.46)),
    "carseats": PaperNumbers(34, 5296, (8.06, 8.16, 8.31), 0.61, (3.40, 5.85, 8.28)),
    "furniture": PaperNumbers(32, 4965, (9.80, 9.89, 10.07), 0.23, (8.00, 10.47, 13.57)),
}
CATEGORIES = tuple(PAPER)
PAPER_RUNTIME_RATIO = 2.1  # runtime of K-Ascent divided by that of EM, average over the categories


@dataclass(frozen=True)
class Source:
    """Registries and random streams.

    Parameters
    ----------
    folder : Path or None
        Folder with the authors' files. None means generated registries.
    seed : int, default 0
        Seed of all splits, initial kernels and synthetic data.
    """

    folder: Path | None
    seed: int = 0

    @property
    def kind(self) -> str:
        return "generated" if self.folder is None else "original"

    def load(self, category: str) -> Baskets:
        """Return all registries of a category."""
        return _load(self, category)

    def split(self, category: str, trial: int) -> tuple[Baskets, Baskets]:
        """Return 70 % training and 30 % test registries. All experiments use the same split in the same trial."""
        return self.load(category).split(TRAIN_FRACTION, rng=self.rng("split", category, trial))

    def rng(self, *key: str | int) -> np.random.Generator:
        """Return an independent random stream for `key`, so that results do not depend on the order of trials."""
        return np.random.default_rng([self.seed, zlib.crc32(" ".join(map(str, key)).encode())])

    @property
    def authors_runs(self) -> dict[str, Path]:
        """Recorded runs of the authors' program by name, from the folder ../../reference/authors_runs."""
        if self.folder is None:
            return {}
        runs = self.folder.resolve().parent.parent / "reference" / "authors_runs"
        return {path.stem: path for path in sorted(runs.glob("*_*_*.npz"))}


@lru_cache(maxsize=20)
def _load(source: Source, category: str) -> Baskets:
    if source.folder is None:
        return make_registries(category, N_GENERATED, rng=source.rng("registries", category))
    return read_registry(*registry_files(source.folder, category))


def registry_files(folder: Path, category: str) -> tuple[Path, Path]:
    """Return the paths of the registries and of the item names of a category."""
    return folder / f"{PREFIX}{category}{SETS}", folder / f"{PREFIX}{category}{NAMES}"


def find_registries(data: Path | None = None) -> Path:
    """Return the folder with the authors' 26 files.

    Parameters
    ----------
    data : Path, optional
        Folder to use. By default data/registries in the working directory, then $DPPLEARN_SHARED/data/registries.

    Raises
    ------
    InputError
        If no folder has all files. The message says where the authors published them.
    """
    candidates = [data or Path("data/registries")]
    if data is None and (shared := os.environ.get("DPPLEARN_SHARED")):
        candidates.append(Path(shared) / "data" / "registries")
    for folder in candidates:
        if not missing_files(folder):
            return folder
    tried = " and ".join(f"{folder} ({len(missing_files(folder))} of 26 files are missing)" for folder in candidates)
    raise InputError(
        f"the registries of the paper were not found in {tried}.\nThe authors published them at {ARCHIVE},\n"
        f"folder `data`: {PREFIX}<category>{SETS} and {PREFIX}<category>{NAMES} for {', '.join(CATEGORIES)}.\n"
        "Put them into data/registries, name their folder with --data, or use generated registries with --generated."
    )


def missing_files(folder: Path) -> list[Path]:
    return [path for category in CATEGORIES for path in registry_files(folder, category) if not path.is_file()]


def read_registry(sets_path: Path, names_path: Path) -> Baskets:
    """Read the authors' files of one category.

    Parameters
    ----------
    sets_path : Path
        One registry per line: item numbers from 1, separated by commas.
    names_path : Path
        One item per line: `<number> <category>: <name>`.

    Returns
    -------
    Baskets
        The registries in the order of the file. The catalogue contains every named item.
    """
    names = _read_names(names_path)
    baskets = []
    for number, line in enumerate(sets_path.read_text(encoding="utf-8").splitlines(), start=1):
        tokens = line.split(",") if line.strip() else []
        try:
            items = [int(token) - 1 for token in tokens]
        except ValueError:
            raise InputError(
                f"line {number} of {sets_path} must be item numbers separated by commas, got {line!r}"
            ) from None
        if any(not 0 <= item < len(names) for item in items):
            raise InputError(
                f"item numbers must be between 1 and {len(names)}, line {number} of {sets_path} is {line!r}"
            )
        baskets.append(items)
    if not baskets:
        raise InputError(f"{sets_path} is empty")
    return Baskets.from_lists(baskets, items=names)


def _read_names(path: Path) -> list[str]:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("iso-8859-1")  # the file of the category media
    names = []
    # Not splitlines(): one name contains a character that splitlines() takes for a line end.
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        label, _, rest = line.partition(" ")
        _, separator, name = rest.partition(": ")
        if label != str(number) or not separator:
            raise InputError(f"line {number} of {path} must be '{number} <category>: <name>', got {line!r}")
        names.append(name.strip())
    return names


def off_diagonal_strength(registries: Baskets) -> float:
    """Return d = (1/N) ‖M‖_F / ‖diag M‖₂, where M holds the item and pair frequencies. [GKFT14, section 5.1]"""
    M = registries.pair_frequencies()
    return float(np.linalg.norm(M) / np.linalg.norm(M.diagonal()) / len(M))
