"""What is served, and how a new shelf takes the place of the old one."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.errors import InputError
from dpplearn.models.model import SetModel
from dpplearn.service.shelves import read_served
from dpplearn.tools.files import digest
from helpers.problems import random_mixture
from helpers.service import Client, answer_of, client, problem_of
from helpers.shelves import SHARES, three_categories, write_shelf


def other(seed: int = 9) -> SetModel:
    return dl.Mixture(random_mixture(2, 3, seed=seed), ["cot", "crib", "lamp"], nonempty=True)


def best(asks: Client, name: str = "sleep") -> float:
    found: float = answer_of(asks.post(f"/v1/models/{name}/recommend", json={"k": 1}))["items"][0]["probability"]
    return found


def metric(asks: Client, name: str) -> float:
    lines = asks.get("/metrics").text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name} "))


def test_recommended_items_are_counted_by_model(folder: Path) -> None:
    with client(folder) as asks:
        name = 'dpplearn_recommended_items_total{model="sleep"}'
        asks.post("/v1/models/sleep/recommend", json={"k": 2})
        assert metric(asks, name) == 2
        asks.post("/v1/models/sleep/recommend/batch", json={"rows": [{"basket": ["cot"], "k": 1}]})
        assert metric(asks, name) == 3
        found = answer_of(asks.post("/v1/recommend", json={"k": 3}))["items"]
        assert metric(asks, name) == 3 + sum(each["category"] == "sleep" for each in found)


def edit(folder: Path, slug: str, **changes: Any) -> None:
    """Change what the manifest says of a category."""
    manifest = json.loads((folder / "manifest.json").read_text())
    next(each for each in manifest["categories"] if each["slug"] == slug).update(changes)
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_shelf(tmp_path / "shelf", three_categories(), SHARES)


def test_a_replaced_shelf_is_served_and_what_has_not_changed_is_kept(folder: Path) -> None:
    with client(folder) as asks:
        before = asks.app.state.service.now
        other().save(folder / "sleep.safetensors")
        edit(folder, "sleep", sha256=digest(folder / "sleep.safetensors"))
        assert best(asks) == pytest.approx(max(three_categories()["sleep"].marginals()))
        asks.refresh()
        assert best(asks) == pytest.approx(max(other().marginals()))
        now = asks.app.state.service.now
        assert now.models["meals"].model is before.models["meals"].model
        assert now.version != before.version
        assert answer_of(asks.get("/v1/models/sleep"))["version"] == digest(folder / "sleep.safetensors")


def test_a_new_share_is_taken_over_with_the_same_model(folder: Path) -> None:
    with client(folder) as asks:
        edit(folder, "sleep", share=0.9)
        asks.refresh()
        assert answer_of(asks.get("/v1/models/sleep"))["share"] == 0.9
        shares = {**SHARES, "sleep": 0.9}
        expected = dl.Shelf.open(write_shelf(folder, three_categories(), shares)).recommend([], 1)[0]
        assert answer_of(asks.post("/v1/recommend", json={"k": 1}))["items"][0]["probability"] == expected.probability


def test_categories_come_and_go(folder: Path) -> None:
    with client(folder) as asks:
        models = three_categories()
        del models["wear"]
        write_shelf(folder, models | {"toys": other()}, {**SHARES, "toys": 0.5})
        asks.refresh()
        assert [each["name"] for each in answer_of(asks.get("/v1/models"))["models"]] == ["meals", "sleep", "toys"]
        problem_of(asks.get("/v1/models/wear"), 404)


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


def test_a_broken_new_model_leaves_the_old_one_serving_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with client(folder) as asks:
        before = best(asks)
        write_shelf(folder, three_categories() | {"sleep": other(), "meals": other()}, SHARES)
        spoil(folder / "sleep.safetensors")
        assert metric(asks, 'dpplearn_model_broken{model="sleep"}') == 0
        asks.refresh()
        assert best(asks) == before
        assert best(asks, "meals") == pytest.approx(max(other().marginals()))  # the others are new
        assert metric(asks, 'dpplearn_model_broken{model="sleep"}') == 1
        assert metric(asks, "dpplearn_shelf_refused") == 1
        assert answer_of(asks.get("/v1/models"))["broken"] == ["sleep"]
        assert any("SHA-256" in str(getattr(each, "fields", "")) for each in caplog.records)
        write_shelf(folder, three_categories() | {"sleep": other()}, SHARES)
        asks.refresh()
        assert best(asks) == pytest.approx(max(other().marginals()))
        assert metric(asks, "dpplearn_shelf_refused") == 0


def test_a_file_that_is_mended_is_seen_although_the_manifest_is_the_same(folder: Path) -> None:
    whole = (folder / "sleep.safetensors").read_bytes()
    spoil(folder / "sleep.safetensors")
    with client(folder) as asks:
        problem_of(asks.get("/v1/models/sleep"), 503)
        (folder / "sleep.safetensors").write_bytes(whole)
        asks.refresh()
        assert asks.get("/v1/models/sleep").status_code == 200


@pytest.mark.parametrize(
    "content", ["{", '{"kind": "shelf", "format": 1, "categories": 3}', '{"kind": "prepared"}', None]
)
def test_a_manifest_that_cannot_be_read_leaves_all_as_it_was(folder: Path, content: str | None) -> None:
    with client(folder) as asks:
        before = best(asks)
        if content is None:
            os.rename(folder, folder.with_name("gone"))
        else:
            (folder / "manifest.json").write_text(content)
        asks.refresh()
        assert best(asks) == before
        assert metric(asks, "dpplearn_shelf_refused") == 1


def test_only_files_of_the_folder_itself_are_loaded(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.safetensors"
    other().save(outside)
    edit(folder, "sleep", file="../outside.safetensors", sha256=digest(outside))
    assert "within" in read_served(folder).broken["sleep"]
    (folder / "link.safetensors").symlink_to(outside)
    edit(folder, "sleep", file="link.safetensors")
    assert "within" in read_served(folder).broken["sleep"]
    edit(folder, "sleep", file=str(outside))
    assert "within" in read_served(folder).broken["sleep"]


def test_nothing_pickled_is_ever_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "run",))

    (tmp_path / "trap.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError):
        read_served(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_model_of_numbers_that_are_none_is_not_served(tmp_path: Path) -> None:
    kernel = random_mixture(2, 3, seed=1)
    model = dl.Mixture(kernel, ["a", "b", "c"])
    object.__setattr__(model.law, "marginals", lambda *_: np.full(3, np.nan))
    from dpplearn.service.shelves import _warm

    object.__setattr__(model, "recommend", lambda *_: [dl.Recommendation("a", 1.0, float("nan"))])
    with pytest.raises(InputError):
        _warm(model)


@pytest.mark.parametrize("one", [True, False])
def test_a_folder_of_files_and_a_single_file_are_served_and_watched(tmp_path: Path, one: bool) -> None:
    for name, model in three_categories().items():
        model.save(tmp_path / f"{name}.safetensors")
    source = tmp_path / "sleep.safetensors" if one else tmp_path
    with client(source) as asks:
        names = [each["name"] for each in answer_of(asks.get("/v1/models"))["models"]]
        assert names == (["sleep"] if one else ["meals", "sleep", "wear"])
        other().save(tmp_path / "sleep.safetensors")
        asks.refresh()
        assert best(asks) == pytest.approx(max(other().marginals()))


def test_without_a_manifest_every_model_is_taken_at_its_word(tmp_path: Path) -> None:
    model = three_categories()["wear"]
    model.save(tmp_path / "wear.safetensors")
    with client(tmp_path) as asks:
        found = answer_of(asks.post("/v1/recommend", json={"basket": ["tie"]}))["items"]
        empty = answer_of(asks.post("/v1/recommend", json={}))["items"]
    alone = model.recommend(["tie"])
    assert [(each["item"], each["score"]) for each in found] == [
        (each.item, pytest.approx(each.score)) for each in alone
    ]
    assert [each["probability"] for each in empty] == pytest.approx([0.5, 0.4])


def test_a_new_shelf_is_noticed_by_itself(folder: Path) -> None:
    """The watch runs beside the answers; what fails in it does not end it."""
    with client(folder) as asks:
        current = asks.app.state.service.current
        looks: list[bool] = []

        def refresh() -> bool:
            looks.append(True)
            if len(looks) == 1:
                raise RuntimeError("once")
            return False

        async def watch() -> None:
            task = asyncio.create_task(current.watch(0.001))
            async with asyncio.timeout(10):
                while len(looks) < 3:
                    await asyncio.sleep(0.001)
            task.cancel()

        current.refresh = refresh
        asyncio.run(watch())
        assert "once" in current.failed
