"""How a model did from period to period, and on each basket."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas
import pytest

import dpplearn as dl
from helpers.command import answer, run

K = np.array([[0.5, 0.35, 0.0], [0.35, 0.5, 0.0], [0.0, 0.0, 0.4]])
MODEL = dl.DPP.from_K(K, ["cot", "crib", "bib"])
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
        alone = dl.DPP.from_K(np.diag(K.diagonal()), MODEL.items)
        assert row.gain.value == pytest.approx(row.log_likelihood.value - alone.log_likelihood(part))
    assert [row.gain.verdict for row in rows] == ["better", "worse"]


def test_unknown_times_periods_names_and_measures_are_rejected(baskets: dl.Baskets) -> None:
    with pytest.raises(dl.InputError):
        dl.evaluate(MODEL, [["cot"], ["crib"]]).over_time("month")
    found = dl.evaluate(MODEL, baskets)
    for period, name, value in (("moon", "model", "'moon'"), ("month", "nope", "nope"), ("month", "popularity", "pop")):
        with pytest.raises(dl.InputError, match=value):  # popularity has no likelihood
            found.over_time(period, name)


def test_cross_validation_keeps_ids_and_times(baskets: dl.Baskets) -> None:
    found = dl.cross_validate(baskets, folds=2, learner="em", max_iter=1, rng=0)
    assert sorted(found.to_table()["basket"].tolist()) == sorted(IDS)
    assert [row.n_baskets for row in found.over_time("month")] == [60, 30]


def test_the_program_scores_by_month_and_writes_each_basket_with_its_id(tmp_path: Path, baskets: dl.Baskets) -> None:
    files = model, _ = tmp_path / "model.safetensors", tmp_path / "orders.csv"
    MODEL.save(model)
    pandas.DataFrame(baskets.to_table()).to_csv(files[1], index=False)
    report = answer("score", *files, "--columns", "time=time", "--by", "month")
    assert [row["period"] for row in report["over_time"][0]["rows"]] == ["2026-01", "2026-02"]
    assert run("score", *files, "--by", "month").returncode != 0  # without times
    expected = dict(zip(IDS, MODEL.log_prob(baskets).tolist(), strict=True))
    target = tmp_path / "each.parquet"
    report = answer("score", *files, "--columns", "time=time", "--since", "2026-02-01", "-o", target)
    assert report["n_baskets"] == 30
    rows = duckdb.sql(f"SELECT basket, log_likelihood, CAST(time AS DATE) FROM '{target}'").fetchall()
    assert {basket: value for basket, value, _ in rows} == pytest.approx({each: expected[each] for each in IDS[60:]})
    assert {str(time) for *_, time in rows} == {"2026-02-05"}
