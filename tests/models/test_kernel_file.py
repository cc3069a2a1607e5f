"""The matrix of a model as a file for other programs, and back."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.kernel_file import items_file
from helpers.command import answer, both, run
from helpers.problems import random_kernel

NAMES = ['crib, oak "slim"', "cot", " night light ", "line\nend", "Größe\r\n7", "=1+1"]
PLAIN = ["crib", "cot", " night light", "12", "Größe 7", "x,y"]


def some_dpp(items: list[str] | None = None, seed: int = 0) -> dl.DPP:
    return dl.DPP(random_kernel(np.random.default_rng(seed)), items)


def written(folder: Path, text: str) -> Path:
    path = folder / "given.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("kind", ["K", "L"])
@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_what_is_written_comes_back_to_the_last_bit(tmp_path: Path, ending: str, kind: str) -> None:
    dpp = some_dpp(NAMES if ending == "csv" else PLAIN)
    files = dl.write_kernel(dpp, tmp_path / f"kernel.{ending}", kind)
    assert sorted(files) == sorted(tmp_path.iterdir())
    back = dl.read_kernel(files[0], kind)
    assert back.items == dpp.items
    np.testing.assert_allclose(back.kernel.K, dpp.kernel.K, atol=1e-13)
    if ending == "npy":
        matrix = np.load(files[0], allow_pickle=False)
    else:
        with open(files[0], encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert header == [kind, *NAMES]
        assert [row[0] for row in rows] == NAMES
        matrix = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_array_equal(matrix, getattr(dpp.kernel, kind))


def test_a_csv_file_says_which_kernel_it_holds_and_a_npy_file_is_not_guessed_at(tmp_path: Path) -> None:
    """A K read as L is a valid model, and another one."""
    dpp = some_dpp()
    for kind in ("K", "L"):
        (path,) = dl.write_kernel(dpp, tmp_path / f"{kind}.csv", kind)
        np.testing.assert_allclose(dl.read_kernel(path).kernel.K, dpp.kernel.K, atol=1e-13)
    with pytest.raises(dl.InputError, match="says that it holds K, but L was asked for"):
        dl.read_kernel(tmp_path / "K.csv", "L")
    dl.write_kernel(dpp, tmp_path / "kernel.npy")
    with pytest.raises(dl.InputError, match=r"kernel\.npy does not say whether it holds K or L"):
        dl.read_kernel(tmp_path / "kernel.npy")
    for call in (dl.write_kernel, lambda dpp, path, kind: dl.read_kernel(path, kind)):
        with pytest.raises(dl.InputError, match="'k'; expected K"):
            call(dpp, tmp_path / "kernel.npy", "k")


def test_numbered_items_come_back_as_numbers(tmp_path: Path) -> None:
    for ending in ("npy", "csv"):
        dl.write_kernel(some_dpp(), tmp_path / f"kernel.{ending}")
        assert dl.read_kernel(tmp_path / f"kernel.{ending}", "K").items == tuple(range(6))


def test_a_model_without_L_exports_K_and_says_so_of_L(tmp_path: Path) -> None:
    dpp = dl.DPP(dl.Kernel.from_K([[1.0, 0], [0, 0.5]]))
    with pytest.raises(dl.InputError, match=r"L does not exist.*--kernel K"):
        dl.write_kernel(dpp, tmp_path / "kernel.csv", "L")
    assert not list(tmp_path.iterdir())
    dl.write_kernel(dpp, tmp_path / "kernel.csv")
    assert dl.read_kernel(tmp_path / "kernel.csv").kernel.at_one.tolist() == [False, True]


def test_a_model_with_an_eigenvalue_near_one_comes_back_whole_through_K(tmp_path: Path) -> None:
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    dpp = dl.DPP(dl.Kernel(np.array([1e-9, 1e-6, 0.1, 0.5, 1 - 1e-9]), V))
    dl.write_kernel(dpp, tmp_path / "kernel.npy")
    back = dl.read_kernel(tmp_path / "kernel.npy", "K")
    np.testing.assert_allclose(back.kernel.eigenvalues, dpp.kernel.eigenvalues, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("0.5,0.1\n0.1,0.5\n", (0, 1)),
        ("0.5,0.1\r\n0.1,0.5", (0, 1)),
        ("a,b\n0.5,0.1\n0.1,0.5\n", ("a", "b")),
        ('"a, or b",0.5,0.1\n\nb,0.1,0.5\n', ("a, or b", "b")),
        (",a,b\na,0.5,0.1\nb,0.1,0.5\n", ("a", "b")),
        ("\ufeffitem,a,b\na,0.5,0.1\nb,0.1,0.5\n", ("a", "b")),
        (",7,3\n7,0.5,0.1\n3,0.1,0.5\n", (7, 3)),
        ("7,0.5,0.1\n3,0.1,0.5\n", (7, 3)),
        ("7,3\n0.5,0.1\n0.1,0.5\n", (7, 3)),
    ],
    ids="bare windows above left both bom numbers-both numbers-left numbers-above".split(),
)
def test_names_may_stand_above_to_the_left_both_or_nowhere(
    tmp_path: Path, text: str, items: tuple[object, ...]
) -> None:
    dpp = dl.read_kernel(written(tmp_path, text), "K")
    assert dpp.items == items
    np.testing.assert_allclose(dpp.kernel.K, [[0.5, 0.1], [0.1, 0.5]], atol=1e-15)


def test_a_single_item_in_every_form(tmp_path: Path) -> None:
    for text, item in (("0.25", 0), ("a\n0.25", "a"), ("a,0.25", "a"), ("K,a\na,0.25", "a")):
        dpp = dl.read_kernel(written(tmp_path, text), "K")
        assert (dpp.items, dpp.kernel.K.tolist()) == ((item,), [[0.25]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("K,a,b\na,0.5,oops\nb,0.1,0.5\n", r"line 2, column 3 of .*given\.csv holds 'oops'; expected a finite number"),
        ('K,"a\nz",b\n"a\nz",0.5,0.1\nb,nan,0.5\n', "line 5, column 2 of .* holds 'nan'"),
        ("oops,0.1\n0.1,0.5\n", "line 1, column 1 of .* holds 'oops'"),
        ("0.5,0.1\n0.1,\n", "line 2, column 2 of .* holds ''"),
        ("0.5,0.1\n0.1,0.5,0.2\n", "line 2 of .* has 3 fields between commas, but the first has 2"),
        ("0.5;0.1\n0.1;0.5\n", "line 2, column 1 of .* holds '0.1;0.5'"),
        ("0.5,0.1,0.2\n0.1,0.5,0.2\n", "2 rows and 3 columns; expected a square matrix"),
        ("0.5,0.1\n0.1,0.5\n0.1,0.1\n", "3 rows and 2 columns; expected a square matrix"),
        ("a,b,c,d\n0.5,0.1,0.2,0\n", "2 rows and 4 columns; expected a square matrix"),
        (",a,b\nb,0.5,0.1\na,0.1,0.5\n", "line 2 of .* is called 'b', but the column in its place 'a'"),
        ("K,a,a\na,0.5,0.1\na,0.1,0.5\n", "'a' stands twice"),
        ("0.5,0.1\n0.2,0.5\n", r"given\.csv: K is not symmetric: entries \(0, 1\) and \(1, 0\) differ by 0\.1"),
        ("0.1,0.5\n0.5,0.1\n", "K is not positive semidefinite: its smallest eigenvalue is below 0 by 0.4"),
        ("2,0\n0,0.5\n", "largest eigenvalue of K is 2, above 1"),
        ('K,"a\n', "line 1 of .* is not a line of CSV"),
        ("\n", "is empty"),
    ],
)
def test_a_bad_matrix_is_refused_and_the_place_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(dl.InputError, match=message):
        dl.read_kernel(written(tmp_path, text), "K")


def test_a_file_that_cannot_hold_a_kernel_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"run": 1}]), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.arange(3.0))
    np.save(tmp_path / "point.npy", np.array(1.0))
    np.save(tmp_path / "short.npy", np.eye(3))
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:-8])
    (tmp_path / "text.npy").write_text("0.5")
    (tmp_path / "latin.csv").write_bytes("Größe,0.5".encode("latin-1"))
    (tmp_path / "folder.csv").mkdir()
    refusals = {
        "objects.npy": "not a .npy file of numbers",
        "flat.npy": r"shape \(3,\); expected a square matrix",
        "point.npy": r"shape \(\); expected a square matrix",
        "short.npy": "not a .npy file of numbers",
        "text.npy": "not a .npy file of numbers",
        "missing.npy": "cannot be read: No such file",
        "missing.csv": "cannot be read: No such file",
        "latin.csv": "not UTF-8",
        "folder.csv": "cannot be read",
        "kernel.txt": r"must end in \.npy or \.csv",
    }
    for name, message in refusals.items():
        with pytest.raises(dl.InputError, match=message):
            dl.read_kernel(tmp_path / name, "K")
    with pytest.raises(dl.InputError, match=r"must end in \.npy or \.csv"):
        dl.write_kernel(some_dpp(), tmp_path / "kernel.npz")


def test_items_given_name_a_bare_matrix_replace_those_beside_a_npy_and_must_agree_with_a_csv(tmp_path: Path) -> None:
    letters = list("abcdef")
    dpp = some_dpp(PLAIN)
    npy, beside = dl.write_kernel(dpp, tmp_path / "kernel.npy")
    assert dl.read_kernel(npy, "K", letters).items == tuple(letters)
    beside.write_text("a\nb\n")
    with pytest.raises(dl.InputError, match=r"kernel_items\.txt names 2 items, but .* shape \(6, 6\)"):
        dl.read_kernel(npy, "K")
    beside.unlink()
    assert dl.read_kernel(npy, "K").items == tuple(range(6))
    with pytest.raises(dl.InputError, match="has 6 items, but items names 2"):
        dl.read_kernel(npy, "K", ["a", "b"])
    (named,) = dl.write_kernel(dpp, tmp_path / "kernel.csv")
    assert dl.read_kernel(named, items=PLAIN).items == dpp.items
    with pytest.raises(dl.InputError, match="names of its own"):
        dl.read_kernel(named, items=letters)
    with pytest.raises(dl.InputError, match=r"line end in it.*write a \.csv"):
        dl.write_kernel(some_dpp(NAMES), tmp_path / "lines.npy")
    assert not (tmp_path / "lines.npy").exists()


def test_the_commands_go_there_and_back(tmp_path: Path) -> None:
    dpp = some_dpp(PLAIN)
    dpp.save(tmp_path / "model.safetensors")
    for ending, kind in (("csv", "K"), ("npy", "L")):
        there, out = both("export", tmp_path / "model.safetensors", "-o", tmp_path / f"m.{ending}", "--kernel", kind)
        assert (there["kernel"], there["n_items"], there["note"]) == (kind, 6, "")
        assert f"{kind} of 6 items" in out
        how = [] if ending == "csv" else ["--kernel", kind]
        back = answer("import", tmp_path / f"m.{ending}", "-o", tmp_path / "back.safetensors", *how)
        assert (back["n_items"], back["rank"], back["named"]) == (6, 6, True)
        again = dl.load(tmp_path / "back.safetensors")
        assert again.items == dpp.items
        np.testing.assert_allclose(again.kernel.K, dpp.kernel.K, atol=1e-13)
    assert "one per line" in out
    assert there["files"] == [str(tmp_path / "m.npy"), str(items_file(tmp_path / "m.npy"))]
    (tmp_path / "letters.txt").write_text("a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n")
    how = ["--kernel", "L", "--items", tmp_path / "letters.txt"]
    answer("import", tmp_path / "m.npy", "-o", tmp_path / "back.safetensors", *how)
    assert dl.load(tmp_path / "back.safetensors").items == tuple("abcdef")


def test_the_commands_refuse_in_one_line(tmp_path: Path) -> None:
    dl.DPP(dl.Kernel.from_K([[1.0, 0], [0, 0.5]])).save(tmp_path / "certain.safetensors")
    refused = run("export", tmp_path / "certain.safetensors", "-o", tmp_path / "m.npy", "--kernel", "L")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "--kernel K" in refused.stderr
    for arguments, code in (
        (("export", tmp_path / "certain.safetensors", "-o", tmp_path / "m.json"), 1),
        (("export", tmp_path / "certain.safetensors", "-o", tmp_path / "m.npy", "--kernel", "M"), 2),
        (("import", written(tmp_path, "0.5"), "-o", tmp_path / "m.safetensors"), 1),
        (("import", tmp_path / "given.csv", "-o", tmp_path / "given.csv", "--kernel", "K"), 2),
    ):
        refused = run(*arguments)
        assert (refused.returncode, refused.stdout) == (code, "")
        assert "Traceback" not in refused.stderr
    assert not {"m.npy", "m.json", "m.safetensors"} & set(os.listdir(tmp_path))


def test_the_export_of_L_says_when_digits_are_lost(tmp_path: Path) -> None:
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    dl.DPP(dl.Kernel(np.array([0.1, 0.5, 1 - 1e-7]), V)).save(tmp_path / "m.safetensors")
    report = answer("export", tmp_path / "m.safetensors", "-o", tmp_path / "L.csv", "--kernel", "L")
    assert "few digits" in report["note"]


@pytest.mark.parametrize("largest", [0.9, 1 - 1e-7, 1.0], ids=["through L", "near 1", "at 1"])
def test_dppy_draws_from_the_same_law(largest: float) -> None:
    """By the counts of all subsets of five items."""
    from scipy.stats import chisquare

    V = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))[0]
    dpp = dl.DPP(dl.Kernel(np.array([0.0, 0.2, 0.4, 0.6, largest]), V), list("abcde"))
    theirs, state = dpp.to_dppy(), np.random.RandomState(0)
    counts = np.zeros(32)
    for _ in range(4000):
        counts[sum(2 ** int(i) for i in theirs.sample_exact(random_state=state))] += 1
    subsets = [[letter for place, letter in enumerate("abcde") if code >> place & 1] for code in range(32)]
    expected = 4000 * np.exp([dpp.log_prob(subset) for subset in subsets])
    common = expected > 5
    pooled = np.append(counts[common], counts[~common].sum()), np.append(expected[common], expected[~common].sum())
    assert chisquare(*pooled).pvalue > 1e-3
    uniform = np.full(len(pooled[0]), 4000 / len(pooled[0]))
    assert chisquare(pooled[0], uniform).pvalue < 1e-9  # the test can reject
    assert not counts[expected < 1e-9].any()


def test_without_dppy_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dppy.finite_dpps", None)
    with pytest.raises(dl.InputError, match="pip install dppy"):
        some_dpp().to_dppy()


@pytest.mark.parametrize("names", [["0012", "0345", "0777"], ["1.5", "2.5", "3.5"], ["nan", "inf", "1e5"]])
def test_names_that_look_like_numbers_come_back_as_they_were(names: list[str], tmp_path: Path) -> None:
    dpp = dl.DPP(dl.Kernel.from_L(np.diag([1.0, 2.0, 0.5]) + 0.1), names)
    dl.write_kernel(dpp, tmp_path / "k.csv")
    again = dl.read_kernel(tmp_path / "k.csv")
    assert again.items == tuple(names)
    np.testing.assert_allclose(again.kernel.K, dpp.kernel.K, atol=1e-15)


def test_a_kernel_of_float32_comes_back(tmp_path: Path) -> None:
    B = np.random.default_rng(0).standard_normal((50, 6))
    L = (B @ B.T).astype(np.float32)
    np.save(tmp_path / "scores.npy", L)
    found = dl.read_kernel(tmp_path / "scores.npy", "L").kernel.K
    assert np.abs(found - dl.Kernel.from_factor(B).K).max() < 50 * np.finfo(np.float32).eps * float(L.max())
