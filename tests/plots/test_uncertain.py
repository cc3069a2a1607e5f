"""Pictures of weights and parameters show the figures that they are of."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import plots

BASKETS = dl.Baskets.from_lists([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"], ["bib"], [], []] * 10)


def test_weights_are_drawn_largest_first_with_their_intervals_beside_the_strengths() -> None:
    found = dl.fit(BASKETS, learner="quality").quality
    left, right = plots.quality_weights(found).axes
    named = {label.get_text(): at for label, at in zip(left.get_yticklabels(), left.get_yticks(), strict=True)}
    drawn = {row.name: row.weight for row in found.rows}
    assert sorted(named, key=named.__getitem__) == sorted(drawn, key=drawn.__getitem__)
    points = left.containers[0].lines[0].get_xdata()
    np.testing.assert_allclose(np.sort(points), np.sort(found.weights))
    bars = left.containers[0].lines[2][0].get_segments()
    assert {round(bar[0][0], 9) for bar in bars} == {round(row.low, 9) for row in found.rows}
    assert [label.get_text() for label in right.get_yticklabels()] == ["uniform"]
    assert len(plots.quality_weights(found, top=1).axes[0].get_yticklabels()) == 1
    without_strengths = dl.fit(BASKETS, learner="quality", similarity=np.eye(3)).quality
    assert len(plots.quality_weights(without_strengths).axes) == 1


def test_marginals_show_the_weighted_draws_and_their_median() -> None:
    table = {"item": ["bib", "cot", "crib"], "price": [3, 90, 110]}
    found = dl.posterior(BASKETS, features=table, draws=100, rng=0, threads=1)
    figure = plots.marginals(found)
    assert [axes.get_xlabel() for axes in figure.axes] == list(found.names)
    for place, axes in enumerate(figure.axes):
        area = sum(bar.get_height() * bar.get_width() for bar in axes.patches)
        assert area == pytest.approx(1)
        lines = [line.get_xdata()[0] for line in axes.lines[1:]]
        np.testing.assert_allclose(lines, found.interval(0.9)[place][1:])
        highest = max(axes.patches, key=lambda bar: bar.get_height())
        assert found.interval(0.99)[place].low <= highest.get_x() <= found.interval(0.99)[place].high
