"""Pictures of a model: what they show is what the model says, and can be read."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import astuple, replace
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import dpplearn as dl
from dpplearn import plots
from dpplearn.data.catalogue import Catalogue
from dpplearn.evaluation.calibration import Reliability, ReliabilityRow
from dpplearn.models.evidence import evidence_among, told_pairs
from dpplearn.models.training import Training
from dpplearn.plots.layout import by_cluster, names, placed, pushed_apart, strongest_pairs
from helpers.command import answer, run, table
from helpers.problems import random_kernel, sampled

GROUPS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]  # of which items are alike
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def fitted() -> dl.DPP:
    return dl.fit(dl.datasets.make_registries("safety", 600, rng=0), prior=0, nonempty=False).dpp


def rows(axes: Axes) -> list[str]:
    """What is beside the rows, without their numbers."""
    return [label.get_text().rsplit("  ", 1)[0] for label in axes.get_yticklabels()]


def grouped(groups: list[int] = GROUPS) -> np.ndarray:
    """Similarity 0.8 within a group and 0.1 to 0.2 between."""
    noise = np.random.default_rng(0).uniform(0.1, 0.2, (len(groups), len(groups)))
    similarity = np.where(np.equal.outer(groups, groups), 0.8, np.maximum(noise, noise.T))
    np.fill_diagonal(similarity, 0)
    return similarity


def with_eigenvalues(eigenvalues: list[float]) -> dl.DPP:
    V = np.linalg.qr(np.random.default_rng(1).standard_normal((len(eigenvalues), len(eigenvalues))))[0]
    return dl.DPP(dl.Kernel(np.array(eigenvalues), V))


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_items_of_a_cluster_are_neighbours_in_the_heat_map() -> None:
    order = by_cluster(grouped())
    assert sorted(order) == list(range(len(GROUPS)))
    found = [GROUPS[i] for i in order]
    assert sum(a != b for a, b in pairwise(found)) == 2
    assert by_cluster(np.zeros((1, 1))).tolist() == [0]


def test_items_that_are_alike_are_near_each_other_on_the_map() -> None:
    points = placed(grouped())
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    same = np.equal.outer(GROUPS, GROUPS)
    assert distance[same].max() < distance[~same].min()
    assert np.abs(points).max() == pytest.approx(1)
    for n in (1, 2, 3):
        assert np.isfinite(placed(np.zeros((n, n)))).all()


def overlapping(points: np.ndarray, boxes: np.ndarray) -> list[tuple[int, int]]:
    centres = points + boxes * [0.5, 0]
    near = np.abs(centres[:, None] - centres) < (boxes[:, None] + boxes) / 2 - 1e-9
    return [(i, j) for i, j in combinations(range(len(points)), 2) if near[i, j].all()]


def test_labels_that_overlap_are_pushed_apart_and_others_stay() -> None:
    rng = np.random.default_rng(0)
    points, boxes = rng.uniform(-60, 60, (30, 2)), rng.uniform((40, 8), (90, 20), (30, 2))
    points[1] = points[0]
    assert overlapping(points, boxes)
    assert not overlapping(pushed_apart(points, boxes), boxes)
    apart = np.array([[0.0, 0], [100, 0], [0, 50]])
    np.testing.assert_array_equal(pushed_apart(apart, np.full((3, 2), 30.0)), apart)


def test_the_strongest_pairs_are_not_all_of_one_cluster() -> None:
    similarity = np.zeros((7, 7))
    for (i, j), strength in {(0, 1): 0.9, (0, 2): 0.8, (1, 2): 0.7, (0, 3): 0.6, (1, 3): 0.5, (2, 3): 0.4}.items():
        similarity[i, j] = similarity[j, i] = strength
    similarity[4, 5] = similarity[5, 4] = 0.1
    assert strongest_pairs(similarity, 9) == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (4, 5)]
    assert strongest_pairs(similarity, 2) == [(0, 1), (0, 2)]


def test_names_in_a_picture_are_on_one_line_and_no_mathematics() -> None:
    catalogue = Catalogue.of(["one\ttwo\n\x1b[31mthree", "$5 or $6"])
    assert names(catalogue, np.arange(2), 30) == ["one two [31mthree", r"\$5 or \$6"]


def test_the_learning_curve_is_the_history(fitted: dl.DPP) -> None:
    axes = plots.learning_curve(fitted).axes[0]
    history = fitted.training.history
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), history.log_likelihood)
    np.testing.assert_allclose(axes.lines[1].get_ydata(), fitted.learned.independent_log_likelihood)
    assert len(axes.lines) == 2  # nothing was set aside
    low, high = axes.get_ylim()
    assert low < fitted.learned.independent_log_likelihood < high
    assert low < history.log_likelihood[-1] < high


def test_the_learning_curve_shows_what_was_set_aside_and_says_where_it_is_minus_infinity(fitted: dl.DPP) -> None:
    history = fitted.training.history
    validation = np.linspace(-9, -8, len(history))
    validation[:3] = -np.inf
    training = replace(fitted.training, history=replace(history, validation=validation))
    axes = plots.learning_curve(dl.DPP(fitted.kernel, training=training)).axes[0]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), np.where(np.isinf(validation), np.nan, validation))
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(names) == 2  # it is not known what independent items would give
    assert names[1] == f"data set aside: −8.0000 at the end, minus infinity in 3 of {len(history)}"


def test_the_learning_curve_with_a_prior_tells_the_data_alone_apart() -> None:
    train = dl.datasets.make_registries("safety", 60, rng=0)
    dpp = dl.fit(train, prior=0.5, nonempty=False).dpp
    both, alone, independent = plots.learning_curve(dpp).axes[0].lines
    np.testing.assert_array_equal(both.get_ydata(), dpp.training.history.log_likelihood)
    assert both.get_label().startswith("training data and prior: ")
    assert (alone.get_xdata()[0], alone.get_ydata()[0]) == (
        len(dpp.training.history) - 1,
        pytest.approx(dpp.log_likelihood(train)),
    )
    assert independent.get_ydata()[0] == dpp.learned.independent_log_likelihood


def test_a_model_without_history_says_what_to_do() -> None:
    kernel = random_kernel(np.random.default_rng(0))
    for training in (None, Training.of(sampled(0))):
        with pytest.raises(dl.InputError, match=r"no learning curve.*fit it again"):
            plots.learning_curve(dl.DPP(kernel, training=training))


def test_the_spectrum_shows_every_eigenvalue_and_the_sizes() -> None:
    dpp = with_eigenvalues([1e-5, 0.3, 1 - 1e-5, 0.0, 1.0, 1e-12])
    left, right = plots.spectrum(dpp).axes
    inside, low, high = (dict(zip(*line.get_data(), strict=True)) for line in left.lines)
    assert inside == {2: 1 - 1e-5, 3: 0.3, 4: 1e-5}
    assert (list(low), list(high)) == ([5, 6], [1])
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["2 within 1e-08 of 0", "1 at 1"]
    bottom, top = left.get_ylim()
    assert all(bottom < value < top for line in left.lines for value in line.get_ydata())
    heights = [bar.get_height() for bar in right.patches]
    np.testing.assert_allclose(heights, dpp.size_distribution[: len(heights)])
    assert sum(heights) > 0.99
    assert right.lines[0].get_xdata()[0] == pytest.approx(dpp.expected_size)


def test_the_heat_map_is_how_far_apart_the_items_are_kept_that_are_named_beside_it(fitted: dl.DPP) -> None:
    fitted = dl.DPP(fitted.kernel, fitted.items)  # which does not tell how often items met
    axes = plots.kernel_map(fitted, figure=Figure()).axes[0]
    names = rows(axes)
    positions = fitted.catalogue.positions(names)  # none is long enough to be shortened
    assert sorted(positions) == list(range(len(fitted.items)))
    shown = axes.images[0].get_array()
    assert shown.mask.diagonal().all()
    expected = fitted.together.substitution[np.ix_(positions, positions)]
    others = ~np.eye(len(names), dtype=bool)
    np.testing.assert_array_equal(shown.data[others], expected[others])


def test_a_heat_map_leaves_out_what_chance_explains_and_says_how_much(fitted: dl.DPP) -> None:
    figure = plots.kernel_map(fitted)
    positions = fitted.catalogue.positions(rows(figure.axes[0]))
    seen = told_pairs(evidence_among(fitted.training, fitted.chance, positions))
    assert 0 < seen.sum() < seen.size / 2
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array().mask, ~seen)
    n = len(positions) * (len(positions) - 1) // 2
    assert f"{n - seen.sum() // 2} of {n} pairs" in figure.get_supxlabel()


def test_the_scale_of_a_heat_map_is_white_at_zero_and_has_a_line_there(fitted: dl.DPP) -> None:
    figure = plots.kernel_map(fitted)
    low, high = figure.axes[0].images[0].get_clim()
    assert low == -high
    bar = figure.axes[1]
    assert bar.lines[-1].get_ydata()[0] == 0
    assert "0 %" in [label.get_text() for label in bar.get_yticklabels()]
    assert figure.get_suptitle()


def test_names_beside_a_heat_map_are_inside_the_picture_and_do_not_overlap() -> None:
    for n, top in ((30, None), (169, None)):
        items = [f"A product with a name that is rather long, number {i} of them: Baby" for i in range(n)]
        figure = plots.kernel_map(dl.DPP(random_kernel(np.random.default_rng(0), n), items), top)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        boxes = [label.get_window_extent(canvas.get_renderer()) for label in figure.axes[0].get_yticklabels()]
        assert min(box.x0 for box in boxes) >= 0
        assert min(box.x0 for box in boxes) < 0.1 * figure.bbox.width  # no empty margin
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_many_items_are_named_in_blocks_by_their_likeliest_ones_and_few_one_by_one() -> None:
    dpp = dl.DPP(random_kernel(np.random.default_rng(0), 169), [f"item {i}" for i in range(169)])
    labels = rows(plots.kernel_map(dpp).axes[0])
    assert len(labels) == 16
    assert sum(2 + int(label.split(" and ")[1].removesuffix(" more")) for label in labels) == 169
    assert any(f"item {np.argmax(dpp.marginals())}, " in label for label in labels)
    names = rows(plots.kernel_map(dpp, top=5).axes[0])
    assert sorted(names) == sorted(f"item {i}" for i in np.argsort(-dpp.marginals())[:5])
    with pytest.raises(dl.InputError, match="top is 0"):
        plots.kernel_map(dpp, top=0)


def test_the_map_has_the_name_of_every_item_and_no_two_overlap() -> None:
    registries = dl.datasets.make_registries("feeding", 300, rng=0)
    dpp = dl.DPP(random_kernel(np.random.default_rng(0), registries.n_items), registries.items)
    figure = plots.substitutes_map(dpp)
    axes = figure.axes[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    *names, caption = axes.texts
    likeliest = {dpp.items[i] for i in np.argsort(-dpp.marginals())[:40]}
    assert {name.get_text().replace("\n", " ") for name in names} == likeliest
    boxes = [text.get_window_extent(renderer) for text in (*names, caption)]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    points = axes.transData.transform(axes.collections[0].get_offsets())
    assert not [(x, y) for x, y in points for box in boxes if box.contains(x, y)]
    frame = axes.get_window_extent(renderer)
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


def test_lines_of_the_map_join_the_strongest_pairs_the_wider_the_stronger(fitted: dl.DPP) -> None:
    few = len(plots.substitutes_map(fitted, top=12).axes[0].lines)
    fitted = dl.DPP(fitted.kernel, fitted.items)  # which does not tell what chance explains
    axes = plots.substitutes_map(fitted, top=12).axes[0]
    chosen = fitted.catalogue.positions([text.replace("\n", " ") for text in texts(axes.figure)[:-1]])
    points = [tuple(point) for point in axes.collections[0].get_offsets()]
    ends = [[points.index((x, y)) for x, y in zip(*line.get_data(), strict=True)] for line in axes.lines]
    apart = np.maximum(fitted.together.substitution[np.ix_(chosen, chosen)], 0)
    assert [tuple(pair) for pair in ends] == strongest_pairs(apart, 12)
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > widths[-1]
    assert few < len(widths)


def test_the_map_around_an_item_has_its_substitutes(fitted: dl.DPP) -> None:
    item = fitted.items[3]
    figure = plots.substitutes_map(fitted, item, top=4)
    names = [text.replace("\n", " ") for text in texts(figure)[:-1]]
    assert names == [item, *(each.item for each in fitted.substitutes(item, 4))]
    colours = figure.axes[0].collections[0].get_facecolors()
    assert len({tuple(colour) for colour in colours}) == 2
    with pytest.raises(dl.InputError, match="not in the catalogue"):
        plots.substitutes_map(fitted, "Wilow video monitor")


def test_items_of_probability_zero_are_left_out_of_maps() -> None:
    dpp = dl.DPP(dl.Kernel(np.array([0.5, 0.4, 0.0]), np.eye(3)), ["a", "b", "never"])
    *names, said = texts(plots.substitutes_map(dpp))
    assert names == ["a", "b"]
    assert said.startswith(
        "no two items repel each other; points: larger for likelier items\nThis model is no more than"
    )
    assert len(plots.kernel_map(dpp).axes[0].get_yticklabels()) == 2
    with pytest.raises(dl.InputError, match="every item has probability zero"):
        plots.substitutes_map(dl.DPP(dl.Kernel(np.zeros(2), np.eye(2))))


def test_the_reliability_of_a_plot_is_that_of_an_evaluation(fitted: dl.DPP) -> None:
    test = dl.datasets.make_registries("safety", 400, rng=1)
    evaluated = dl.evaluate(fitted, test).reliability
    found = plots.reliability_of(fitted, test)
    for name, each in found.items():
        np.testing.assert_allclose(
            [astuple(row) for row in each.rows], [astuple(row) for row in evaluated[name].rows], rtol=1e-9
        )
        assert each.error == pytest.approx(evaluated[name].error)
    assert list(found) == ["model", "independent items"]
    bare = plots.reliability_of(dl.DPP(fitted.kernel, fitted.items), test)
    assert bare["model"] == found["model"]
    assert len(plots.reliability_diagram(evaluated).axes[0].containers) == len(evaluated)


def test_the_reliability_diagram_shows_shares_and_intervals_and_zero_at_the_edge() -> None:
    rows = (
        ReliabilityRow(0, 0.01, 0.005, 0.0, 0.0, 0.004, 700),
        ReliabilityRow(0.01, 0.02, 0.015, 0.02, 0.01, 0.03, 300),
        ReliabilityRow(0.5, 1, 0.6, 0.7, 0.4, 0.9, 10),
    )
    figure = plots.reliability_diagram({"this": Reliability(rows, 0.004)})
    axes = figure.axes[0]
    points, _, (bars,) = axes.containers[0].lines
    edge, end = axes.get_xlim()
    assert 0 < edge < 0.005
    assert end == 1
    np.testing.assert_allclose(points.get_data(), [[0.005, 0.015, 0.6], [edge, 0.02, 0.7]])
    np.testing.assert_allclose([segment[:, 1] for segment in bars.get_segments()][1:], [[0.01, 0.03], [0.4, 0.9]])
    np.testing.assert_allclose(axes.lines[0].get_xdata(), axes.lines[0].get_ydata())
    with pytest.raises(dl.InputError, match="nothing to check"):
        plots.reliability_diagram({"this": Reliability((), np.nan)})


def test_the_same_model_gives_the_same_file_and_text_stays_text(fitted: dl.DPP, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plots.write_figure(plots.substitutes_map(fitted), tmp_path / name)
    content = (tmp_path / "one.svg").read_bytes()
    assert content == (tmp_path / "two.svg").read_bytes()
    assert fitted.items[0] in " ".join(text.strip() for text in ET.fromstring(content).itertext())


def test_names_are_never_read_as_mathematics(tmp_path: Path) -> None:
    dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.2], [0.2, 0.4]]), ["$5 mug, was $\\frac9", "100 % <wool> & _x^{"])
    for draw in (plots.kernel_map, plots.substitutes_map):
        plots.write_figure(draw(dpp), tmp_path / "names.svg")
        shown = " ".join(ET.parse(tmp_path / "names.svg").getroot().itertext())
        assert dpp.items[0] in shown
        assert dpp.items[1] in shown


def test_letters_that_the_font_lacks_are_one_warning(tmp_path: Path) -> None:
    dpp = dl.DPP(dl.Kernel.from_K([[0.5, 0.2], [0.2, 0.4]]), ["哺乳瓶", "ゆりかご"])
    with pytest.warns(dl.InputWarning, match=r"names\.png: the font has not all the letters") as caught:
        plots.write_figure(plots.kernel_map(dpp), tmp_path / "names.png")
    assert len(caught) == 1
    plots.write_figure(plots.kernel_map(dpp), tmp_path / "names.svg")
    assert "哺乳瓶" in (tmp_path / "names.svg").read_text()


def test_a_figure_can_be_drawn_into_and_nothing_global_changes(fitted: dl.DPP, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    figure = Figure()
    assert plots.spectrum(fitted, figure=figure) is figure
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys, dpplearn as dl; from dpplearn import plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.write_figure(plots.spectrum(dl.DPP(dl.Kernel.from_K([[0.5]]))), sys.argv[1])\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "spectrum.svg")], check=True)


def test_without_matplotlib_the_error_says_how_to_get_it(fitted: dl.DPP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (plots.spectrum, plots.kernel_map, plots.substitutes_map, plots.learning_curve):
        with pytest.raises(dl.InputError, match=r'a plot needs matplotlib: pip install "dpplearn\[report\]"'):
            draw(fitted)


def test_the_command_draws_every_kind(fitted: dl.DPP, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.safetensors")
    test = dl.datasets.make_registries("safety", 200, rng=1)
    (tmp_path / "test.txt").write_text("".join(",".join(f'"{item}"' for item in basket) + "\n" for basket in test))
    how = ["-o", tmp_path / "all", "--data", tmp_path / "test.txt"]
    report = answer("plot", tmp_path / "model.safetensors", "all", *how)
    kinds = "curve lift sizes spectrum kernel substitutes reliability".split()
    assert report["files"] == [str(tmp_path / "all" / f"{kind}.png") for kind in kinds]
    assert report["notes"] == []
    plots.write_figure(plots.reliability_diagram(plots.reliability_of(fitted, test)), tmp_path / "here.png")
    assert (tmp_path / "here.png").read_bytes() == (tmp_path / "all" / "reliability.png").read_bytes()
    for kind in kinds:
        assert (tmp_path / "all" / f"{kind}.png").read_bytes().startswith(PNG)


def test_the_command_says_what_it_could_not_draw(fitted: dl.DPP, tmp_path: Path) -> None:
    dl.DPP(fitted.kernel, fitted.items).save(tmp_path / "bare.safetensors")
    out = table("plot", tmp_path / "bare.safetensors", "all", "-o", tmp_path / "some", "--top", 5)
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == [
        "kernel.png",
        "lift.png",
        "sizes.png",
        "spectrum.png",
        "substitutes.png",
    ]
    assert [name in " ".join(out.split()) for name in ("no curve:", "no reliability:", "no kernel:")] == [
        True,
        True,
        False,
    ]


def test_the_command_refuses_in_one_line(fitted: dl.DPP, tmp_path: Path) -> None:
    dl.DPP(fitted.kernel, fitted.items).save(tmp_path / "m.safetensors")
    refused = {
        ("curve", "-o", "a.png"): (1, "fit it again"),
        ("spectrum", "-o", "a.jpg"): (1, "must end in .png or .svg"),
        ("kernel", "-o", "a.png", "--around", "x"): (2, "--around is for substitutes"),
        ("reliability", "-o", "a.png"): (2, "--data"),
        ("all", "-o", "m.safetensors"): (1, "cannot be the folder"),
    }
    for arguments, (code, message) in refused.items():
        done = run("plot", "m.safetensors", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), arguments
        assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_notebook_shows_a_figure_by_itself_as_the_file_has_it(fitted: dl.DPP, tmp_path: Path) -> None:
    figure = plots.sizes(fitted)
    plots.write_figure(figure, tmp_path / "sizes.png")
    assert figure._repr_png_() == (tmp_path / "sizes.png").read_bytes()
