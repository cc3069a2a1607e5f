"""The report's tables hold what their rows say, worked out by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dpplearn.experiments.report import costs, summary
from dpplearn.experiments.report.measures import exponent, quartiles, rank_correlation
from dpplearn.experiments.report.parts import PARTS, summarise
from dpplearn.experiments.report.summary import escaped, gains
from dpplearn.experiments.results import About, Results, full_row
from dpplearn.experiments.trials.trial import Job, Row

INF, NAN = math.inf, math.nan
PAPER = {
    "categories": {"alpha": {"wishart": [8.0, 11.0, 12.0], "moments_all": 0.5, "moments_2N": [1.0, 2.0, 3.0]}},
    "averages": {"wishart": 3.76, "moments_all": 0.41, "moments_2N": 4.55},
    "runtime_ratio_KA_over_EM_average": 2.1,
}


def results_of(*rows: Row, paper: dict[str, Any] | None = None) -> Results:
    return Results(About(0, "original", "", ""), rows, "", paper)


def row_of(experiment: str, category: str, trial: int = 0, **found: Any) -> Row:
    return full_row(Job(experiment, category, trial), found)


def with_gain(experiment: str, category: str, trial: int, gain: float, **found: Any) -> Row:
    """Of so many per cent, K-Ascent's test log-likelihood being -10."""
    values = {"em_test": -10 + gain / 10, "ka_test": -10.0, "independent_test": -11.0}
    return row_of(experiment, category, trial, **{**values, **found})


def series(experiment: str, category: str, *values: float, **found: Any) -> list[Row]:
    return [with_gain(experiment, category, trial, gain, **found) for trial, gain in enumerate(values)]


def approx(values: list[float]) -> Any:
    return pytest.approx(values, nan_ok=True)


def test_quartiles_are_between_the_values_on_either_side() -> None:
    assert quartiles([40.0, 10.0, 30.0, 20.0]) == [17.5, 25.0, 32.5]


def test_quartiles_are_those_of_the_finite_values() -> None:
    assert quartiles([1.0, -INF, 2.0, NAN, 3.0, INF]) == [1.5, 2.0, 2.5]
    assert quartiles([-INF, NAN]) == approx([NAN, NAN, NAN])


@pytest.mark.parametrize("power", [0, 1, 2.5])
def test_an_exponent_is_the_power_with_which_times_grow(power: float) -> None:
    sizes = [5, 10, 20, 80]
    assert exponent(sizes, [0.03 * size**power for size in sizes]) == pytest.approx(power, abs=1e-12)


@pytest.mark.parametrize(("share", "out"), [(0.45, True), (0.44, False), (0.6, True), (0.0, False)])
def test_k_ascent_escaped_where_it_has_nine_tenths_of_ems_share_off_the_diagonal(share: float, out: bool) -> None:
    assert escaped({"ka_off_diagonal": share, "em_off_diagonal": 0.5}) is out


def test_gains_are_quartiles_a_category_and_their_average_is_of_medians() -> None:
    rows = series("wishart", "alpha", 5, 10, 20) + series("wishart", "beta", -10, 0) + series("moments", "alpha", 99)
    table = gains(results_of(*rows), "wishart", "wishart")
    assert table is not None
    alpha, beta = table["categories"]
    assert (alpha["category"], alpha["trials"], beta["category"], beta["trials"]) == ("alpha", 3, "beta", 2)
    assert alpha["quartiles"] == approx([7.5, 10, 15])
    assert beta["quartiles"] == approx([-7.5, -5, -2.5])
    assert alpha["range"] == approx([5, 20])
    assert table["average"] == pytest.approx(2.5)


def test_gains_stand_beside_the_papers_where_it_has_the_category() -> None:
    rows = series("wishart", "alpha", 10) + series("wishart", "beta", 3)
    table = gains(results_of(*rows, paper=PAPER), "wishart", "wishart")
    assert table is not None
    alpha, beta = table["categories"]
    assert (alpha["paper"], beta["paper"]) == ([8.0, 11.0, 12.0], [None] * 3)
    assert (alpha["difference"], beta["difference"]) == (pytest.approx(-1), None)
    assert table["paper_average"] == 3.76
    assert table["largest_difference"] == pytest.approx(1)


def test_a_single_figure_of_the_paper_is_taken_for_the_median() -> None:
    table = gains(results_of(*series("moments", "alpha", 2), paper=PAPER), "moments", "moments_all")
    assert table is not None
    assert table["categories"][0]["paper"] == [None, 0.5, None]
    assert table["categories"][0]["difference"] == pytest.approx(1.5)


def test_without_the_paper_there_is_nothing_to_differ_from() -> None:
    table = gains(results_of(*series("wishart", "alpha", 2)), "wishart", "wishart")
    assert table is not None
    for name in ("paper_average", "paper_average_of_these", "largest_difference"):
        assert table[name] is None


def test_a_trial_that_is_impossible_under_a_model_is_left_out_of_the_gains() -> None:
    rows = [*series("wishart", "alpha", 5, 10), with_gain("wishart", "alpha", 2, 0, ka_test=-INF)]
    table = gains(results_of(*rows), "wishart", "wishart")
    assert table is not None
    assert table["categories"][0]["quartiles"] == approx([6.25, 7.5, 8.75])
    assert table["categories"][0]["ka_test"] == -10.0


def few_row(trial: int, em_seen: float, ka_seen: float, **found: Any) -> Row:
    counts = {"n_test": 100, "n_unseen_items": trial, "n_test_seen": 80, "n_test_possible": 50 + 10 * trial}
    values = {"em_test": -INF, "ka_test": -INF, "em_test_seen": em_seen, "ka_test_seen": ka_seen}
    values |= {"em_test_possible": -6.0, "ka_test_possible": -8.0}
    return row_of("moments of 2N", "alpha", trial, **counts, **{**values, **found})


FEW = [
    few_row(0, -9.0, -10.0),
    few_row(1, -9.0, -INF),
    few_row(2, -9.5, -10.0, em_test=-12.0),
    few_row(3, -INF, -INF),
]


def test_draws_of_few_are_counted_where_both_models_allow_a_gain() -> None:
    table = summary.few(results_of(*FEW))
    assert table is not None
    (alpha,) = table["categories"]
    assert (alpha["draws"], alpha["em_finite"], alpha["ka_finite"], alpha["finite_all"]) == (4, 1, 0, 0)
    assert (alpha["em_finite_seen"], alpha["ka_finite_seen"], alpha["finite_seen"]) == (3, 2, 2)
    assert alpha["finite_possible"] == 4
    assert (table["draws"], table["finite"], table["finite_seen"]) == (4, 0, 2)
    shares = [alpha["unseen_items"], alpha["seen_share"], alpha["possible_share"]]
    assert shares == approx([1.5, 0.8, 0.65])


def test_gains_of_few_are_over_the_sets_that_allow_one() -> None:
    printed = row_of("moments of 2N as printed", "alpha", em_test_unruled=-5.0, ka_test_unruled=-4.0)
    table = summary.few(results_of(*FEW, printed))
    assert table is not None
    (alpha,) = table["categories"]
    assert alpha["gain_all"] == approx([NAN] * 3)
    assert alpha["gain_seen"] == approx([6.25, 7.5, 8.75])
    assert alpha["gain_possible"] == approx([25.0] * 3)
    assert (alpha["printed_draws"], alpha["gain_printed"]) == (1, approx([-25.0] * 3))
    assert [table[f"average_{view}"] for view in ("seen", "possible", "printed")] == approx([7.5, 25, -25])


def test_a_category_without_any_gain_does_not_spoil_the_average_of_few() -> None:
    hopeless = {**few_row(0, -INF, -INF), "category": "beta"}
    table = summary.few(results_of(*FEW, hopeless))
    assert table is not None
    assert table["average_seen"] == pytest.approx(7.5)


def prepared(category: str, n_items: int, strength: float) -> Row:
    return row_of("preparation", category, n_items=n_items, n_train=999, strength=strength, admitted=True)


def test_strength_is_correlated_by_rank_with_the_gains() -> None:
    rows = [prepared("alpha", 50, 0.021), prepared("beta", 20, 0.051), prepared("gamma", 10, 0.108)]
    rows += series("wishart", "alpha", 1) + series("wishart", "beta", 2) + series("wishart", "gamma", 50)
    table = summary.strength(results_of(*rows))
    assert table is not None
    assert table["n_items_times_d"] == approx([1.02, 1.08])
    assert table["d_with_inverse_n_items"] == pytest.approx(1)
    (correlations,) = table["correlations"]
    assert correlations["gain"] == "gain_wishart"
    assert (correlations["d"], correlations["inverse_n_items"]) == (pytest.approx(1), pytest.approx(1))
    assert correlations["n_items_times_d"] == pytest.approx(0.5)  # ranks 2, 1, 3


def test_what_does_not_vary_has_no_rank_correlation() -> None:
    assert math.isnan(rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))


def test_strength_is_not_correlated_over_two_categories_or_ones_without_trials() -> None:
    rows = [prepared("alpha", 50, 0.021), prepared("beta", 20, 0.051), prepared("gamma", 10, 0.108)]
    rows += series("wishart", "alpha", 1) + series("wishart", "beta", 2)
    assert summary.strength(results_of(*rows)) is None


def trapped(category: str, trial: int, ka_share: float, first_zeros: int) -> Row:
    found: Row = {"n_items": 20, "ka_first_zeros": first_zeros, "ka_first_ones": 0, "ka_zeros": 3, "em_zeros": 1}
    found |= {"ka_off_diagonal": ka_share, "em_off_diagonal": 0.5}
    return row_of(
        "wishart", category, trial, **found, ka_train=-9.5 - trial, em_train=-9.0, independent_train=-10.0 - trial
    )


def test_the_trap_counts_escapes_and_truncated_eigenvalues() -> None:
    rows = [trapped("alpha", 0, 0.1, 10), trapped("alpha", 1, 0.5, 14), trapped("alpha", 2, 0.2, 12)]
    diagonal = row_of("diagonal", "alpha", em_off_diagonal=0.0, ka_off_diagonal=1e-20)
    table = summary.trap(results_of(*rows, trapped("beta", 0, 0.49, 4), diagonal))
    assert table is not None
    alpha, beta = table["categories"]
    assert (alpha["escaped"], beta["escaped"], table["escaped"], table["trials"]) == (1, 1, 2, 4)
    assert (alpha["first_zeros"], alpha["first_zeros_share"]) == (12.0, 0.6)
    assert table["first_zeros_share"] == pytest.approx((0.6 + 0.2) / 2)
    assert alpha["ka_off_diagonal"] == approx([0.15, 0.2, 0.35])
    assert alpha["ka_above_independent"] == pytest.approx(0.5)
    assert alpha["em_above_independent"] == pytest.approx(2)
    assert (alpha["diagonal_off_diagonal"], beta["diagonal_off_diagonal"]) == (1e-20, None)
    assert (table["largest_off_diagonal_from_diagonal"], table["n_diagonal"]) == (1e-20, 1)


def test_a_smaller_tolerance_is_held_against_the_same_trials() -> None:
    paper = series("wishart", "alpha", 10, 20, 99, em_iterations=5, ka_iterations=7)
    small = series("wishart to 1e-6", "alpha", 4, 6, em_iterations=50, ka_iterations=70)
    table = summary.tolerance(results_of(*paper, *small))
    assert table is not None
    (alpha,) = table["categories"]
    assert (alpha["paper_rule"][1], alpha["small"][1]) == (pytest.approx(15), pytest.approx(5))
    assert alpha["em_gained"] == pytest.approx(-1)  # from -9 and -8 to -9.6 and -9.4
    assert (alpha["em_iterations"], alpha["ka_iterations"]) == ([5, 50], [7, 70])


def test_preparation_counts_admitted_categories_of_the_papers_sizes() -> None:
    sizes = {"alpha": (30, 700, True), "beta": (40, 800, True), "gamma": (9, 100, False)}
    rows = [
        row_of("preparation", category, n_items=N, n_train=n, admitted=used) for category, (N, n, used) in sizes.items()
    ]
    paper = {category: {"n_items": N, "training_registries": 700} for category, (N, _, _) in sizes.items()}
    table = summary.preparation(results_of(*rows, paper={"categories": paper}))
    assert table is not None
    assert (table["n_admitted"], table["n_known"], table["n_equal"]) == (2, 2, 1)
    assert (table["mean_n_items"], table["mean_n_train"]) == (35.0, 750.0)


def test_runtime_is_the_median_of_ratios_and_averaged_over_categories() -> None:
    same = {"n_items": 20, "n_distinct": 5, "em_iterations": 1, "ka_iterations": 1}
    times = {"alpha": [(1.0, 2.0), (2.0, 2.0), (1.0, 9.0)], "beta": [(0.5, 2.0)]}
    rows = [
        with_gain("wishart", category, trial, 1, **same, em_seconds=em, ka_seconds=ka)
        for category, found in times.items()
        for trial, (em, ka) in enumerate(found)
    ]
    table = costs.runtime(results_of(*rows))
    assert table is not None
    assert [line["library_ratio"] for line in table["categories"]] == [2.0, 4.0]
    assert table["library_average"] == 3.0
    assert math.isnan(table["printed_average"])


def recovered(trial: int, em: float, ka: float) -> Row:
    found = {"em": em, "ka": ka, "independent": 0.4}
    row = {f"{name}_{column}": value for name, value in found.items() for column in ("kl", "kl_error", "test")}
    return row_of("recovery", "wishart", trial, n_items=20, n_train=40, truth_test=-1.0, **row)


def test_a_divergence_that_is_mostly_infinite_is_infinite_and_not_the_best() -> None:
    rows = [recovered(0, 0.1, 0.05), recovered(1, 0.2, INF), recovered(2, 0.3, INF)]
    table = summary.recovery(results_of(*rows))
    assert table is not None
    (cell,) = table["cells"]
    assert (cell["em_kl"], cell["ka_kl"], cell["nearest"]) == (0.2, INF, "em")
    assert (cell["em_finite"], cell["ka_finite"], cell["trials"]) == (3, 1, 3)


def test_no_model_is_nearest_where_all_divergences_are_infinite() -> None:
    row = recovered(0, INF, INF) | {"independent_kl": INF}
    table = summary.recovery(results_of(row))
    assert table is not None
    assert table["cells"][0]["nearest"] is None


def test_growth_is_sorted_by_size_before_its_last_doubling_is_taken() -> None:
    sizes = {40: 160.0, 10: 10.0, 20: 40.0}  # grows with the square
    rows = [
        full_row(
            Job("growth", "k", 0, 60, 9, k),
            {"n_items": 60, "n_train": 9, "set_size": k}
            | {f"{name}_seconds": time for name in ("em", "ka", "em_matrix", "ka_matrix")},
        )
        for k, time in sizes.items()
    ]
    table = costs.growth(results_of(*rows))
    assert table is not None
    (axis,) = table["axes"]
    assert (axis["sizes"], axis["fixed"]) == ([10, 20, 40], {"n": 9, "N": 60})
    assert axis["last"]["em"] == pytest.approx(2)


def test_authors_runs_are_compared_by_the_larger_difference() -> None:
    found: Row = {"em_test": -5.0, "authors_em_test": -5.25, "ka_test": -6.0, "authors_ka_test": -5.5}
    same = {f"{whose}{name}_iterations": 9 for whose in ("", "authors_") for name in ("em", "ka")}
    rows = [
        row_of("authors", "a_0", **found, **same),
        row_of("authors", "a_1", **found, **{**same, "em_iterations": 8}),
    ]
    table = summary.authors(results_of(*rows))
    assert table is not None
    assert (table["largest_difference"], table["same_iterations"], len(table["runs"])) == (0.5, 1, 2)


def test_the_registry_is_that_of_the_first_trial() -> None:
    category = summary.REGISTRY_CATEGORY
    rows = [row_of("wishart", category, trial, em_set=["a", "b", str(trial)], ka_set=["b", "c"]) for trial in (1, 0)]
    table = summary.registry(results_of(*rows))
    assert table is not None
    assert (table["em"], table["ka"], table["shared"]) == (["a", "b", "0"], ["b", "c"], 1)


def test_experiments_that_were_not_run_have_no_table() -> None:
    assert summarise(results_of()) == dict.fromkeys(PARTS)


def test_tables_are_plain_data() -> None:
    rows = [*series("wishart", "alpha", 1, 2, n_items=20), few_row(0, -9.0, -INF), prepared("alpha", 20, 0.1)]
    for make in (summary.few, summary.preparation, summary.wishart):
        table = make(results_of(*rows, paper=PAPER))
        assert repr(json.loads(json.dumps(table))) == repr(table)
