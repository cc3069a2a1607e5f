"""Which models are served, and how new versions replace them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import dpplearn as dl
from dpplearn.models.model import SetModel
from dpplearn.service.loader import read_store
from dpplearn.utils.files import digest
from helpers.problems import as_mixture, random_mixture
from helpers.service import Client, answer_of, problem_of
from helpers.stores import SHARES, edit_category, three_categories, write_models


def other(seed: int = 9) -> SetModel:
    return as_mixture(random_mixture(2, 3, seed=seed), ["cot", "crib", "lamp"], nonempty=True)


def best(asks: Client, name: str = "sleep") -> float:
    found: float = answer_of(asks.post(f"/v1/models/{name}/recommend", json={"k": 1}))["items"][0]["probability"]
    return found


def metric(asks: Client, name: str) -> float:
    lines = asks.get("/metrics").text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name} "))


def spoil(path: Path) -> bytes:
    """Damage a file, and return what it was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    return whole


def test_a_replaced_model_is_served_and_unchanged_models_are_kept(folder: Path) -> None:
    asks = Client(folder)
    before = asks.app.state.service.store.now
    other().save(folder / "sleep.safetensors")
    edit_category(folder, "sleep", sha256=digest(folder / "sleep.safetensors"), share=0.9)
    assert best(asks) == pytest.approx(max(three_categories()["sleep"].marginals()))
    asks.refresh()
    assert best(asks) == pytest.approx(max(other().marginals()))
    now = asks.app.state.service.store.now
    assert now.models["meals"].model is before.models["meals"].model
    assert now.version != before.version
    about = answer_of(asks.get("/v1/models/sleep"))
    assert (about["version"], about["share"]) == (digest(folder / "sleep.safetensors"), 0.9)
    expected = dl.ModelStore.open(folder).recommend([], 1)[0].probability
    assert answer_of(asks.post("/v1/recommend", json={"k": 1}))["items"][0]["probability"] == expected


def test_a_broken_new_model_leaves_the_old_one_serving(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    asks = Client(folder)
    before = best(asks)
    write_models(folder, three_categories() | {"sleep": other(), "meals": other()}, SHARES)
    whole = spoil(folder / "sleep.safetensors")
    assert metric(asks, 'dpplearn_model_broken{model="sleep"}') == 0
    asks.refresh()
    assert best(asks) == before
    assert best(asks, "meals") == pytest.approx(max(other().marginals()))  # the other models are new
    assert metric(asks, 'dpplearn_model_broken{model="sleep"}') == 1
    assert metric(asks, "dpplearn_store_refused") == 1
    assert answer_of(asks.get("/v1/models"))["broken"] == ["sleep"]
    assert any("SHA-256" in str(getattr(each, "fields", "")) for each in caplog.records)
    (folder / "sleep.safetensors").write_bytes(whole)  # under the same manifest
    asks.refresh()
    assert best(asks) == pytest.approx(max(other().marginals()))
    assert metric(asks, "dpplearn_store_refused") == 0


def test_a_model_file_that_is_broken_or_missing_is_served_once_it_is_there(folder: Path) -> None:
    (folder / "models").mkdir()  # as fit_all writes stores
    edit_category(folder, "sleep", file="models/sleep.safetensors")
    os.rename(folder / "sleep.safetensors", folder / "models/sleep.safetensors")
    whole = spoil(folder / "models/sleep.safetensors")
    asks = Client(folder)
    problem_of(asks.get("/v1/models/sleep"), 503)
    os.unlink(folder / "models/sleep.safetensors")
    asks.refresh()
    problem_of(asks.get("/v1/models/sleep"), 503)
    (folder / "models/sleep.safetensors").write_bytes(whole)
    asks.refresh()
    assert asks.get("/v1/models/sleep").status_code == 200


def test_categories_come_and_go(folder: Path) -> None:
    asks = Client(folder)
    models = three_categories()
    del models["wear"]
    write_models(folder, models | {"toys": other()}, {**SHARES, "toys": 0.5})
    asks.refresh()
    assert [each["name"] for each in answer_of(asks.get("/v1/models"))["models"]] == ["meals", "sleep", "toys"]
    problem_of(asks.get("/v1/models/wear"), 404)


def test_an_unreadable_manifest_changes_nothing(folder: Path) -> None:
    contents = ["{", '{"kind": "store", "format": 1, "categories": 3}', '{"kind": "prepared"}']
    asks = Client(folder)
    before = best(asks)
    for content in (*contents, None):
        if content is None:
            os.rename(folder, folder.with_name("gone"))
        else:
            (folder / "manifest.json").write_text(content)
        asks.refresh()
        assert best(asks) == before
        assert metric(asks, "dpplearn_store_refused") == 1


def test_only_sound_models_in_the_folder_itself_are_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder.with_name("run"),))

    trap, outside = folder.with_name("trap"), folder.with_name("outside.safetensors")
    trap.mkdir()
    (trap / "trap.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(dl.InputError):
        read_store(trap)
    assert not folder.with_name("run").exists()
    other().save(outside)
    (folder / "link.safetensors").symlink_to(outside)
    for file in ("../outside.safetensors", "link.safetensors", str(outside)):
        edit_category(folder, "sleep", file=file, sha256=digest(outside))
        assert list(read_store(folder).broken) == ["sleep"]
    monkeypatch.setattr(dl.DPP, "recommend", lambda *_: [dl.Recommendation("tie", 1.0, float("nan"))])
    assert set(read_store(folder).broken) == {"sleep", "wear"}


def test_an_unexpected_error_is_reported_and_the_next_change_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("once")

    asks = Client(folder)
    current = asks.app.state.service.store
    for share, failed in ((0.4, "RuntimeError: once"), (0.5, "")):
        with monkeypatch.context() as patch:
            if failed:
                patch.setattr("dpplearn.service.loader.read_store", fails)
            edit_category(folder, "sleep", share=share)
            asks.refresh()
        assert current.failed == failed


def test_a_folder_of_files_and_a_single_file_are_served_and_watched(tmp_path: Path) -> None:
    for names in (["sleep"], ["meals", "sleep", "wear"]):
        for name, model in three_categories().items():
            model.save(tmp_path / f"{name}.safetensors")
        asks = Client(tmp_path / "sleep.safetensors" if len(names) == 1 else tmp_path)
        assert [each["name"] for each in answer_of(asks.get("/v1/models"))["models"]] == names
        other().save(tmp_path / "sleep.safetensors")
        asks.refresh()
        assert best(asks) == pytest.approx(max(other().marginals()))
