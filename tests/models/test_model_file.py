"""Model files: round trips, damaged and foreign files, failed and concurrent writes."""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save as safetensors_bytes

import dpplearn
from dpplearn import DPP, Baskets, InputError, load
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.models.history import History
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools import tensor_file
from dpplearn.tools.tensor_file import read_tensors, write_tensors
from helpers.strategies import models

KERNEL = SpectralDPP.from_L([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]])
MODEL = DPP(KERNEL, ["crib", "monitor", "bottle"], learned=Provenance("em", n_iter=17, log_likelihood=-1.5))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    MODEL.save(path)
    return path


def same(a: DPP, b: DPP) -> bool:
    """Return whether two models are equal to the last bit."""
    arrays = [(a.kernel.eigenvalues, b.kernel.eigenvalues), (a.kernel.eigenvectors, b.kernel.eigenvectors)]
    return (
        a.items == b.items
        and [type(item) for item in a.items] == [type(item) for item in b.items]
        and a.learned == b.learned
        and all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in arrays)
    )


@settings(max_examples=30)  # each example waits for the disk
@given(dpp=models())
def test_a_saved_model_is_loaded_as_it_was(dpp: DPP, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "m.safetensors"
    dpp.save(path)
    assert same(load(path), dpp)


def test_eigenvalues_of_exactly_zero_and_one_are_still_so_after_loading(tmp_path: Path) -> None:
    DPP(SpectralDPP(np.array([0.0, 0.25, 1.0]), np.eye(3))).save(str(tmp_path / "m"))
    found = load(str(tmp_path / "m"))
    assert found.kernel.eigenvalues.tolist() == [0.0, 0.25, 1.0]
    assert found.training is None


def with_training(history: bool = True) -> DPP:
    baskets = Baskets.from_lists([[0, 1], [1, 2], [2], []], n_items=3, weights=[0.1, 2, 1 / 3, 1])
    columns = History(*(np.array([-2.0, start, np.nan]) for start in (-1.0, 0.1, 1.0, 2.0, -4.0)))
    return DPP(KERNEL, MODEL.items, learned=MODEL.learned, training=Training.of(baskets, columns if history else None))


@pytest.mark.parametrize("history", [False, True])
def test_training_counts_and_history_are_loaded_to_the_last_bit(history: bool, tmp_path: Path) -> None:
    dpp = with_training(history)
    dpp.save(tmp_path / "m")
    found = load(tmp_path / "m")
    assert same(found, dpp)
    assert dpp.training is not None
    assert found.training is not None
    assert found.training.weight == dpp.training.weight
    arrays = [
        (getattr(found.training, name), getattr(dpp.training, name))
        for name in ("item_weights", "pairs", "pair_weights")
    ]
    assert (found.training.history is not None) == history
    if found.training.history is not None and dpp.training.history is not None:
        arrays += zip(found.training.history.columns.values(), dpp.training.history.columns.values(), strict=True)
    for here, there in arrays:
        assert (here.dtype, here.shape, here.tobytes()) == (there.dtype, there.shape, there.tobytes())


TAMPERED: list[dict[str, Any]] = [
    *({"training.weight": wrong} for wrong in (np.zeros(1), np.array([np.nan]), np.array([np.inf]), np.empty(0))),
    {"training.item_weights": None},
    *({"training.item_weights": wrong} for wrong in (np.ones(4), np.ones((3, 2)), np.array(1.0))),
    *({"training.item_weights": np.full(3, wrong)} for wrong in (np.nan, 100.0, -1.0)),
    *({"training.pairs": np.zeros(shape, np.int32)} for shape in ((1, 2), (2, 3))),
    *({"training.pairs": np.full((2, 2), wrong, np.int32)} for wrong in (3, -1)),
    {"training.pairs": np.full((2, 2), 0.5)},
    *({"training.pair_weights": wrong} for wrong in (np.ones(1), np.ones((2, 1)), np.array(1.0))),
    *({"training.pair_weights": np.full(2, wrong)} for wrong in (np.nan, -1.0)),
    {"history.mood": np.ones(3)},
    *({"history.seconds": wrong} for wrong in (None, np.ones(2), np.ones((3, 1)))),
]


@pytest.mark.parametrize("tampered", TAMPERED, ids=str)
def test_invalid_training_data_with_a_valid_checksum_are_refused(tampered: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m"
    with_training().save(path)
    arrays, document = read_tensors(path, "model")
    changed = {name: array for name, array in {**arrays, **tampered}.items() if array is not None}
    write_tensors(path, "model", changed, document)
    with pytest.raises(InputError):
        load(path)


def test_a_loaded_kernel_cannot_be_written_to(saved: Path) -> None:
    kernel = load(saved).kernel
    for array in (kernel.eigenvalues, kernel.eigenvectors):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_the_file_is_ordinary_safetensors_and_names_the_versions_that_wrote_it(saved: Path) -> None:
    with safe_open(saved, framework="numpy") as file:
        assert set(file.keys()) == {"eigenvalues", "eigenvectors"}
        document = json.loads(file.metadata()["document"])
    assert document["items"] == ["crib", "monitor", "bottle"]
    assert document["family"] == "symmetric"
    assert document["learned"] == MODEL.learned.to_dict()
    assert document["versions"] == {"dpplearn": dpplearn.__version__, "numpy": np.__version__}
    assert read_tensors(saved, "model")[1] == document


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


def test_a_safetensors_file_of_another_program_is_refused(tmp_path: Path) -> None:
    weights = {"layer.0": np.zeros((2, 2), np.float32)}
    for metadata in (None, {"format": "pt"}):
        (tmp_path / "other.safetensors").write_bytes(safetensors_bytes(weights, metadata=metadata))
        with pytest.raises(InputError):
            load(tmp_path / "other.safetensors")


def test_a_file_of_a_newer_format_asks_for_an_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(tensor_file, "FORMAT_VERSION", 2)
        newer.setattr(tensor_file, "__version__", "9.9")
        MODEL.save(tmp_path / "m")
    with pytest.raises(InputError, match=r"2.*9\.9"):
        load(tmp_path / "m")


ARRAYS = {"eigenvalues": KERNEL.eigenvalues, "eigenvectors": KERNEL.eigenvectors}
DOCUMENT = {"items": ["a", "b", "c"], "learned": {}}


@pytest.mark.parametrize(
    ("arrays", "document"),
    [
        *(
            (ARRAYS, {**DOCUMENT, "items": items})
            for items in (["a", "b"], ["a", "b", "a"], ["a", "b", 1.5], "abc", None)
        ),
        (ARRAYS, {**DOCUMENT, "learned": [1]}),
        (ARRAYS, {**DOCUMENT, "family": "quantum"}),
        (ARRAYS, {"learned": {}}),
        (ARRAYS, {"items": ["a", "b", "c"]}),
        ({"eigenvalues": KERNEL.eigenvalues}, DOCUMENT),
        ({}, DOCUMENT),
        *(({**ARRAYS, "eigenvalues": np.array([0.5, 0.5, *more])}, DOCUMENT) for more in ([], [1.1], [np.nan])),
        ({**ARRAYS, "eigenvectors": 2 * KERNEL.eigenvectors}, DOCUMENT),
        ({**ARRAYS, "eigenvectors": np.full((3, 3), np.nan)}, DOCUMENT),
    ],
)
def test_a_file_with_a_valid_checksum_that_holds_no_model_is_refused(
    arrays: dict[str, Any], document: dict[str, Any], tmp_path: Path
) -> None:
    write_tensors(tmp_path / "m", "model", arrays, document)
    with pytest.raises(InputError):
        load(tmp_path / "m")


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "null"])
def test_a_whole_file_whose_document_is_no_object_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(json, "dumps", lambda *_, **__: text)
        MODEL.save(tmp_path / "m")
    with pytest.raises(InputError):
        load(tmp_path / "m")


def test_a_file_from_before_families_had_names_still_loads(tmp_path: Path) -> None:
    learned = {"learner": "em", "shrinkage": 0.5, "something of a later version": 3}
    write_tensors(tmp_path / "m", "model", ARRAYS, {"items": ["a", "b", "c"], "learned": learned})
    dpp = load(tmp_path / "m")
    assert dpp.items == ("a", "b", "c")
    assert dpp.learned == Provenance(learner="em", shrinkage=0.5)
    np.testing.assert_array_equal(dpp.kernel.eigenvectors, ARRAYS["eigenvectors"])


@pytest.mark.parametrize("strange", [np.int64(3), np.zeros(2), object()])
def test_what_json_does_not_have_is_not_saved(strange: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        DPP(KERNEL, learned=Provenance(start=strange)).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(FULL, InputError), (OSError("odd"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(
    call: str, error: BaseException, raised: type[BaseException], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing(error))
        for path in (saved, saved.parent / "new"):
            with pytest.raises(raised):
                DPP(KERNEL).save(path)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_reader_sees_the_old_model_or_the_new_while_it_is_written(saved: Path) -> None:
    large = DPP(SpectralDPP(np.full(200, 0.5), np.eye(200)))
    done = threading.Event()

    def write() -> None:
        for number in range(30):
            (large if number % 2 else MODEL).save(saved)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(len(load(saved).items))
    writer.join()
    assert seen == {3, 200}


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m")
    (tmp_path / "other").touch()
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Without the rights of root, to whom every folder is open."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_to_is_named(saved: Path) -> None:
    saved.parent.chmod(0o555)
    try:
        with as_ordinary_user(), pytest.raises(InputError, match=r"m.safetensors"):
            MODEL.save(saved.parent / "m.safetensors")
    finally:
        saved.parent.chmod(0o755)
    assert list(saved.parent.iterdir()) == [saved]


def test_paths_that_are_no_file_are_refused(saved: Path) -> None:
    for path in (saved.parent / "none.safetensors", saved.parent):
        with pytest.raises(InputError, match=path.name):
            load(path)
    for path in (saved.parent / "none" / "m", saved / "m", saved.parent, saved.parent / ("m" * 300)):
        with pytest.raises(InputError, match=path.name):
            MODEL.save(path)
    assert list(saved.parent.iterdir()) == [saved]


@settings(max_examples=200)
@given(content=st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: b"\x10" + bytes(7) + tail))
def test_random_bytes_are_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load(path)


def test_a_file_with_one_byte_changed_is_refused_or_gives_the_same_model(tmp_path: Path) -> None:
    """In the header, another digit does more harm than other bytes."""
    path, dpp, rng = tmp_path / "m", with_training(), random.Random(1)
    dpp.save(path)
    whole, before = path.read_bytes(), read_tensors(path, "model")
    refused = 0
    for _ in range(300):
        flipped = bytearray(whole)
        position = rng.randrange(len(whole))
        flipped[position] = rng.choice([flipped[position] ^ 1 << rng.randrange(8), rng.choice(b"0123456789")])
        path.write_bytes(flipped)
        try:
            assert same(load(path), dpp)
            arrays, document = read_tensors(path, "model")
        except InputError:
            refused += 1
            continue
        assert document == before[1]
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: array.tobytes() for name, array in before[0].items()
        }
    assert refused > 150


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.safetensors", tmp_path / "link.safetensors"
    link.symlink_to(target)
    DPP.from_K([[0.5]]).save(link)
    assert link.is_symlink()
    assert load(target).marginals() == pytest.approx(0.5)
