"""Items that no basket has held, added to a model that is on a shelf."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.data.catalogue import Label
from dpplearn.models.new_items import Like
from dpplearn.pipeline.learning import saved_model
from dpplearn.pipeline.shelf import Shelf
from dpplearn.pipeline.shelf_files import clean, open_folder, write_shelf


def add_to_shelf(
    shelf: str | PathLike[str],
    category: str,
    labels: Iterable[Label],
    *,
    features: Any = None,
    like: Like | None = None,
) -> Shelf:
    """Add items to a model of a shelf, which is replaced in one go: whoever serves it takes it over.

    A run of `fit_all` that learns the category again forgets them, unless baskets hold them by then.

    Parameters
    ----------
    shelf
        The folder.
    category
        The slug of the category.
    labels, features, like
        As `with_items` of a model takes them.

    Returns
    -------
    Shelf
        As it is now.

    Examples
    --------
    >>> add_to_shelf("nowhere", "toys", ["ball"])
    Traceback (most recent call last):
    ...
    dpplearn.errors.InputError: nowhere holds no manifest.json; expected a folder that dpplearn fit-all wrote
    """
    folder = Path(shelf)
    Shelf.open(folder)
    with open_folder(folder) as now:
        assert now is not None
        more = now[now.category(category).slug].with_items(labels, features=features, like=like)
        file, version = saved_model(more, folder, category)
        changed = {"file": file, "sha256": version, "n_items": len(more.items)}
        entries = [{**each, **changed} if each["slug"] == category else each for each in now.manifest["categories"]]
        manifest = write_shelf(folder, {**now.manifest, "categories": entries}, now)
        clean(folder, manifest)
        return Shelf(folder, manifest)
