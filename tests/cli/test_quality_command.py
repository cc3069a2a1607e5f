"""dpplearn fit --learner quality: features and similarities from files, the report, and rejected options."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpplearn as dl
from helpers.command import answer

BASKETS = "basket,item\n" + "".join(
    f"{3 * n},cot\n{3 * n},bib\n{3 * n + 1},crib\n{3 * n + 1},mug\n{3 * n + 2},bib\n" for n in range(20)
)
FEATURES = "item,price,soft\ncot,90,0\ncrib,150,0\nbib,3,1\nmug,7,0\nsled,5,1\n"
ALIKE = "item,cot,crib,bib,mug\ncot,1,0.9,0,0\ncrib,0.9,1,0,0\nbib,0,0,1,0\nmug,0,0,0,1\n"


def test_features_and_similarities_are_read_and_the_weights_reported(tmp_path: Path) -> None:
    orders, items, alike, model = (tmp_path / name for name in ("orders.csv", "items.csv", "alike.csv", "m"))
    for path, text in ((orders, BASKETS), (items, FEATURES), (alike, ALIKE)):
        path.write_text(text)
    asked = ["--learner", "quality", "--features", items, "--similarity", alike]
    quality = answer("fit", orders, *asked, "-o", model)["quality"]
    same = dl.fit_quality(dl.read_baskets(orders), features=items, similarity={"alike": str(alike)})
    assert [row["name"] for row in quality["weights"]] == ["(all items)", "price", "soft"]
    assert [row["name"] for row in quality["strengths"]] == ["uniform", "alike"]
    np.testing.assert_allclose([row["weight"] for row in quality["weights"]], same.quality.weights, atol=1e-9)
    assert answer("describe", model)["learned"]["learner"] == "quality"
