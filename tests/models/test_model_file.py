"""A model file gives back the model that was saved, or says why not; writing leaves the old file or the new."""

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
from dpplearn import DPP, Baskets, InputError, Kernel, load
from dpplearn.models.history import History
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.tools import tensor_file
from dpplearn.tools.tensor_file import read_tensors, write_tensors
from helpers.strategies import models

KERNEL = Kernel.from_L([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]])
MODEL = DPP(KERNEL, ["crib", "monitor", "bottle"], learned=Provenance("em", n_iter=17, log_likelihood=-1.5))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    MODEL.save(path)
    return path


def same(a: DPP, b: DPP) -> bool:
    """Equal to the last bit."""
    arrays = [(a.kernel.eigenvalues, b.kernel.eigenvalues), (a.kernel.eigenvectors, b.kernel.eigenvectors)]
    return (
        a.items == b.items
        and [type(item) for item in a.items] == [type(item) for item in b.items]
        and a.learned == b.learned
        and all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in arrays)
    )


@given(dpp=models())
def test_a_saved_model_is_loaded_as_it_was(dpp: DPP, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "m.safetensors"
    dpp.save(path)
    assert same(load(path), dpp)


def test_eigenvalues_of_exactly_zero_and_one_are_still_so_after_loading(tmp_path: Path) -> None:
    DPP(Kernel(np.array([0.0, 0.25, 1.0]), np.eye(3))).save(tmp_path / "m")
    assert load(tmp_path / "m").kernel.eigenvalues.tolist() == [0.0, 0.25, 1.0]


def test_infinite_figures_in_how_it_was_learned_survive(tmp_path: Path) -> None:
    DPP(KERNEL, learned=Provenance(shrinkage=1, log_likelihood=float("-inf"))).save(tmp_path / "m")
    assert load(tmp_path / "m").learned == Provenance(shrinkage=1, log_likelihood=float("-inf"))


def with_training(history: bool = True) -> DPP:
    baskets = Baskets.from_lists([[0, 1], [1, 2], [2], []], n_items=3, weights=[0.1, 2, 1 / 3, 1])
    columns = History(*(np.array([-2.0, start, np.nan]) for start in (-1.0, 0.1, 1.0, 2.0, -4.0)))
    return DPP(KERNEL, MODEL.items, learned=MODEL.learned, training=Training.of(baskets, columns if history else None))


@pytest.mark.parametrize("history", [False, True])
def test_what_a_model_was_learned_from_is_loaded_to_the_last_bit(history: bool, tmp_path: Path) -> None:
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


def test_a_learned_model_comes_back_with_its_training_and_history(tmp_path: Path) -> None:
    result = dpplearn.fit([["crib", "cot"], ["cot"], ["mat"], []], shrinkage=0.5, validation=0.3, rng=0, nonempty=False)
    result.dpp.save(tmp_path / "m")
    found = load(tmp_path / "m")
    assert same(found, result.dpp)
    assert found.training is not None
    assert found.training.history is not None
    for name, column in result.history.columns.items():
        np.testing.assert_array_equal(found.training.history.columns[name], column)
    dpplearn.fit([[0], [1]], shrinkage=1, nonempty=False).dpp.save(tmp_path / "m")
    assert load(tmp_path / "m").learned.shrinkage == 1


def test_a_file_without_training_is_a_model_without(saved: Path) -> None:
    assert load(saved).training is None


TAMPERED: dict[str, dict[str, Any]] = {
    "no weight": {"training.weight": np.zeros(1)},
    "a missing weight": {"training.weight": np.empty(0)},
    "items missing": {"training.item_weights": None},
    "items of another catalogue": {"training.item_weights": np.ones(4)},
    "items in two dimensions": {"training.item_weights": np.ones((3, 2))},
    "pairs of unknown items": {"training.pairs": np.full((2, 2), 3, np.int32)},
    "pairs of fractions": {"training.pairs": np.full((2, 2), 0.5)},
    "pairs without weights": {"training.pair_weights": np.ones(1)},
    "an unknown column of the history": {"history.mood": np.ones(3)},
    "a column of the history missing": {"history.seconds": None},
    "a column of the history shorter": {"history.seconds": np.ones(2)},
}


@pytest.mark.parametrize("tampered", TAMPERED)
def test_training_data_that_cannot_be_are_refused(tampered: str, tmp_path: Path) -> None:
    """In files whose checksum is right."""
    dpp, path = with_training(), tmp_path / "m"
    dpp.save(path)
    arrays, document = read_tensors(path, "model")
    arrays |= TAMPERED[tampered]
    write_tensors(path, "model", {name: array for name, array in arrays.items() if array is not None}, document)
    with pytest.raises(InputError):
        load(path)


def test_the_path_may_be_a_string_and_have_any_ending(tmp_path: Path) -> None:
    MODEL.save(str(tmp_path / "nursery"))
    assert same(load(str(tmp_path / "nursery")), MODEL)


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
    assert document["learned"] == MODEL.learned.to_dict()
    assert document["versions"] == {"dpplearn": dpplearn.__version__, "numpy": np.__version__}
    assert read_tensors(saved, "model")[1] == document


def change_document(whole: bytes) -> bytes:
    assert whole.count(b"monitor") == 1
    return whole.replace(b"monitor", b"toaster")


def change_version(whole: bytes) -> bytes:
    wrote = f'\\"numpy\\": \\"{np.__version__}'.encode()
    assert whole.count(wrote) == 1
    return whole.replace(wrote, wrote[:-1] + b"X")


def flip_in_tensors(whole: bytes) -> bytes:
    return whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]


def as_type(dtype: str, length: int) -> Callable[[bytes], bytes]:
    """The same bytes, with the first array declared as numbers of another type."""

    def damage(whole: bytes) -> bytes:
        end = 8 + int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:end])
        header["eigenvalues"] |= {"dtype": dtype, "shape": [length]}
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + whole[end:]

    return damage


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a bit of a tensor flipped": (flip_in_tensors, "was changed after it was written: its checksum does not match"),
    "an item renamed": (change_document, "was changed after it was written: its checksum does not match"),
    "a version renamed": (change_version, "was changed after it was written: its checksum does not match"),
    "without its checksum": (lambda whole: whole.replace(b"sha256", b"sha257"), "its checksum does not match"),
    "without its document": (lambda whole: whole.replace(b'"document"', b'"documemt"'), "its checksum does not match"),
    "a byte too long": (lambda whole: whole + b"\0", "is not a whole dpplearn model file"),
    "without its start": (lambda whole: whole[1:], "is not a whole dpplearn model file"),
    "empty": (lambda whole: b"", "is not a whole dpplearn model file"),
    "text": (lambda whole: b"crib,monitor\ncrib,bottle\n" * 20, "is not a whole dpplearn model file"),
    "zeros": (lambda whole: bytes(len(whole)), "is not a whole dpplearn model file"),
    "of no kind": (lambda whole: whole.replace(b'"kind"', b'"kinD"'), "is a safetensors file of another program"),
    "of two-byte numbers that numpy lacks": (as_type("BF16", 12), "is not a whole dpplearn model file"),
    "of one-byte numbers that numpy lacks": (as_type("F8_E4M3", 24), "is not a whole dpplearn model file"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_model_file_is_refused(kind: str, saved: Path) -> None:
    damage, said = DAMAGE[kind]
    whole = saved.read_bytes()
    assert damage(whole) != whole
    (saved.parent / "m.safetensors").write_bytes(damage(whole))
    with pytest.raises(InputError, match=said):
        load(saved.parent / "m.safetensors")


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


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.safetensors"):
        load(tmp_path / "none.safetensors")
    with pytest.raises(InputError):
        load(tmp_path)


ARRAYS = {"eigenvalues": KERNEL.eigenvalues, "eigenvectors": KERNEL.eigenvectors}
DOCUMENT = {"items": ["a", "b", "c"], "learned": {}}


@pytest.mark.parametrize(
    ("arrays", "document", "said"),
    [
        (ARRAYS, {**DOCUMENT, "items": ["a", "b"]}, r"3.*2"),
        (ARRAYS, {**DOCUMENT, "items": ["a", "b", "a"]}, "'a'"),
        (ARRAYS, {**DOCUMENT, "items": ["a", "b", 1.5]}, r"."),
        (ARRAYS, {**DOCUMENT, "items": "abc"}, "'abc'"),
        (ARRAYS, {**DOCUMENT, "items": None}, r"."),
        (ARRAYS, {**DOCUMENT, "learned": [1]}, r"."),
        (ARRAYS, {"learned": {}}, r"."),
        (ARRAYS, {"items": ["a", "b", "c"]}, r"."),
        ({"eigenvalues": KERNEL.eigenvalues}, DOCUMENT, r"."),
        ({}, DOCUMENT, r"."),
        ({**ARRAYS, "eigenvalues": np.array([0.5, 0.5])}, DOCUMENT, r"."),
        ({**ARRAYS, "eigenvalues": np.array([0.5, 0.5, 1.1])}, DOCUMENT, r"."),
        ({**ARRAYS, "eigenvalues": np.array([0.5, 0.5, np.nan])}, DOCUMENT, r"."),
        ({**ARRAYS, "eigenvectors": 2 * KERNEL.eigenvectors}, DOCUMENT, r"."),
        ({**ARRAYS, "eigenvectors": np.full((3, 3), np.nan)}, DOCUMENT, r"."),
    ],
)
def test_a_whole_file_that_holds_no_model_is_refused(
    arrays: dict[str, Any], document: dict[str, Any], said: str, tmp_path: Path
) -> None:
    write_tensors(tmp_path / "m", "model", arrays, document)
    with pytest.raises(InputError, match=f"{said}"):
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


def test_a_file_names_the_family_of_its_kernel(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m")
    assert read_tensors(tmp_path / "m", "model")[1]["family"] == "symmetric"


def test_a_file_of_a_family_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "m", "model", ARRAYS, {**DOCUMENT, "family": "quantum"})
    with pytest.raises(InputError, match=r"kernels.*'quantum'"):
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
    ("error", "raised", "said"),
    [
        (FULL, InputError, r"model.safetensors"),
        (OSError("odd"), InputError, r"model.safetensors"),
        (KeyboardInterrupt(), KeyboardInterrupt, r"."),
    ],
)
def test_when_writing_fails_the_old_file_is_whole_and_nothing_else_is_left(
    call: str,
    error: BaseException,
    raised: type[BaseException],
    said: str,
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = saved.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing(error))
        with pytest.raises(raised, match=said):
            DPP(KERNEL).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
    assert same(load(saved), MODEL)


def test_when_the_first_writing_fails_no_file_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing(FULL))
        with pytest.raises(InputError):
            MODEL.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_sees_the_old_model_or_the_new_while_it_is_written(saved: Path) -> None:
    large = DPP(Kernel(np.full(200, 0.5), np.eye(200)))
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


def test_a_path_that_can_be_no_file_is_refused(saved: Path) -> None:
    for path, said in (
        (saved.parent / "none" / "m", "there is no folder"),
        (saved / "m", "Not a directory"),
        (saved.parent, "it is a folder; name a file"),
        (saved.parent / ("m" * 300), "File name too long"),
    ):
        with pytest.raises(InputError, match=f"{said}"):
            MODEL.save(path)
    assert list(saved.parent.iterdir()) == [saved]


@settings(max_examples=200)
@given(content=st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: b"\x10" + bytes(7) + tail))
def test_random_bytes_are_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load(path)


def test_a_file_with_one_byte_changed_is_refused_or_gives_the_same_model(saved: Path) -> None:
    whole = saved.read_bytes()
    rng = random.Random(0)
    refused = 0
    for position in range(len(whole)):  # in the header, a letter or a digit does more harm than other bytes
        byte = rng.choice([rng.randrange(256), rng.randrange(32, 127), rng.choice(b"0123456789")])
        saved.write_bytes(whole[:position] + bytes([byte]) + whole[position + 1 :])
        try:
            assert same(load(saved), MODEL)
        except InputError:
            refused += 1
    assert refused > len(whole) / 2


def test_a_learned_model_with_one_bit_flipped_is_refused_or_the_same(tmp_path: Path) -> None:
    """A sample of flips in all parts of a file that keeps its training data and its history."""
    path, dpp, rng = tmp_path / "m", with_training(), random.Random(1)
    dpp.save(path)
    whole, before = path.read_bytes(), read_tensors(path, "model")
    refused = 0
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
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
    assert refused > 200


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.safetensors", tmp_path / "link.safetensors"
    link.symlink_to(target)
    DPP(Kernel.from_K([[0.5]])).save(link)
    assert link.is_symlink()
    assert load(target).marginals() == pytest.approx(0.5)
