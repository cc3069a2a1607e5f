"""A command replaces an existing file only if that has the type of its output, or with --force."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
import typer

import dpplearn as dl
from dpplearn.cli.app import COMMANDS, program
from helpers.command import run

BASKETS = ("a", "b", "c", "ab", "bc", "ac", "ab", "abc") * 5
ORDERS = "basket,item\n" + "".join(f"{number},{item}\n" for number, items in enumerate(BASKETS) for item in items)
QUICK_FIT = ("--model", "dpp", "--max-iter", "1", "--seed", "0", "-q")
RULES = ("--min-size", "1", "--min-count", "1", "--min-items", "2", "--min-baskets-per-item", "1", "-q")


class Call(NamedTuple):
    """The arguments of a command before -o, and the name of its output.

    {model} and the like are files that the command reads. A folder command writes `file` into the folder `output`.
    """

    arguments: tuple[str, ...]
    output: str = "out"
    file: str | None = None


RECOMMEND = ("recommend", "{model}", "--baskets", "{data}", "-q")
CALLS = {
    "fit": Call(("fit", "{data}", *QUICK_FIT)),
    "update": Call(("update", "{model}", "{data}", "--seed", "0", "-q")),
    "add-items": Call(("add-items", "{model}", "toy")),
    **{f"recommend {ending}": Call(RECOMMEND, f"out.{ending}") for ending in ("csv", "parquet", "jsonl")},
    "score csv": Call(("score", "{model}", "{data}", "-q"), "out.csv"),
    "score parquet": Call(("score", "{model}", "{data}", "-q"), "out.parquet"),
    "plot png": Call(("plot", "{model}", "sizes", "-q"), "out.png"),
    "plot svg": Call(("plot", "{model}", "sizes", "-q"), "out.svg"),
    "prepare": Call(("prepare", "{data}", *RULES), "folder", "manifest.json"),
    "fit-all": Call(("fit-all", "{prepared}", *QUICK_FIT, "--processes", "1"), "folder", "manifest.json"),
}


class Inputs(NamedTuple):
    """Files that commands read, and foreign files."""

    sound: dict[str, Path]
    damaged: dict[str, Path]
    foreign: dict[str, Path]  # what a user may have at the output path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    home = tmp_path_factory.mktemp("inputs")
    names = {"data": "data.csv", "model": "m", "prepared": "prepared"}
    sound, damaged = ({key: home / state / name for key, name in names.items()} for state in ("sound", "damaged"))
    for paths in (sound, damaged):
        paths["data"].parent.mkdir()
    sound["data"].write_text(ORDERS)
    dl.fit_dpp(dl.read_baskets(sound["data"]), rng=0, max_iter=1, shrinkage=0).model.save(sound["model"])
    dl.prepare(sound["data"], sound["prepared"], min_products=1, min_count=1, min_items=2, min_baskets_per_item=1)
    shutil.copytree(sound["prepared"], damaged["prepared"])
    for path in damaged["prepared"].rglob("*.parquet"):
        path.write_text("damaged")
    for key in names.keys() - {"prepared"}:
        damaged[key].write_text("damaged")
    foreign = {name: home / name for name in ("orders.csv", "orders.parquet", "notes.txt")}
    foreign["orders.csv"].write_text("basket,item,rank\n1,crib,1\n1,cot,2\n")
    foreign["notes.txt"].write_text("Call the supplier on Monday.\n")
    duckdb.sql(f"COPY (SELECT 1 AS basket, 'crib' AS item) TO '{foreign['orders.parquet']}' (FORMAT parquet)")
    return Inputs(sound, damaged, foreign)


def content(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def place(call: Call, foreign: Path, folder: Path) -> Path:
    """Put the foreign file where the command writes, and return what to pass as --output."""
    output = folder / call.output
    if call.file is not None:
        output.mkdir()
    shutil.copy(foreign, output if call.file is None else output / call.file)
    return output


def arguments(call: Call, files: dict[str, Path], output: Path) -> list[str]:
    return [*(each.format(**files) for each in call.arguments), "-o", str(output)]


@pytest.mark.parametrize("name", CALLS)
def test_a_foreign_file_is_kept_and_the_inputs_are_not_read(name: str, inputs: Inputs, tmp_path: Path) -> None:
    for foreign, path in inputs.foreign.items():
        (tmp_path / foreign).mkdir()
        output = place(CALLS[name], path, tmp_path / foreign)
        before = content(tmp_path)
        done = run(*arguments(CALLS[name], inputs.damaged, output))
        assert content(tmp_path) == before
        assert (done.returncode, done.stdout) == (2, "")
        assert str(output) in done.stderr
        assert "--force" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_foreign_file_is_replaced_with_force_and_an_output_without(name: str, inputs: Inputs, tmp_path: Path) -> None:
    call = CALLS[name]
    output = place(call, inputs.foreign["orders.csv"], tmp_path)
    line = arguments(call, inputs.sound, output)
    assert run(*line, "--force").returncode == 0
    assert inputs.foreign["orders.csv"].read_bytes() not in content(tmp_path).values()
    assert run(*line).returncode == 0
    if call.file is None:
        output.write_bytes(b"")  # an empty file is replaced, too
        assert run(*line).returncode == 0
        assert output.stat().st_size > 0


@pytest.mark.slow
def test_a_folder_of_the_users_files_is_kept_and_a_file_never_replaced_by_a_folder(
    inputs: Inputs, tmp_path: Path
) -> None:
    output = tmp_path / "shop"
    for file in ("notes.txt", "models/mine.safetensors", "baskets-2024/january.csv"):
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        (output / file).write_text("mine")
    shutil.copy(inputs.foreign["orders.csv"], tmp_path / "orders.csv")
    before = content(tmp_path)
    for name in ("prepare", "fit-all"):
        assert run(*arguments(CALLS[name], inputs.sound, output)).returncode == 2
        assert run(*arguments(CALLS[name], inputs.sound, tmp_path / "orders.csv"), "--force").returncode == 2
    assert content(tmp_path) == before
    for name, other in (("prepare", "fit-all"), ("fit-all", "prepare")):
        assert run(*arguments(CALLS[name], inputs.sound, output), "--force").returncode == 0
        assert before.items() <= content(tmp_path).items()
        assert run(*arguments(CALLS[other], inputs.sound, output)).returncode == 2  # a store is not prepared baskets
        (output / "manifest.json").unlink()


def test_a_table_of_another_command_is_kept(inputs: Inputs, tmp_path: Path) -> None:
    for name, other in (("score csv", "recommend csv"), ("recommend parquet", "score parquet")):
        output = tmp_path / CALLS[name].output
        assert run(*arguments(CALLS[name], inputs.sound, output)).returncode == 0
        before = content(tmp_path)
        assert run(*arguments(CALLS[other], inputs.sound, output)).returncode == 2
        assert content(tmp_path) == before


def test_a_checkpoint_replaces_a_foreign_file_only_with_force(inputs: Inputs, tmp_path: Path) -> None:
    state = tmp_path / "notes.txt"
    shutil.copy(inputs.foreign["notes.txt"], state)
    call = [*arguments(CALLS["fit"], inputs.sound, tmp_path / "new"), "--shrinkage", "0", "--checkpoint", str(state)]
    assert run(*call).returncode == 2
    with pytest.raises(dl.InputError, match=r"notes\.txt"):
        dl.Checkpoint(state)
    assert state.read_bytes() == inputs.foreign["notes.txt"].read_bytes()
    assert run(*call, "--force").returncode == 0
    assert dl.load(state).items == ("a", "b", "c")
    assert run(*call).returncode == 0


def options_of(name: str) -> set[str]:
    command = typer.main.get_command(program([name])).commands[name]  # type: ignore[attr-defined]
    return {each for parameter in command.params for each in parameter.opts}


def test_every_command_that_writes_is_tested_and_has_force_and_all_have_the_common_options() -> None:
    options = {name: options_of(name) for name in COMMANDS}
    writing = {name for name in COMMANDS if "--output" in options[name]}
    assert writing == {call.arguments[0] for call in CALLS.values()}
    assert writing == {name for name in COMMANDS if "--force" in options[name]}
    assert [name for name in COMMANDS if not {"--quiet", "--json", "--threads"} <= options[name]] == []


def test_functions_of_the_library_keep_a_foreign_file_too(inputs: Inputs, tmp_path: Path) -> None:
    path, model = tmp_path / "orders.csv", dl.load(inputs.sound["model"])
    shutil.copy(inputs.foreign["orders.csv"], path)
    for write in (model.save, partial(dl.recommend_all, model, inputs.sound["data"])):
        with pytest.raises(dl.InputError, match=r"orders\.csv"):
            write(path)
    assert path.read_bytes() == inputs.foreign["orders.csv"].read_bytes()
    for force in (True, False):  # the second time it replaces its own output
        model.save(path, force=force)
