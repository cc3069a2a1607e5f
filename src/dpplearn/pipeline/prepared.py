"""A prepared folder: its manifest and the baskets of each category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.readers import read_baskets
from dpplearn.errors import InputError
from dpplearn.utils.files import MANIFEST, OutputFolder, content_digest, digest
from dpplearn.utils.text import Facts, Part, Result, TextTable, count

FILES = "baskets-"  # prefix of the folder of the files
SIDES = ("train", "test")
PREPARED_FOLDER = OutputFolder("prepared", 2, "prepare")  # since format 2 the manifest records weights


@dataclass(frozen=True)
class PreparedFile:
    """The baskets of one category and side."""

    file: str  # within the folder
    sha256: str
    n_baskets: int
    weight: float  # of all its baskets


@dataclass(frozen=True)
class Category:
    """One category: its name, what it is called in files and addresses, its items, and its files by side.

    The sides are "train" and, where there is anything to test on, "test".
    """

    slug: str
    name: str
    items: tuple[Label, ...]
    weighted: bool
    files: Mapping[str, PreparedFile]

    @property
    def n_items(self) -> int:
        """Number of items that are kept."""
        return len(self.items)

    @property
    def n_baskets(self) -> dict[str, int]:
        """Numbers of training and of test sub-baskets."""
        return {side: self.files[side].n_baskets if side in self.files else 0 for side in SIDES}


@dataclass(frozen=True)
class Prepared(Result):
    """A folder that `prepare` wrote. `new` is whether it was written just now, and not found as it should be.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     orders = Path(folder) / "orders.csv"
    ...     _ = orders.write_text("basket,item\\n1,crib\\n1,bib\\n2,bib\\n")
    ...     made = dl.prepare(orders, Path(folder) / "out", min_products=1, min_count=1, min_items=2, train=1,
    ...                       min_baskets_per_item=1)
    ...     again = Prepared.open(Path(folder) / "out")
    ...     made.new, again.new, list(again.train("all")), again.test("all")
    (True, False, [('bib', 'crib'), ('bib',)], None)
    """

    folder: Path
    manifest: Mapping[str, Any]
    new: bool = False

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Prepared:
        """Read the manifest of a folder.

        Parameters
        ----------
        folder
            The folder that `prepare` wrote.

        Returns
        -------
        Prepared

        Examples
        --------
        >>> Prepared.open("nowhere")
        Traceback (most recent call last):
        ...
        dpplearn.errors.InputError: nowhere has no readable manifest.json; expected a folder that dpplearn prepare wrote
        """
        manifest = PREPARED_FOLDER.read(folder)
        if manifest.pop("digest", None) != content_digest(manifest):
            raise InputError(f"{Path(folder) / MANIFEST} is damaged; run prepare again")
        return cls(Path(folder), manifest)

    @property
    def categories(self) -> tuple[Category, ...]:
        """Categories that were kept, in the order of their names."""
        return tuple(
            Category(
                slug=each["slug"],
                name=each["name"],
                items=tuple(each["items"]),
                weighted=self.manifest["columns"]["weight"] is not None,
                files={side: PreparedFile(**entry) for side, entry in each["files"].items()},
            )
            for each in self.manifest["categories"]
        )

    def category(self, slug: str) -> Category:
        """One of them.

        Parameters
        ----------
        slug
            What it is called in files and addresses.

        Returns
        -------
        Category

        Examples
        --------
        >>> Prepared(Path("out"), {"categories": []}).category("toys")
        Traceback (most recent call last):
        ...
        dpplearn.errors.InputError: there is no category 'toys' in out; it has none
        """
        found = {each.slug: each for each in self.categories}
        if slug not in found:
            raise InputError(f"there is no category {slug!r} in {self.folder}; it has {', '.join(found) or 'none'}")
        return found[slug]

    def train(self, slug: str) -> Baskets:
        """The baskets of a category to learn from, over all its items.

        Parameters
        ----------
        slug
            The category.

        Returns
        -------
        Baskets
            In the order of their identifiers.

        Examples
        --------
        See the class.
        """
        found = self._baskets(slug, "train")
        assert found is not None  # a category without any is not kept
        return found

    def test(self, slug: str) -> Baskets | None:
        """The baskets of a category to test on, over all its items; None where there are none.

        Parameters
        ----------
        slug
            The category.

        Returns
        -------
        Baskets or None
            In the order of their identifiers.

        Examples
        --------
        See the class.
        """
        return self._baskets(slug, "test")

    def _baskets(self, slug: str, side: str) -> Baskets | None:
        category = self.category(slug)
        if side not in category.files:
            return None
        path = self.folder / category.files[side].file
        if not path.is_file():
            raise InputError(f"{path} is gone; the folder may have been prepared again since: open it again")
        weight = "weight" if category.weighted else None
        return read_baskets(path, basket="basket", item="item", weight=weight).over(Catalogue.of(category.items))

    def is_whole(self) -> bool:
        """Whether every file is there, as it was written.

        Returns
        -------
        bool

        Examples
        --------
        >>> Prepared(Path("out"), {"categories": []}).is_whole()
        True
        """
        paths = {self.folder / file.file: file.sha256 for each in self.categories for file in each.files.values()}
        return all(path.is_file() and digest(path) == known for path, known in paths.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as plain data for JSON."""
        found = {name: value for name, value in self.manifest.items() if name not in ("key", "kind", "format")}
        return {"folder": str(self.folder), "new": self.new, **found}

    def tables(self) -> Iterator[Part]:
        """Yield what was kept, what each rule dropped, the categories, and examples of bad rows."""
        report = self.manifest
        yield Facts("Prepared", [("folder", f"{self.folder}{'' if self.new else ' (unchanged)'}")])
        yield _dropped(report)
        kept = [
            (each.name, each.slug, *map(count, [each.n_items, *each.n_baskets.values()])) for each in self.categories
        ]
        columns = ["category", "name of its files", "items>", "train>", "test>"]
        yield TextTable("Categories", "Numbers of items, and of training and test baskets.", columns, kept)
        lost = list(report["lost_categories"].items())
        if lost:
            yield TextTable("Dropped categories", "", ["category", "rule"], lost)
        bad = []
        for each in report["bad_rows"]:
            examples = (f"line {row['line']} of {row['file']}" for row in each["examples"])
            bad.append((each["reason"], count(each["rows"]), "; ".join(examples)))
        if bad:
            yield TextTable("Bad rows", "", ["reason", "rows>", "examples"], bad)


def write_prepared(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of a prepared folder. Its digest shows whether it was changed afterwards."""
    PREPARED_FOLDER.write(folder, {**manifest, "digest": content_digest(manifest)})


def _dropped(report: Mapping[str, Any]) -> TextTable:
    """Return a table in which each row of the input is counted once."""
    names = ("rows", "baskets", "items", "categories")
    *lost, kept = report["account"]
    n_bad = sum(each["rows"] for each in report["bad_rows"])
    totals = [sum(each[name] for each in report["account"]) for name in names[1:]]
    rows = [("read", *map(count, (report["n_rows"], *totals))), ("bad rows", count(-n_bad), "", "", "")]
    rows += [(each["what"], *(count(-each[name]) for name in names)) for each in lost if any(map(each.get, names))]
    rows += [("kept", *(count(kept[name]) for name in names))]
    return TextTable("Rows that were dropped, by rule", "", ["", *(f"{name}>" for name in names)], rows)
