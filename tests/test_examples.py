"""The examples run anywhere, without a warning, and show what they say they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
    likelihoods = [
        float(value)
        for value in re.findall(rf"^ *(?:log-likelihood of test data|independent items): ({NUMBER})$", out, re.M)
    ]
    assert likelihoods[0] > likelihoods[1] + 0.2
    substitutes = re.findall(r"^  \d+%  (.*)$", out, re.M)
    assert len(substitutes) == 3
    assert all("video monitor" in item for item in substitutes)
    assert after("with Hazel video monitor", out) < 0.3
    assert after("with Fennel night light", out) > 0.6
    assert dl.load(tmp_path / "model.safetensors").items == dl.datasets.make_registries("safety", 1, rng=0).items


def test_next_item(tmp_path: Path) -> None:
    out = output_of("next_item.py", tmp_path)
    offers = re.findall(r"^  \d\.\d+ +[\d.]+%  (.*)$", out, re.M)
    assert len(offers) == 5
    assert not any(item.endswith(("baby bottle", "high chair", "pacifier")) for item in offers)
    factors = re.findall(rf"× ({NUMBER})  (.*)$", out, re.M)
    assert factors[0][1] == "Willow baby bottle"
    assert float(factors[0][0]) < 0.4 < min(float(factor) for factor, _ in factors[1:])
    assert after("model", out) > after("item-to-item", out) + 4  # per cent of the items held out


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
    chosen, independent = after("prior chosen", out), after("independent items", out)
    assert chosen > independent + 0.05
    assert after("prior chosen", out, 1) == after("independent items", out, 1) == 0
    assert after("strength of the prior chosen", out) > 0


def test_comparing_learners(tmp_path: Path) -> None:
    out = output_of("comparing_learners.py", tmp_path)
    learners = "auto lbfgs natural-em em k-ascent picard mm".split()
    (train,) = zip(*(re.findall(rf"^{name} +({NUMBER})", out, re.M) for name in learners), strict=True)
    ours, *others = map(float, train)
    assert ours > max(others) - 1e-3
    assert ours > min(others) + 0.005
    assert "auto from five starts: all 5 are within" in out


def test_every_example_is_tested_and_described() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert {f"{test.removeprefix('test_')}.py" for test in globals() if test.startswith("test_")} >= names
    described = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {name for name in names if f"- [{name}]({name}): " in described} == names
    assert all(len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 60 for name in names)
