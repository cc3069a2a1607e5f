"""Model files: round trips, damaged and foreign files, failed and concurrent writes."""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from safetensors import safe_open
from safetensors.numpy import save as safetensors_bytes

import dpplearn
from dpplearn import DPP, Baskets, InputError, Mixture, load
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.models.model_file import file_content, read_file
from dpplearn.models.record import History, Provenance, Training
from helpers.strategies import models

KERNEL = SpectralDPP.from_L([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]])
MODEL = DPP(KERNEL, ["crib", "monitor", "bottle"], learned=Provenance("em", n_iter=17, log_likelihood=-1.5))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    MODEL.save(path)
    return path


def contents(model: DPP) -> Any:
    """Return all that a file keeps of a model, to the last bit."""
    arrays = model.distribution.arrays() | (model.training.arrays if model.training else {})
    bits = {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}
    return [(type(item), item) for item in model.items], model.learned, bits


@settings(max_examples=30)  # each example waits for the disk
@given(dpp=models())
def test_a_saved_model_is_loaded_as_it_was(dpp: DPP, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "m.safetensors"
    dpp.save(path)
    assert contents(load(path)) == contents(dpp)


HISTORY = History(*(np.array([-2.0, start, np.nan]) for start in (-1.0, 0.1, 1.0, 2.0, -4.0)))
BASKETS = Baskets.from_lists([[0, 1], [1, 2], [2], []], n_items=3, weights=[0.1, 2, 1 / 3, 1])
TRAINED = MODEL.with_record(MODEL.learned, Training.of(BASKETS, HISTORY))


@pytest.mark.parametrize("history", [None, HISTORY])
def test_training_counts_and_history_are_loaded_to_the_last_bit(history: History | None, tmp_path: Path) -> None:
    training = replace(Training.of(BASKETS, history), blend=0.2, least=2.0)
    dpp = MODEL.with_record(MODEL.learned, training)
    dpp.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert contents(again) == contents(dpp)
    assert ("history.seconds" in contents(dpp)[-1]) == (history is not None)
    assert again.training is not None
    assert (again.training.blend, again.training.least) == (0.2, 2)


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


DOCUMENT, FIELDS = ("items", "learned", "model"), ("log_mass", "log_empty")
WRONG: list[tuple[str | None, dict[str, Any]]] = [
    *((name, {name: np.array([value])}) for name in FIELDS for value in (np.inf, np.nan, 1e5, 1.0, -1e-3)),
    *((name, {name: wrong}) for name in FIELDS for wrong in (None, np.zeros(2), np.zeros((1, 1)), np.zeros(1, int))),
    *(("eigenvalues", {"eigenvalues": np.full(3, value)}) for value in (np.nan, np.inf, 1.1, -0.1, 1e300)),
    *(("eigenvectors", {"eigenvectors": value * KERNEL.eigenvectors}) for value in (2, np.nan, 1e300)),
    *((name, {name: None}) for name in ("eigenvalues", "eigenvectors")),
    ("eigen", {"eigenvalues": KERNEL.eigenvectors, "eigenvectors": KERNEL.eigenvalues}),
    *(("eigen", {"eigenvalues": value}) for value in (KERNEL.eigenvalues[:2], np.zeros(0), np.array([0, 1, 0]))),
    *(("weight", {"training.weight": np.array(value)}) for value in ([0.0], [np.nan], [np.inf], [], [[1.0]], [1])),
    ("weight", {"training.weight": None}),
    *(("item_weights", {"training.item_weights": value}) for value in (None, np.ones((3, 2)), np.ones(3, int))),
    *(("item|pairs", {"training.item_weights": np.ones(n)}) for n in (2, 4)),
    *(("item_weights", {"training.item_weights": np.full(3, value)}) for value in (np.nan, 100.0, -1.0)),
    *(("pair", {"training.pairs": np.zeros(shape, np.int32)}) for shape in ((1, 2), (2, 3))),
    *(("pairs", {"training.pairs": np.full((2, 2), value)}) for value in (3, -1, 0.5)),
    *(("pair_weights", {"training.pair_weights": value}) for value in (None, np.ones(1), np.ones((2, 1)))),
    *(("pair_weights", {"training.pair_weights": np.full(2, value)}) for value in (np.nan, -1.0)),
    *(("blend", {"training.blend": np.array([value])}) for value in (2.0, np.nan)),
    *(("seconds", {"history.seconds": value}) for value in (None, np.ones(2), np.ones(3, int))),
    *(("items", {"items": value}) for value in (["a", "b"], "abc", None, {"a": 1}, 3)),
    *(("item", {"items": value}) for value in (["a", "b", "a"], ["a", "b", 1.5], ["a", "b", ["c"]])),
    *(("learned", {"learned": value}) for value in ([1], None, "em", 3)),
    *((f"learned.{name}", {"learned": {name: value}}) for name, value in (
        ("learner", 3), ("n_iter", 1.5), ("n_iter", True), ("n_iter", "3"), ("nonempty", 1), ("log_likelihood", "low"),
        ("weight", 10**400), ("seconds", [1.0]), ("stop", {"a": 1}))),
    *(("model", {"model": value}) for value in ("quantum", None, ["DPP"], 3)),
    ("log_odds", {"model": "Mixture", "eigenvalues": None, "interaction": np.zeros((1, 3, 3))}),
    *((name, {name: ...}) for name in DOCUMENT),  # missing
    *((None, {name: nested(depth)}) for name in ("model", "items") for depth in (100, 800)),
    *((None, {"learned": {"learner": nested(depth)}}) for depth in (100, 800)),
]  # fmt: skip
WRONG_IN_MIXTURE: list[tuple[str, dict[str, Any]]] = [
    *(("log_odds", {"log_odds": value}) for value in (np.full((2, 2), np.nan), np.full((2, 2), 1e4))),
    *(("log_odds", {"log_odds": value}) for value in (np.zeros((2, 3)), np.zeros(2), np.zeros((2, 2), int), None)),
    *(("core|symmetric", {"core": value}) for value in (-np.eye(2)[None], np.full((1, 2, 2), np.nan), np.eye(2), None)),
    *(("factors", {"factors": value}) for value in (np.full((2, 2), np.inf), np.zeros((2, 3)), np.eye(2, dtype=int))),
    *(("log_empty", {"log_empty": np.full(2, value)}) for value in (np.inf, np.nan, 1.0)),
    ("log_mass", {"log_mass": np.zeros(2)}),
]
MIXTURE = Mixture.from_arrays([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], (np.eye(2), np.eye(2)))


@pytest.mark.parametrize(
    ("model", "field", "changes"),
    [*((TRAINED, *each) for each in WRONG), *((MIXTURE, *each) for each in WRONG_IN_MIXTURE)],
)
def test_an_invalid_value_with_a_valid_checksum_is_refused_by_name(
    model: DPP | Mixture, field: str | None, changes: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "m"
    model.save(path)
    arrays, document = read_file(path)
    arrays |= {name: value for name, value in changes.items() if name not in DOCUMENT}
    document |= {name: value for name, value in changes.items() if name in DOCUMENT}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    path.write_bytes(file_content(arrays, {name: value for name, value in document.items() if value is not ...}))
    with pytest.raises(InputError, match=field):
        load(path)


def test_the_file_is_ordinary_safetensors_and_names_the_versions_that_wrote_it(saved: Path) -> None:
    with safe_open(saved, framework="numpy") as file:
        assert set(file.keys()) == {"eigenvalues", "eigenvectors", "log_mass", "log_empty"}
        document = json.loads(file.metadata()["document"])
    assert document["items"] == ["crib", "monitor", "bottle"]
    assert document["model"] == "DPP"
    assert document["learned"] == MODEL.learned.to_dict()
    assert document["versions"] == {"dpplearn": dpplearn.__version__, "numpy": np.__version__}
    assert read_file(saved)[1] == document


def as_type(dtype: str, length: int) -> Callable[[bytes], bytes]:
    """Declare the first array as numbers of another type."""

    def damage(whole: bytes) -> bytes:
        end = 8 + int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:end])
        header["eigenvalues"] |= {"dtype": dtype, "shape": [length]}
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + whole[end:]

    return damage


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit in an array": lambda whole: whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:],
    "a renamed item": lambda whole: whole.replace(b"monitor", b"toaster"),
    "another version": lambda whole: whole.replace(np.__version__.encode(), b"9" * len(np.__version__)),
    "no checksum": lambda whole: whole.replace(b"sha256", b"sha257"),
    "no document": lambda whole: whole.replace(b'"document"', b'"documemt"'),
    "no kind": lambda whole: whole.replace(b'"kind"', b'"kinD"'),
    "a byte too long": lambda whole: whole + b"\0",
    "the first byte missing": lambda whole: whole[1:],
    "empty": lambda _: b"",
    "text": lambda _: b"crib,monitor\ncrib,bottle\n" * 20,
    "zeros": lambda whole: bytes(len(whole)),
    "format 1": lambda whole: whole.replace(b'"format":"2"', b'"format":"1"'),
    "a file of another program": lambda _: safetensors_bytes({"layer.0": np.zeros(2)}, metadata={"format": "pt"}),
    "a file without metadata": lambda _: safetensors_bytes({"layer.0": np.zeros(2)}),
    "two-byte numbers that numpy lacks": as_type("BF16", 12),
    "one-byte numbers that numpy lacks": as_type("F8_E4M3", 24),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_model_file_is_refused(kind: str, saved: Path) -> None:
    whole = saved.read_bytes()
    damaged = DAMAGE[kind](whole)
    assert damaged != whole
    saved.write_bytes(damaged)
    with pytest.raises(InputError, match=saved.name):
        load(saved)


def test_a_model_file_truncated_anywhere_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [*range(0, len(whole), 7), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"model.safetensors"):
            load(saved)


def test_a_whole_file_whose_document_is_no_object_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "{", "[1]", "3", "null", "[" * 100_000):
        with monkeypatch.context() as other:
            other.setattr(json, "dumps", lambda *_, text=text, **__: text)
            MODEL.save(tmp_path / "m")
        with pytest.raises(InputError):
            load(tmp_path / "m")


def test_what_json_does_not_have_is_not_saved(tmp_path: Path) -> None:
    for strange in (np.int64(3), np.zeros(2), object()):
        with pytest.raises(InputError):
            DPP(KERNEL, learned=Provenance(start=strange)).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(
    error: BaseException, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises((InputError, KeyboardInterrupt)):
        DPP(KERNEL).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_paths_that_are_no_file_are_refused(saved: Path) -> None:
    for path in (saved.parent / "none.safetensors", saved.parent):
        with pytest.raises(InputError, match=path.name):
            load(path)
    for path in (saved.parent / "none" / "m", saved / "m", saved.parent, saved.parent / ("m" * 300)):
        with pytest.raises(InputError, match=path.name):
            MODEL.save(path)
    assert list(saved.parent.iterdir()) == [saved]


def test_a_file_with_one_byte_changed_is_refused_or_gives_the_same_model(tmp_path: Path) -> None:
    """In the header, another digit does more harm than other bytes."""
    path, rng = tmp_path / "m", random.Random(1)
    TRAINED.save(path)
    whole, refused = path.read_bytes(), 0
    for _ in range(300):
        flipped = bytearray(whole)
        position = rng.randrange(len(whole))
        flipped[position] = rng.choice([flipped[position] ^ 1 << rng.randrange(8), rng.choice(b"0123456789")])
        path.write_bytes(flipped)
        try:
            assert contents(load(path)) == contents(TRAINED)
        except InputError:
            refused += 1
    assert refused > 150
