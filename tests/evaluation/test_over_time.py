"""How a model did from period to period, and on each basket."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pandas
import pytest

import dpplearn as dl
from dpplearn.cli.output import SPACES
from dpplearn.evaluation.intervals import Difference, Estimate
from dpplearn.evaluation.over_time import OverTime, Period
from dpplearn.tools.words import chance, number
from helpers.command import answer, run, table

K = np.array([[0.5, 0.35, 0.0], [0.35, 0.5, 0.0], [0.0, 0.0, 0.4]])
MODEL = dl.DPP(dl.Kernel.from_K(K), ["cot", "crib", "bib"])
TIMES = ["2026-01-05"] * 60 + ["2026-02-05"] * 30
IDS = [f"o{number}" for number in range(90)]


@pytest.fixture
def baskets() -> dl.Baskets:
    """In January one of the two is in every basket, in February both are: the model holds that unlikely."""
    january = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 15
    return dl.Baskets.from_lists([*january, *[["cot", "crib"]] * 30], items=MODEL.items, ids=IDS, times=TIMES)


def test_a_period_has_the_means_of_its_own_baskets(baskets: dl.Baskets) -> None:
    found = dl.evaluate(MODEL, baskets)
    rows = list(found.over_time("month"))
    assert [(row.period, row.n_baskets) for row in rows] == [("2026-01", 60), ("2026-02", 30)]
    for row, part in zip(rows, baskets.split(before="2026-02-01"), strict=True):
        assert row.log_likelihood.value == pytest.approx(MODEL.log_likelihood(part))
        alone = dl.DPP(dl.Kernel.from_K(np.diag(K.diagonal())), MODEL.items)
        assert row.gain.value == pytest.approx(row.log_likelihood.value - alone.log_likelihood(part))
    assert [row.gain.verdict for row in rows] == ["better", "worse"]


def test_a_lead_that_shrinks_is_said_in_words(baskets: dl.Baskets) -> None:
    found = dl.evaluate(MODEL, baskets)
    assert "has shrunk" in found.over_time("month").in_words
    assert "single year" in found.over_time("year").in_words
    printed = str(found.over_time("week"))
    assert max(map(len, printed.splitlines())) <= 80
    alike = dl.Baskets.from_lists(list(baskets)[:60], items=MODEL.items, times=TIMES[30:])
    assert "chance can explain" in dl.evaluate(MODEL, alike).over_time("month").in_words


def test_baskets_without_times_have_no_periods(baskets: dl.Baskets) -> None:
    found = dl.evaluate(MODEL, [["cot"], ["crib"]])
    with pytest.raises(dl.InputError):
        found.over_time("month")
    with pytest.raises(dl.InputError, match=r"by.*'moon'"):
        dl.evaluate(MODEL, baskets).over_time("moon")


def test_what_has_no_likelihood_has_none_over_time(baskets: dl.Baskets) -> None:
    found = dl.evaluate(MODEL, baskets)
    for name, said in (("nope", "'nope' was not evaluated"), ("popularity", "'popularity' has no 'log_likelihood'")):
        with pytest.raises(dl.InputError, match=said):
            found.over_time("month", name)


def test_cross_validation_keeps_ids_and_times(baskets: dl.Baskets) -> None:
    found = dl.cross_validate(baskets, folds=2, learner="em", max_iter=1, rng=0)
    assert sorted(found.to_table()["basket"].tolist()) == sorted(IDS)
    assert [row.n_baskets for row in found.over_time("month")] == [60, 30]


@pytest.fixture
def files(tmp_path: Path, baskets: dl.Baskets) -> tuple[Path, Path]:
    MODEL.save(tmp_path / "model.safetensors")
    pandas.DataFrame(baskets.to_table()).to_csv(tmp_path / "orders.csv", index=False)
    return tmp_path / "model.safetensors", tmp_path / "orders.csv"


def test_the_program_scores_by_month_at_80_columns(files: tuple[Path, Path]) -> None:
    call = ("score", *files, "--time", "time", "--by", "month")
    report = answer(*call)
    assert [row["period"] for row in report["over_time"][0]["rows"]] == ["2026-01", "2026-02"]
    shown = table(*call)
    assert "model by month" in shown
    assert "has shrunk" in " ".join(shown.split())
    assert answer("score", *files, "--time", "time", "--since", "2026-02-01")["n_baskets"] == 30
    assert "--by month needs the column of times" in run("score", *files, "--by", "month").stderr


def test_no_figure_is_cut_at_80_columns() -> None:
    """Of large baskets by day, and of so few that nobody is sure of anything."""
    lead, rank = Difference(0.5, 0.4, 0.6, 1.0), Estimate(100.0, 100.0, 100.0)
    rows = (Period("2026-01-05", 1000, 1000.0, Estimate(-112.5, -113.0, -112.0), lead, rank),)
    between = min(SPACES)  # where there is too little room for more
    assert OverTime("model", "day", rows).table.fitted(80 - 2, between).width(between) <= 80 - 2


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_the_outcome_of_every_basket_is_written_by_its_own_id(
    files: tuple[Path, Path], baskets: dl.Baskets, ending: str
) -> None:
    target = files[0].with_name(f"each.{ending}")
    assert answer("score", *files, "--time", "time", "-o", target)["output"] == str(target)
    rows = duckdb.sql(f"SELECT basket, model, log_likelihood, CAST(time AS DATE) FROM '{target}'").fetchall()
    expected = dict(zip(IDS, MODEL.log_prob(baskets).tolist(), strict=True))
    assert {basket: value for basket, _, value, _ in rows} == pytest.approx(expected)
    assert {(model, str(time)) for _, model, _, time in rows} == {("model", "2026-01-05"), ("model", "2026-02-05")}


def test_long_ids_are_cut_and_figures_are_not(tmp_path: Path, baskets: dl.Baskets) -> None:
    MODEL.save(tmp_path / "model.safetensors")
    rows = pandas.DataFrame(baskets[:9].to_table())
    rows["basket"] = [f"order-{name:0>70}" for name in rows["basket"]]
    rows.to_csv(tmp_path / "orders.csv", index=False)
    each = table("score", tmp_path / "model.safetensors", tmp_path / "orders.csv", "--each")
    assert number(MODEL.log_prob(["cot"])) in each
    found = table("recommend", tmp_path / "model.safetensors", "--baskets", tmp_path / "orders.csv", "-k", 1)
    assert chance(MODEL.recommend(["cot"], 1)[0].probability) in found
    for shown in (each, found):
        assert not re.search(r"\.\d+…", shown)
        assert all(f"…{'0' * 4}" in shown and f"o{place}" in shown for place in range(9))


def test_a_table_of_outcomes_goes_over_no_source(files: tuple[Path, Path]) -> None:
    before = files[1].read_bytes()
    done = run("score", *files, "-o", files[1])
    assert (done.returncode, "would overwrite" in done.stderr) == (2, True)
    assert files[1].read_bytes() == before
