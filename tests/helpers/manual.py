"""The pages of the manual: their blocks of code, and a folder in which these run as they stand."""

from __future__ import annotations

import doctest
import io
import json
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import urlsplit
from urllib.request import Request

import pandas as pd

import dpplearn as dl
from dpplearn.data.catalogue import Catalogue
from helpers import command
from helpers.service import Client
from helpers.stores import write_models

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$", re.M | re.S)

# What short examples of the manual are about, in the place of generated names.
SHORT = {"Willow video monitor": "crib", "Hazel video monitor": "cot", "Teasel movement monitor": "monitor"}


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(found[2], found[3], text[: found.start()].count("\n") + 1) for found in FENCE.finditer(text)]


def calls(block: Block) -> list[list[str]]:
    """The commands of a block for a shell, without their comments."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def registries(n: int, seed: int) -> dl.Baskets:
    """Of few items, which are learned sooner."""
    found = dl.datasets.make_registries("safety", n, rng=seed)
    names = [SHORT.get(str(item), item) for item in found.items]
    whole = dl.Baskets(found.indices, found.offsets, found.weights, Catalogue.of(names))
    return whole.of_items([name for number, name in enumerate(names) if name in SHORT.values() or number % 2])


def write_files(folder: Path) -> dict[str, Any]:
    """What pages speak of: tables, models; and the names that their Python has."""
    orders, new = registries(300, 0), registries(60, 1)
    for name, baskets in {"orders": orders, "new": new, "test": new}.items():
        pd.DataFrame(baskets.to_table()).to_csv(folder / f"{name}.csv", index=False)
    renamed = {"basket": "order_id", "item": "product"}
    pd.DataFrame(orders.to_table()).rename(columns=renamed).to_parquet(folder / "orders.parquet")
    train, test = orders.split(0.7, rng=0)
    fit = dl.fit(train, segments=2, max_iter=30, rng=0)
    dpp = dl.fit_dpp(train, shrinkage=0.1, max_iter=30, rng=0).model
    for name, model in {"model": fit.model, "other": fit.model, "dpp": dpp}.items():
        model.save(folder / f"{name}.safetensors")
    write_models(folder / "served", {"safety": fit.model}, {"safety": 0.5})
    data = {"baskets": orders, "train": train, "test": test}
    return {"dl": dl, **data, "fit": fit, "model": fit.model, "mixture": fit.model, "dpp": dpp}


def write_raw_orders(folder: Path) -> None:
    """Orders of two categories, in two files, and baskets to recommend for."""
    tables = []
    for number, category in enumerate(("strollers", "toys")):
        table = pd.DataFrame(dl.datasets.make_registries(category, 6000, rng=number).to_table())
        tables.append(table.drop(columns="weight").assign(category=category))
    orders = pd.concat(tables).rename(columns={"basket": "order_id", "item": "product"})
    (folder / "orders").mkdir()
    for half in (0, 1):
        orders[orders["order_id"] % 2 == half].to_parquet(folder / "orders" / f"{half}.parquet")
    some = orders[orders["order_id"] < 50].rename(columns={"order_id": "basket", "product": "item"})
    some.to_parquet(folder / "baskets.parquet")


@contextmanager
def served(shelf: Path) -> Iterator[None]:
    """Whatever is asked of an address by urllib, a service in this process answers."""
    service = Client(shelf)

    def answer(request: Request) -> io.BytesIO:
        response = service.post(urlsplit(request.full_url).path, json=json.loads(request.data or b""))
        assert response.status_code == 200, response.text
        return io.BytesIO(response.content)

    with patch("urllib.request.urlopen", answer):
        yield


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    """As it stands; of a session with prompts, what it prints must be what is shown."""
    place = f"{page.name}, block of line {block.line}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.InputWarning)  # of data as small as these
        if block.text.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(block.text, dict(names), place, place, block.line)
            assert doctest.DocTestRunner().run(session).failed == 0
        else:
            exec(compile("\n" * block.line + block.text, place, "exec"), names)


def run_call(words: list[str]) -> None:
    """A call of the program, in this process."""
    assert words[0] == "dpplearn", f"{shlex.join(words)} is not a call of the program: mark the block as console"
    done = command.run(*words[1:])
    assert done.returncode == 0, f"{shlex.join(words)} ended with {done.returncode}: {done.stderr}"
