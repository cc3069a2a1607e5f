"""The examples run anywhere, without a warning, and show what they say they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb

import dpplearn as dl

EXAMPLES = Path(__file__).parents[1] / "examples"
NUMBER = r"[-+]?(?:inf|\d+(?:\.\d+)?)"


def output_of(name: str, folder: Path) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def after(label: str, text: str, which: int = 0) -> float:
    """A number of the line that begins with a label."""
    (line,) = re.findall(rf"^ *{re.escape(label)}[: ](.*)$", text, re.MULTILINE)
    return float(re.findall(NUMBER, line)[which])


def test_first_model(tmp_path: Path) -> None:
    out = output_of("first_model.py", tmp_path)
    judged = out.partition("log-likelihood of test data:")[2]
    mixture, dpp, independent = (after(name, judged) for name in ("mixture", "DPP", "independent items"))
    assert mixture > dpp + 0.1
    assert dpp > independent + 0.2
    related = [(float(lift), item) for lift, item in re.findall(rf"^  ({NUMBER}) times as often  (.*)$", out, re.M)]
    *substitutes, complement = related
    assert len(substitutes) == 3
    assert all("video monitor" in item and lift < 0.3 for lift, item in substitutes)
    assert complement[0] > 3
    assert ("Teasel movement monitor", complement[1]) in dl.datasets.matching_items("safety")
    rarer = re.findall(r"^  (\d+)% rarer beside it  (.*)$", out, re.M)
    assert len(rarer) == 3
    assert all("video monitor" in item and int(by) > 70 for by, item in rarer)
    assert dl.load(tmp_path / "model.safetensors").items == dl.datasets.make_registries("safety", 1, rng=0).items


def test_next_item(tmp_path: Path) -> None:
    out = output_of("next_item.py", tmp_path)
    offers = re.findall(r"^  \d\.\d+ +[\d.]+%  (.*)$", out, re.M)
    assert len(offers) == 5
    assert offers[0] == "Tansy plush rabbit"
    assert ("Sorrel teether", offers[0]) in dl.datasets.matching_items("toys")
    assert not any("activity gym" in item for item in offers)
    (up, teether), _, (down, gym), _ = re.findall(rf"× ({NUMBER})  (.*)$", out, re.M)
    assert (teether, gym) == ("Sorrel teether", "Willow activity gym")
    assert float(up) > 2
    assert float(down) < 0.4
    assert after("model", out) > after("item-to-item", out) + 3  # per cent of the items held out


def test_rerank(tmp_path: Path) -> None:
    out = output_of("rerank.py", tmp_path)
    kinds = [int(found) for found in re.findall(r"(\d) kinds of product in 8", out)]
    scores = [float(found) for found in re.findall(rf"mean score ({NUMBER})", out)]
    assert len(kinds) == 5
    assert kinds == sorted(kinds)
    assert kinds[-1] >= kinds[0] + 3
    assert scores == sorted(scores, reverse=True)  # what diversity costs


def test_small_data(tmp_path: Path) -> None:
    out = output_of("small_data.py", tmp_path)
    for name in ("maximum likelihood", "early stopping"):
        assert after(name, out) == -float("inf")
        assert after(name, out, 1) > 0
    chosen, independent, mixture = (after(name, out) for name in ("prior chosen", "independent items", "mixture"))
    assert mixture > chosen + 0.03
    assert chosen > independent
    assert all(after(name, out, 1) == 0 for name in ("prior chosen", "independent items", "mixture"))
    assert after("strength of the prior chosen", out) > 0


def test_comparing_learners(tmp_path: Path) -> None:
    out = output_of("comparing_learners.py", tmp_path)
    learners = "auto lbfgs natural-em em k-ascent picard mm".split()
    (train,) = zip(*(re.findall(rf"^{name} +({NUMBER})", out, re.M) for name in learners), strict=True)
    ours, *others = map(float, train)
    assert ours > max(others) - 1e-3
    assert ours > min(others) + 0.005
    assert re.search(r"auto from five starts: (?:all|[2-4] of) 5 are within", out)


def test_every_example_is_tested_and_described() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert {f"{test.removeprefix('test_')}.py" for test in globals() if test.startswith("test_")} >= names
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f"- [{name}]({name}): " in described} == names
    assert all(len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 60 for name in names)


def test_orders(tmp_path: Path) -> None:
    out = output_of("orders.py", tmp_path)
    assert int(out.split()[0].replace(",", "")) >= 200_000
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(DISTINCT basket) FROM '{tmp_path / 'orders.parquet'}'").fetchall()
    assert found == [(13_200,)]
