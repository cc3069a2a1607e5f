"""Plots show the numbers of the model, and the same model gives the same file."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import dpplearn as dl
from dpplearn import plots
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.evaluation.calibration import Reliability, ReliabilityRow
from dpplearn.plots.figure import ABOVE, BELOW, INDEPENDENT, MODEL
from helpers.command import answer
from helpers.problems import random_kernel

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def fitted() -> dl.DPP:
    return dl.fit_dpp(dl.datasets.make_registries("safety", 600, rng=0), shrinkage=0, nonempty=False).model


def test_the_learning_curve_shows_training_validation_and_independent_items(fitted: dl.DPP) -> None:
    history = fitted.training.history
    curve, independent = plots.learning_curve(fitted).axes[0].lines  # there is no validation set
    np.testing.assert_array_equal(curve.get_ydata(), history.log_likelihood)
    np.testing.assert_allclose(independent.get_ydata(), fitted.learned.independent_log_likelihood)
    validation = np.linspace(-9, -8, len(history))
    validation[:3] = -np.inf
    training = replace(fitted.training, history=replace(history, validation=validation))
    axes = plots.learning_curve(dl.DPP(fitted.kernel, training=training)).axes[0]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), np.where(np.isinf(validation), np.nan, validation))
    assert f"3 of {len(history)}" in axes.lines[1].get_label()  # are −inf
    with pytest.raises(dl.InputError):
        plots.learning_curve(dl.DPP(fitted.kernel))  # without a history


def test_the_spectrum_shows_every_eigenvalue_and_the_sizes() -> None:
    V = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    dpp = dl.DPP(SpectralDPP(np.array([1e-5, 0.3, 1 - 1e-5, 0.0, 1.0, 1e-12]), V))
    (axes,) = plots.spectrum(dpp).axes
    inside, low, high = (dict(zip(*line.get_data(), strict=True)) for line in axes.lines)
    assert inside == {2: 1 - 1e-5, 3: 0.3, 4: 1e-5}
    assert (list(low), list(high)) == ([5, 6], [1])
    bottom, top = axes.get_ylim()
    assert all(bottom < value < top for line in axes.lines for value in line.get_ydata())
    (axes,) = plots.sizes(dpp).axes
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, dpp.size_distribution[: len(heights)])
    assert sum(heights) > 0.99
    assert axes.lines[0].get_xdata()[0] == pytest.approx(dpp.expected_size)


def test_the_reliability_diagram_shows_shares_and_intervals_and_zero_at_the_edge() -> None:
    rows = (
        ReliabilityRow(0, 0.01, 0.005, 0.0, 0.0, 0.004, 700),
        ReliabilityRow(0.01, 0.02, 0.015, 0.02, 0.01, 0.03, 300),
        ReliabilityRow(0.5, 1, 0.6, 0.7, 0.4, 0.9, 10),
    )
    axes = plots.reliability_diagram({"this": Reliability(rows, 0.004, 1.0, 1.0)}).axes[0]
    points, _, (bars,) = axes.containers[0].lines
    edge = axes.get_xlim()[0]
    np.testing.assert_allclose(points.get_data(), [[0.005, 0.015, 0.6], [edge, 0.02, 0.7]])
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()][1:], [[0.01, 0.03], [0.4, 0.9]])
    with pytest.raises(dl.InputError):
        plots.reliability_diagram({"this": Reliability((), np.nan, 1.0, 1.0)})


def test_the_same_model_gives_the_same_file_and_text_stays_text(fitted: dl.DPP, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plots.write_figure(plots.lift(fitted, 5), tmp_path / name)
    content = (tmp_path / "one.svg").read_bytes()
    assert content == (tmp_path / "two.svg").read_bytes()
    text = " ".join(text.strip() for text in ET.fromstring(content).itertext())
    assert fitted.items[np.argmax(fitted.marginals())] in text


def test_letters_that_the_font_lacks_are_one_warning(tmp_path: Path) -> None:
    dpp = dl.DPP.from_K([[0.5, 0.2], [0.2, 0.4]], ["哺乳瓶", "ゆりかご"])
    with pytest.warns(dl.InputWarning, match=r"names\.png") as caught:
        plots.write_figure(plots.lift(dpp), tmp_path / "names.png")
    assert len(caught) == 1
    plots.write_figure(plots.lift(dpp), tmp_path / "names.svg")
    assert "哺乳瓶" in (tmp_path / "names.svg").read_text()


@pytest.mark.slow
def test_a_figure_can_be_drawn_into_and_nothing_global_changes(fitted: dl.DPP, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    figure = Figure()
    assert plots.spectrum(fitted, figure=figure) is figure
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys, dpplearn as dl; from dpplearn import plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.write_figure(plots.spectrum(dl.DPP.from_K([[0.5]])), sys.argv[1])\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "spectrum.svg")], check=True)


def test_without_matplotlib_the_error_says_how_to_get_it(fitted: dl.DPP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(dl.InputError, match=r'"dpplearn\[report\]"'):
        plots.spectrum(fitted)


@pytest.mark.slow
def test_the_command_draws_every_kind(fitted: dl.DPP, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.safetensors")
    test = dl.datasets.make_registries("safety", 200, rng=1)
    (tmp_path / "test.txt").write_text("".join(",".join(f'"{item}"' for item in basket) + "\n" for basket in test))
    for kind in ("curve", "lift", "sizes", "spectrum", "reliability"):
        options = ["--data", tmp_path / "test.txt"] if kind == "reliability" else []
        file = tmp_path / f"{kind}.png"
        assert answer("plot", tmp_path / "model.safetensors", kind, "-o", file, *options)["output"] == str(file)
        assert file.read_bytes().startswith(PNG)


def test_marginals_show_the_weighted_draws_and_their_median() -> None:
    baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"], ["bib"], [], []] * 10
    table = {"item": ["bib", "cot", "crib"], "price": [3, 90, 110]}
    found = dl.posterior(baskets, features=table, draws=100, rng=0, threads=1)
    figure = plots.marginals(found)
    assert [axes.get_xlabel() for axes in figure.axes] == list(found.names)
    for place, axes in enumerate(figure.axes):
        assert sum(bar.get_height() * bar.get_width() for bar in axes.patches) == pytest.approx(1)
        lines = [line.get_xdata()[0] for line in axes.lines[1:]]
        np.testing.assert_allclose(lines, found.quantiles([0.05, 0.5, 0.95])[:, place])


@pytest.fixture(scope="module")
def drinks() -> dl.Mixture:
    """Segments who buy tea and milk, or beer and nuts; both buy bread."""
    log_odds = np.array([[1.0, 0.5, -3.0, -3.0, -1.0], [-3.0, -3.0, 1.0, 0.5, -1.0]])
    items = ["tea", "milk", "beer", "nuts", "bread"]
    return dl.Mixture.from_arrays([0.4, 0.6], log_odds, np.zeros((5, 5)), items=items)


def shown(figure: Figure) -> np.ndarray:
    return np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)


def rows(figure: Figure) -> list[str]:
    return [label.get_text().rsplit("  ", 1)[0] for label in figure.axes[0].get_yticklabels()]


def test_the_heat_map_has_the_lift_of_the_items_in_its_labels_on_a_scale_centred_at_one(drinks: dl.Mixture) -> None:
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


def test_probabilities_of_zero_can_be_drawn() -> None:
    never_both = dl.DPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]], ["cot", "crib", "never"])
    found = shown(plots.lift(never_both))
    assert found.shape == (2, 2)
    assert np.isfinite(found[0, 1])
    with pytest.raises(dl.InputError):
        plots.lift(dl.DPP(SpectralDPP(np.array([0.5, 0.0]), np.eye(2))))
    log_odds = np.array([[1.0, -np.inf], [-np.inf, 1.0]])
    in_one_segment = dl.Mixture.from_arrays([0.5, 0.5], log_odds, np.zeros((2, 2)))
    assert np.isfinite(shown(plots.segments(in_one_segment))).all()


def test_every_segment_has_a_column_with_its_share_size_and_chances(drinks: dl.Mixture) -> None:
    figure = plots.segments(drinks)
    heads = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert heads == [f"{each.weight:.0%}\n{each.expected_size:.1f}" for each in drinks.segments()]
    names = rows(figure)
    assert names[:2] == ["beer", "nuts"]  # of the larger segment first
    p = drinks.restrict(names).segment_marginals.T
    cells = [each for each in figure.axes[0].texts if "\n" not in each.get_text()]  # the other text is the heading
    assert len(cells) == p.size
    for cell in cells:
        column, row = map(round, cell.get_position())
        assert cell.get_text() == f"{100 * p[row, column]:.0f}"
    np.testing.assert_allclose(shown(figure), np.log2(p / drinks.restrict(names).marginals()[:, None]))
    assert rows(plots.segments(drinks, top=1)) == ["beer", "tea"]


def test_segments_of_little_weight_are_not_drawn_but_counted() -> None:
    log_odds = np.random.default_rng(0).normal(0, 2, (5, 4))
    model = dl.Mixture.from_arrays([0.5, 0.497, 0.001, 0.001, 0.001], log_odds, np.zeros((4, 4)))
    figure = plots.segments(model)
    assert len(figure.axes[0].get_xticklabels()) == 2
    assert "0.3%" in figure._supxlabel.get_text()  # share of the other three


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


def test_the_learning_curve_of_a_mixture_ends_at_its_log_likelihood(mixture: dl.Mixture, orders: dl.Baskets) -> None:
    curve, alone, independent = plots.learning_curve(mixture).axes[0].lines
    assert len(curve.get_ydata()) == len(mixture.training.history)
    assert alone.get_ydata()[0] == pytest.approx(mixture.log_likelihood(orders), abs=1e-9)
    assert independent.get_ydata()[0] == mixture.learned.independent_log_likelihood
