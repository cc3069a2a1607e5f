"""The commands give the answers of the library, as JSON and as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from helpers.command import answer, both, parsed, run, table


def test_fit_reports_the_model_that_it_saved(shop: Path, dpp: dl.DPP, orders: dl.Baskets) -> None:
    report = parsed((shop / "model.json").read_text())
    same = dl.fit_dpp(orders, rng=5, nonempty=False)
    assert report["train"]["log_likelihood"] == pytest.approx(dpp.log_likelihood(orders), abs=1e-9)
    assert report["train"]["log_likelihood"] == pytest.approx(same.log_likelihood, abs=1e-9)
    assert (report["stop"], report["n_iter"], report["seed"]) == (same.stop.name, same.n_iter, 5)
    assert report["shrinkage"] == dpp.learned.shrinkage == same.shrinkage > 0
    assert report["shrinkage_chosen"] is dpp.learned.shrinkage_chosen is True
    assert [report["validation"], report["validation_log_likelihood"], report["nonempty"]] == [None, None, False]


def test_fit_reports_held_out_baskets_and_every_restart(few_orders: Path, tmp_path: Path) -> None:
    arguments = ["--holdout", 0.25, "--seed", 2, "--restarts", 2, "--max-iter", 5, "--init", "moments", "--threads", 1]
    report = answer("fit", few_orders, "-o", tmp_path / "m", *arguments, "--may-be-empty")
    held, (train, test) = dl.load(tmp_path / "m"), dl.read_baskets(few_orders).split(0.75, rng=2)
    smoothed = (train.frequencies() * len(train) + 0.5) / (len(train) + 1)
    independent = dl.DPP.from_K(np.diag(smoothed), train.items)
    for name, part in (("train", train), ("test", test)):
        assert report[name]["log_likelihood"] == pytest.approx(held.log_likelihood(part), abs=1e-9)
        expected = held.learned.independent_log_likelihood if part is train else independent.log_likelihood(part)
        assert report[name]["independent_log_likelihood"] == pytest.approx(expected, abs=1e-9)
    assert len(report["restarts"]) == 2


def test_fit_takes_shrinkage_validation_and_nonempty(shop: Path, orders: dl.Baskets) -> None:
    call = ("fit", shop / "orders.csv", "-o", shop / "p.safetensors", "--seed", 1, "--threads", 1)
    report = answer(*call, "--shrinkage", 0.5, "--validation", 0.25, "--nonempty")
    same = dl.fit_dpp(orders, shrinkage=0.5, validation=0.25, nonempty=True, rng=1, threads=1)
    assert (report["shrinkage"], report["validation"], report["nonempty"]) == (0.5, 0.25, True)
    assert (report["shrinkage_chosen"], report["stop"], report["n_iter"]) == (False, same.stop.name, same.n_iter)
    held = same.model.learned.validation_log_likelihood
    assert report["validation_log_likelihood"] == pytest.approx(held, abs=1e-9)
    assert report["train"]["log_likelihood"] == pytest.approx(same.log_likelihood, abs=1e-9)


def test_score_gives_the_numbers_of_evaluate(shop: Path, model: Path, dpp: dl.DPP, orders: dl.Baskets) -> None:
    rough = dl.DPP.from_K(np.diag(orders.frequencies()), orders.items)
    rough.save(shop / "rough.safetensors")
    call = ("score", model, shop / "orders.csv", "-k", 3, "-k", 7, "--against", shop / "rough.safetensors")
    report, out = both(*call)
    found = dl.evaluate({"model": dpp, "rough": rough}, orders, k=(3, 7))
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["model", "rough", "independent items", "popularity", "item-to-item", "EASE"]
    assert rows["model"]["log_likelihood"]["value"] == pytest.approx(dpp.log_likelihood(orders), abs=1e-9)
    assert rows["rough"]["log_likelihood"]["value"] == pytest.approx(rough.log_likelihood(orders), abs=1e-9)
    assert rows["model"]["size_distance"] == pytest.approx(found.size_distance["model"], abs=1e-9)
    assert rows["EASE"]["size_distance"] is None
    assert rows["item-to-item"]["ndcg@7_all_but_one"]["value"] == pytest.approx(
        found.estimate("item-to-item", "ndcg@7").value
    )
    assert f"{rows['model']['log_likelihood']['value']:.4f}" in out


@pytest.mark.slow
def test_compare_cross_validates_models_or_learners(shop: Path, few_orders: Path, orders: dl.Baskets) -> None:
    kinds = ["symmetric DPP", "nonsymmetric DPP", "segments alone", "mixture", "independent items"]
    report, _ = both("compare", few_orders, "--folds", 2)
    assert [row["name"] for row in report["rows"]][:5] == kinds
    assert all(isinstance(row["log_likelihood"]["value"], float) for row in report["rows"][:5])
    call = ("compare", shop / "orders.csv", "--learner", "em", "--learner", "natural-em")
    report = answer(*call, "--folds", 2, "--seed", 0)
    same = {learner: {"learner": learner} for learner in ("em", "natural-em")}
    assert report["models"] == same
    found = dl.cross_validate(orders, same, folds=2, rng=0)
    for row in report["rows"][:2]:
        assert row["log_likelihood"]["value"] == pytest.approx(found.estimate(row["name"]).value, abs=1e-9)
        assert row["folds"] == pytest.approx(found.fold_means(row["name"]).tolist(), abs=1e-9)


def test_probability_zero_is_minus_infinity_as_a_string_in_json(tmp_path: Path) -> None:
    dl.DPP.from_K(np.diag([0.5, 0.0]), ["a", "b"]).save(tmp_path / "m.safetensors")
    (tmp_path / "b.txt").write_text("a\na,b\n\n")
    report = answer("score", tmp_path / "m.safetensors", tmp_path / "b.txt")
    row = report["rows"][0]
    assert (row["log_likelihood"]["value"], row["n_impossible"]) == ("-inf", 1)
    assert row["log_likelihood_of_possible"] == pytest.approx(np.log(0.5))
    assert report["differences"][0]["value"] is None  # -inf against -inf is no number


def test_a_warning_is_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("a,a\nb\na,b\n")
    done = run("fit", tmp_path / "b.txt", "-o", tmp_path / "m.safetensors", "--json")
    assert done.returncode == 0
    assert parsed(done.stdout)["n_baskets"] == 3
    assert done.stderr.startswith("dpplearn: warning: 1 ")
    assert done.stderr.count("\n") == 1


def test_names_are_escaped_and_cut_and_numbers_are_whole(tmp_path: Path) -> None:
    names = ["[red]hay[/red]", "evil\x1b[2Jname\n", "word " * 30, "x" * 150]
    dl.DPP.from_K(np.diag([0.1234, 0.2345, 0.3456, 0.4567]), names).save(tmp_path / "m.safetensors")
    out = table("recommend", tmp_path / "m.safetensors")
    assert "[red]hay[/red]" in out
    assert "\x1b" not in out
    assert r"evil\x1b[2Jname" in out
    assert all(value in out for value in ("0.1234", "0.2345", "0.3456", "0.4567"))


def test_the_held_out_part_is_written_and_can_be_scored(few_orders: Path, tmp_path: Path) -> None:
    part = tmp_path / "test.parquet"
    fit = ["fit", few_orders, "-o", tmp_path / "m", "--seed", 2, "--max-iter", 2, "--segments", 1]
    report = answer(*fit, "--holdout", 0.25, "--holdout-file", part)
    _, test = dl.read_baskets(few_orders).split(0.75, rng=2)
    written = dl.read_baskets(part)
    assert sorted(map(sorted, written)) == sorted(map(sorted, (basket for basket in test if basket)))
    assert report["test"]["n_baskets"] == len(test)
    for wrong in ([*fit, "--holdout-file", part], [*fit, "--holdout", 0.25, "--holdout-file", part]):
        assert run(*wrong).returncode == 2  # without --holdout; over an existing file
    assert run(*fit, "--holdout", 0.25, "--holdout-file", few_orders, "--force").returncode == 2  # over the data


def test_held_out_baskets_keep_the_names_of_their_columns_and_their_times(tmp_path: Path) -> None:
    rows = [f"{n},{item},2026-{1 + n % 12:02}-03" for n in range(40) for item in "ab"[: 1 + n % 2]]
    (tmp_path / "b.csv").write_text("\n".join(["order,sku,day", *rows]))
    columns = ("--columns", "basket=order,item=sku,time=day")
    part, fit = tmp_path / "test.csv", ("fit", tmp_path / "b.csv", "-o", tmp_path / "m", "--max-iter", 1, "--seed", 0)
    answer(*fit, "--holdout", 0.5, "--holdout-file", part, *columns)
    _, test = dl.read_baskets(tmp_path / "b.csv", basket="order", item="sku", time="day").split(0.5, rng=0)
    written = dl.read_baskets(part, basket="order", item="sku", time="day")
    assert dict(zip(written.ids, written.times, strict=True)) == dict(zip(test.ids, test.times, strict=True))
    assert answer("score", tmp_path / "m", part, *columns, "--by", "month")["over_time"]
