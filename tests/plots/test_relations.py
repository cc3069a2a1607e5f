"""Pictures of what a mixture knows: lifts with both signs, and what each segment likes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpplearn as dl
from dpplearn import plots
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.plots.figure import ABOVE, BELOW, INDEPENDENT, MODEL
from helpers.problems import random_kernel

DRINKS = ["tea", "milk", "beer", "nuts", "bread"]


@pytest.fixture(scope="module")
def drinks() -> dl.Mixture:
    """Two kinds of people, of whom some take tea with milk and others beer with nuts; bread is for all."""
    log_odds = np.array([[1.0, 0.5, -3.0, -3.0, -1.0], [-3.0, -3.0, 1.0, 0.5, -1.0]])
    return dl.Mixture.from_arrays([0.4, 0.6], log_odds, np.zeros((5, 5)), items=DRINKS)


def shown(figure: Figure) -> np.ndarray:
    return np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)


def rows(figure: Figure) -> list[str]:
    return [label.get_text().rsplit("  ", 1)[0] for label in figure.axes[0].get_yticklabels()]


def test_the_heat_map_has_the_lift_of_the_items_named_beside_it_on_a_scale_centred_at_one(drinks: dl.Mixture) -> None:
    figure = plots.lift(drinks)
    names = rows(figure)
    found, order = shown(figure), drinks.catalogue.positions(names)
    assert sorted(order) == list(range(5))
    others = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(found[others], np.log2(drinks.lift[np.ix_(order, order)])[others])
    assert np.isnan(found.diagonal()).all()
    image = figure.axes[0].images[0]
    assert image.norm.vmin == -image.norm.vmax
    for pair in (("tea", "milk"), ("beer", "nuts")):  # items with similar lifts are neighbours
        assert abs(names.index(pair[0]) - names.index(pair[1])) == 1


def test_of_many_items_the_most_likely_are_shown() -> None:
    dpp = dl.DPP(random_kernel(np.random.default_rng(0), 90), [f"item {i}" for i in range(90)])
    most_likely = [f"item {i}" for i in np.argsort(-dpp.marginals())]
    assert sorted(rows(plots.lift(dpp))) == sorted(most_likely[:50])
    assert sorted(rows(plots.lift(dpp, top=3))) == sorted(most_likely[:3])
    assert shown(plots.lift(dpp, top=90)).shape == (90, 90)
    with pytest.raises(dl.InputError, match=r"top.*0"):
        plots.lift(dpp, top=0)


def test_a_lift_of_zero_and_items_that_never_occur_can_be_drawn() -> None:
    never_both = dl.DPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]], ["cot", "crib", "never"])
    found = shown(plots.lift(never_both))
    assert found.shape == (2, 2)
    assert np.isfinite(found[0, 1])
    with pytest.raises(dl.InputError):
        plots.lift(dl.DPP(SpectralDPP(np.array([0.5, 0.0]), np.eye(2))))


def cells(figure: Figure) -> dict[tuple[int, int], str]:
    found = [(text.get_position(), text.get_text()) for text in figure.axes[0].texts]
    return {(round(y), round(x)): text for (x, y), text in found if "\n" not in text}


def test_every_segment_has_a_column_with_its_share_size_and_chances(drinks: dl.Mixture) -> None:
    figure = plots.segments(drinks)
    heads = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    kinds = drinks.segments()
    assert heads == [f"{each.weight:.0%}\n{each.expected_size:.1f}" for each in kinds]
    names = rows(figure)
    assert names[:2] == ["beer", "nuts"]  # of the larger segment first
    positions = drinks.catalogue.positions(names)
    p = drinks.segment_marginals[:, positions].T
    for (row, column), text in cells(figure).items():
        assert text == f"{100 * p[row, column]:.0f}"
    np.testing.assert_allclose(shown(figure), np.log2(p / drinks.marginals()[positions][:, None]))
    assert rows(plots.segments(drinks, top=1)) == ["beer", "tea"]


def test_segments_beyond_what_fits_are_told_and_not_drawn() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.5, 0.497, *np.full(3, 0.001)])
    model = dl.Mixture.from_arrays(weights, rng.normal(0, 2, (5, 4)), np.zeros((4, 4)))
    figure = plots.segments(model)
    assert len(figure.axes[0].get_xticklabels()) == 2
    assert "0.3%" in figure._supxlabel.get_text()  # share of the other three


def test_a_probability_of_zero_in_a_segment_can_be_drawn(drinks: dl.Mixture) -> None:
    log_odds = np.array([[1.0, -np.inf], [-np.inf, 1.0]])
    never = dl.Mixture.from_arrays([0.5, 0.5], log_odds, np.zeros((2, 2)))
    assert np.isfinite(shown(plots.segments(never))).all()


def test_lifts_have_the_colours_of_the_pages() -> None:
    assets = Path(dl.__file__).parent / "service" / "page" / "assets"
    script, style = (assets / "analyst.js").read_text(), (assets / "style.css").read_text()
    for colour in (BELOW, ABOVE):
        assert f"[{', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}]" in script
    assert f"--accent: {MODEL}" in style
    assert f"--faint: {INDEPENDENT}" in style


def test_models_without_segments_and_mixtures_without_eigenvalues_are_rejected(drinks: dl.Mixture) -> None:
    alike = dl.Mixture.from_arrays([0.5, 0.5], np.zeros((2, 2)), np.zeros((2, 2)))
    for model in (dl.DPP.from_K([[0.5]]), dl.Mixture.from_arrays([1.0], [[0.0, 1.0]], np.zeros((2, 2))), alike):
        with pytest.raises(dl.InputError):
            plots.segments(model)
    with pytest.raises(dl.InputError, match="'sizes'"):
        plots.spectrum(drinks)


def test_names_are_never_mathematics(tmp_path: Path) -> None:
    names = ["$5 mug, was $\\frac9", "cup"]
    model = dl.Mixture.from_arrays([0.5, 0.5], [[1.0, -1], [-1, 1]], np.zeros((2, 2)), items=names)
    for draw in (plots.lift, plots.segments):
        plots.write_figure(draw(model), tmp_path / "names.svg")
        assert model.items[0] in (tmp_path / "names.svg").read_text()


def test_sizes_and_curve_are_for_mixtures_too(mixture: dl.Mixture, orders: dl.Baskets) -> None:
    heights = [bar.get_height() for bar in plots.sizes(mixture).axes[0].patches]
    np.testing.assert_allclose(heights, mixture.size_distribution[: len(heights)])
    curve, alone, independent = plots.learning_curve(mixture).axes[0].lines
    assert len(curve.get_ydata()) == len(mixture.training.history)
    assert alone.get_ydata()[0] == pytest.approx(mixture.log_likelihood(orders), abs=1e-9)
    assert independent.get_ydata()[0] == mixture.learned.independent_log_likelihood
