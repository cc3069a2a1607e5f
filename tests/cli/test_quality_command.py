"""dpplearn fit --learner quality: features and similarities from files, a report, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from helpers.command import parsed, run

BASKETS = "basket,item\n" + "".join(
    f"{3 * n},cot\n{3 * n},bib\n{3 * n + 1},crib\n{3 * n + 1},mug\n{3 * n + 2},bib\n" for n in range(20)
)
FEATURES = "item,price,soft\ncot,90,0\ncrib,150,0\nbib,3,1\nmug,7,0\nsled,5,1\n"
ALIKE = "item,cot,crib,bib,mug\ncot,1,0.9,0,0\ncrib,0.9,1,0,0\nbib,0,0,1,0\nmug,0,0,0,1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("orders.csv", BASKETS), ("items.csv", FEATURES), ("alike.csv", ALIKE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_features_and_similarities_are_read_and_the_weights_reported(folder: Path) -> None:
    asked = ["--learner", "quality", "--features", folder / "items.csv", "--similarity", folder / "alike.csv"]
    answer = run("fit", folder / "orders.csv", *asked, "-o", folder / "m", "--json")
    assert answer.returncode == 0, answer.stderr
    quality = parsed(answer.stdout)["quality"]
    same = dl.fit_quality(
        dl.read_baskets(folder / "orders.csv"),
        features=folder / "items.csv",
        similarity={"alike": str(folder / "alike.csv")},
    )
    assert [row["name"] for row in quality["weights"]] == ["(all items)", "price", "soft"]
    assert [row["name"] for row in quality["strengths"]] == ["uniform", "alike"]
    np.testing.assert_allclose([row["weight"] for row in quality["weights"]], same.quality.weights, atol=1e-9)
    assert "sled" in quality["notes"][0]
    assert dl.load(folder / "m").learned.learner == "quality"


def test_weights_are_shown_and_the_model_is_described(folder: Path) -> None:
    answer = run("fit", folder / "orders.csv", "--learner", "quality", "-o", folder / "m")
    assert "Quality: weights in log-odds" in answer.stdout
    described = run("describe", folder / "m", "--json")
    assert described.returncode == 0, described.stderr
    assert parsed(described.stdout)["n_items"] == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--features", "items.csv"], "--features needs --learner quality"),
        (["--learner", "quality", "--features", "orders.csv"], "several rows for item 'bib'"),
        (["--learner", "quality", "--similarity", "items.csv"], "has no column for 4 items of 4"),
        (["--learner", "quality", "--restarts", "3"], "--restarts is not for --learner quality"),
    ],
)
def test_what_cannot_be_used_ends_with_a_line_and_no_model(
    folder: Path, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    answer = run("fit", "orders.csv", *options, "-o", "m")
    assert answer.returncode != 0
    assert said in " ".join(answer.stderr.split())
    assert not Path("m").exists()
