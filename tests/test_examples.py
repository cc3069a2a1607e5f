"""The examples run in any folder, without a warning, and print what they claim to show."""

from __future__ import annotations

import math
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


def after(label: str, text: str, which: int = 0) -> float:
    """A number of the line that begins with a label."""
    (line,) = re.findall(rf"^ *{re.escape(label)}[: ](.*)$", text, re.MULTILINE)
    return float(re.findall(NUMBER, line)[which])


def row_of(label: str, text: str) -> list[str]:
    """Return the cells after the first in the table row that begins with a label."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"{label} ")]
    return line.removeprefix(label).split()


def test_demo(tmp_path: Path) -> None:
    n = 1000
    out = output_of("demo.py", tmp_path, str(n))
    assert max(map(len, out.splitlines())) <= 80
    train, test = dl.datasets.make_registries("safety", n, rng=0).split(0.7, rng=0)
    fits = {
        (name, tol): dl.fit_dpp(train, learner=learner, init="wishart", tol=float(tol), rng=0)
        for name, learner in (("K-Ascent", "k-ascent"), ("EM", "em"))
        for tol in ("1e-04", "1e-06")
    }
    for (name, tol), fit in fits.items():
        on_train, on_test, n_iter = row_of(f"{name}, stopped at {tol}", out)
        assert float(on_train) == pytest.approx(fit.log_likelihood, abs=6e-4)
        assert float(on_test) == pytest.approx(fit.model.log_likelihood(test), abs=6e-4)
        assert int(n_iter) == pytest.approx(fit.n_iter, abs=1)  # rounding may decide the last iteration
    words = " ".join(out.split())
    for tol in ("1e-04", "1e-06"):
        em, k_ascent = (fits[name, tol].model.log_likelihood(test) for name in ("EM", "K-Ascent"))
        gain = 100 * (em - k_ascent) / abs(k_ascent)
        assert any(abs(float(found) - gain) < 0.006 for found in re.findall(r"([-+]\d+\.\d+)%", words))

    suggestions = out.partition("\n2. ")[2].partition("\n3. ")[0]
    substitutes = max(dl.datasets.items_by_kind("safety"), key=len)
    item = re.search(r"A = '(.*)'", suggestions)[1]
    assert item in substitutes
    suggested = fits["EM", "1e-06"].model.recommend([item], 5)
    by_popularity, by_em = map(int, re.findall(r"(\d) of 5", suggestions))
    assert by_em == sum(each.item in substitutes for each in suggested) < by_popularity
    assert suggestions.count("* ") == by_popularity + by_em

    gain_of_em, gain_of_mixture = (float(row_of(name, out)[0]) for name in ("DPP by EM", "mixture"))
    assert gain_of_mixture > gain_of_em + 0.1
    assert re.search(r"(\d+\.\d) times as likely", words)[1] == f"{math.exp(gain_of_mixture):.1f}"
    sizes = dl.datasets.make_registries("apparel", n, rng=0).split(0.7, rng=0)[1].sizes
    assert f"sizes is {sizes.var() / sizes.mean():.2f}, above 1" in words


def test_serve(tmp_path: Path) -> None:
    answers = [line.split() for line in output_of("serve.py", tmp_path, "--check").splitlines()]
    assert len(answers) == 13
    assert {status for _, _, status, *_ in answers} == {"200"}


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
    scores = [float(found) for found in re.findall(rf"mean log-score ({NUMBER})", out)]
    assert len(kinds) == len(scores) == 5
    assert kinds == sorted(kinds)
    assert kinds[-1] >= kinds[0] + 3
    assert scores == sorted(scores, reverse=True)  # what diversity costs


def test_small_data(tmp_path: Path) -> None:
    out = output_of("small_data.py", tmp_path)
    for name in ("maximum likelihood", "early stopping"):
        assert after(name, out) == -float("inf")
        assert after(name, out, 1) > 0
    chosen, independent, mixture = (after(name, out) for name in ("shrinkage chosen", "independent items", "mixture"))
    assert mixture > chosen + 0.03
    assert chosen > independent
    assert all(after(name, out, 1) == 0 for name in ("shrinkage chosen", "independent items", "mixture"))
    assert after("the shrinkage that was chosen", out) > 0


def test_comparing_learners(tmp_path: Path) -> None:
    out = output_of("comparing_learners.py", tmp_path)
    learners = "lbfgs natural-em em k-ascent picard mm".split()
    (train,) = zip(*(re.findall(rf"^{name} +({NUMBER})", out, re.M) for name in learners), strict=True)
    ours, *others = map(float, train)
    assert ours > max(others) - 1e-3
    assert ours > min(others) + 0.005
    worst, best = map(float, re.search(rf"five initial kernels: ({NUMBER}) to ({NUMBER})", out).groups())
    assert worst <= best
    assert best >= ours - 1e-3


def test_every_example_is_tested_and_described() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert {f"{test.removeprefix('test_')}.py" for test in globals() if test.startswith("test_")} >= names
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f"- [{name}]({name}): " in described} == names


def test_orders(tmp_path: Path) -> None:
    out = output_of("orders.py", tmp_path)
    assert int(out.split()[0].replace(",", "")) >= 200_000
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT count(DISTINCT basket) FROM '{tmp_path / 'orders.parquet'}'").fetchall()
    assert found == [(13_200,)]
