"""The examples run in any folder without a warning, and their main claims hold."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import dpplearn as dl

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
NUMBER = r"[-+]?(?:inf|\d+(?:\.\d+)?)"


def output_of(name: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def numbers(label: str, text: str) -> list[float]:
    """Return the numbers after a label at the start of a line."""
    (line,) = re.findall(rf"^ *{re.escape(label)}[: ](.*)$", text, re.MULTILINE)
    return [float(found) for found in re.findall(NUMBER, line)]


def test_demo(tmp_path: Path) -> None:
    n = 1000
    out = output_of("demo.py", tmp_path, str(n))
    train, test = dl.datasets.make_registries("safety", n, rng=0).split(0.7, rng=0)
    em = dl.fit_dpp(train, learner="em", init="wishart", tol=1e-4, rng=0)
    on_train, on_test, n_iter = numbers("EM, stopped at 1e-04", out)
    assert (on_train, on_test) == pytest.approx((em.log_likelihood, em.model.log_likelihood(test)), abs=6e-4)
    assert n_iter == pytest.approx(em.n_iter, abs=1)  # rounding may decide the last iteration
    by_popularity, by_em = map(int, re.findall(r"(\d) of 5", out))
    assert by_em < by_popularity
    assert numbers("mixture", out)[0] > numbers("DPP by EM", out)[0] + 0.1


def test_serve(tmp_path: Path) -> None:
    answers = [line.split() for line in output_of("serve.py", tmp_path, "--check").splitlines()]
    assert len(answers) == 13
    assert {status for _, _, status, *_ in answers} == {"200"}


def test_first_model(tmp_path: Path) -> None:
    out = output_of("first_model.py", tmp_path)
    judged = out.partition("log-likelihood of test data:")[2]
    mixture, dpp, independent = (numbers(name, judged)[0] for name in ("mixture", "DPP", "independent items"))
    assert mixture > dpp + 0.1
    assert dpp > independent + 0.2
    assert dl.load(tmp_path / "model.safetensors").items == dl.datasets.make_registries("safety", 1, rng=0).items


def test_next_item(tmp_path: Path) -> None:
    out = output_of("next_item.py", tmp_path)
    offers = re.findall(r"^  \d\.\d+ +[\d.]+%  (.*)$", out, re.M)
    assert len(offers) == 5
    assert ("Sorrel teether", offers[0]) in dl.datasets.matching_items("toys")
    assert numbers("model", out)[0] > numbers("item-to-item", out)[0] + 3  # per cent of the items held out


def test_rerank(tmp_path: Path) -> None:
    out = output_of("rerank.py", tmp_path)
    kinds = [int(found) for found in re.findall(r"(\d) kinds of product in 8", out)]
    scores = [float(found) for found in re.findall(rf"mean log-score ({NUMBER})", out)]
    assert len(kinds) == len(scores) == 5
    assert kinds == sorted(kinds)
    assert kinds[-1] >= kinds[0] + 3
    assert scores == sorted(scores, reverse=True)  # what diversity costs


def test_small_data(tmp_path: Path) -> None:
    out = output_of("small_data.py", tmp_path)
    assert numbers("maximum likelihood", out)[0] == -float("inf")
    chosen, independent, mixture = (
        numbers(name, out)[0] for name in ("shrinkage chosen", "independent items", "mixture")
    )
    assert mixture > chosen + 0.03
    assert chosen > independent


def test_comparing_learners(tmp_path: Path) -> None:
    out = output_of("comparing_learners.py", tmp_path)
    ours, *others = (numbers(f"{name}  ", out)[0] for name in "lbfgs natural-em em k-ascent picard mm".split())
    assert ours > max(others) - 1e-3
    assert ours > min(others) + 0.005


def test_orders(tmp_path: Path) -> None:
    output_of("orders.py", tmp_path)
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(DISTINCT basket) FROM '{tmp_path / 'orders.parquet'}'").fetchall()
    assert found == [(13_200,)]


def test_every_example_is_tested_and_described() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert {f"{test.removeprefix('test_')}.py" for test in globals() if test.startswith("test_")} >= names
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f"- [{name}]({name}): " in described} == names
