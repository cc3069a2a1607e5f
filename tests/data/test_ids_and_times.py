"""Identifiers and times of baskets: reading, what keeps them, selecting by time, calendar periods and decay."""

from __future__ import annotations

import inspect
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import numpy as np
import pandas
import pytest

import dpplearn as dl
from dpplearn.cli.app import COMMANDS, command
from dpplearn.data.baskets import known_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.times import as_time, decay, periods
from helpers.command import answer, run
from helpers.problems import random_kernel

TIMES = pandas.to_datetime(["2026-03-02 09:00", "2026-03-01 23:59", "2026-02-27 00:00", "2026-03-01 00:00"])
TABLE = pandas.DataFrame({"basket": ["x9", "x9", "a1", "m5"], "item": ["crib", "bib", "bib", "cot"], "at": TIMES})
LATEST = ["2026-02-27T00:00:00", "2026-03-01T00:00:00", "2026-03-02T09:00:00"]  # of a1, m5, x9
IDS = ["a1", "m5", "x9"]
MODEL = dl.DPP(random_kernel(np.random.default_rng(0), 4), ["bib", "cot", "crib", "cup"])


@pytest.fixture
def orders() -> dl.Baskets:
    return dl.Baskets.from_table(TABLE, time="at")


def told(baskets: dl.Baskets) -> list[str]:
    """Return the times, which must be those of the baskets with these identifiers."""
    times = np.datetime_as_string(baskets.times, "s").tolist()
    if baskets.ids is not None and set(baskets.ids.tolist()) <= set(IDS):
        assert times == [LATEST[IDS.index(each)] for each in baskets.ids.tolist()]
    assert len(times) == len(baskets)
    return times


def test_a_basket_has_its_identifier_and_the_latest_time_of_its_rows(orders: dl.Baskets) -> None:
    assert (told(orders), orders.ids.tolist()) == (LATEST, IDS)
    assert list(orders) == [("bib",), ("cot",), ("bib", "crib")]
    assert dl.Baskets.from_table(TABLE).times is None
    assert dl.Baskets.from_lists([["bib"]]).ids is None


def test_identifiers_are_integers_if_all_are_plain_64_bit_integers(tmp_path: Path) -> None:
    for written, expected in ((["10", "9"], [9, 10]), (["010", "9"], ["010", "9"]), (["1" * 30, "2"], ["1" * 30, "2"])):
        (tmp_path / "a.csv").write_text("basket,item\n" + "".join(f"{each},bib\n" for each in written))
        assert dl.read_baskets(tmp_path / "a.csv").ids.tolist() == expected


def test_baskets_without_identifiers_keep_their_numbers_where_some_are_left_out() -> None:
    lists = [["new"], ["bib"], ["cot"]]
    assert known_baskets(lists, MODEL.catalogue, "drop")[0].ids.tolist() == [1, 2]
    assert dl.Baskets.from_lists(lists).of_items(["cot"]).ids.tolist() == [2]


def test_times_are_read_from_files_and_may_be_unix_timestamps(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "orders.csv", index=False)
    TABLE.to_parquet(tmp_path / "orders.parquet")
    for ending in ("csv", "parquet"):
        assert told(dl.read_baskets(tmp_path / f"orders.{ending}", time="at")) == LATEST
    seconds = TABLE["at"].astype("datetime64[s]").astype("int64")
    for at in (seconds, seconds * 1000, seconds.astype(float), seconds.astype(str)):
        table = TABLE.assign(at=at, w=[2.5, 2.5, 7, 8])
        for weight in (None, "w"):
            assert told(dl.Baskets.from_table(table, weight=weight, time="at")) == LATEST
    table.to_csv(tmp_path / "orders.csv", index=False)
    assert told(dl.read_baskets(tmp_path / "orders.csv", time="at")) == LATEST
    with pytest.raises(dl.InputError, match="20260301"):  # neither seconds nor a date
        dl.Baskets.from_table(TABLE.assign(at=20260301), time="at")


def test_times_in_text_are_in_utc_unless_they_say_otherwise_and_malformed_ones_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("basket,item,at\n1,bib,2026-03-01T12:00:00+02:00\n2,bib,2026-03-01 12:00\n")
    assert told(dl.read_baskets(tmp_path / "a.csv", time="at")) == ["2026-03-01T10:00:00", "2026-03-01T12:00:00"]
    for value in ("yesterday", ""):
        (tmp_path / "a.csv").write_text(f"basket,item,at\n1,bib,2026-03-01\n2,bib,{value}\n")
        with pytest.raises(dl.InputError, match=f"'at'.*{value}"):
            dl.read_baskets(tmp_path / "a.csv", time="at")
    (tmp_path / "a.txt").write_text("bib crib\n")
    with pytest.raises(dl.InputError, match="'at'"):
        dl.read_baskets(tmp_path / "a.txt", time="at")


def test_a_time_may_be_what_python_numpy_and_pandas_have_if_it_is_a_time(orders: dl.Baskets) -> None:
    zone = timezone(timedelta(hours=2))
    texts = "2026-03-01", "20260301", "2026-03-01T02:00+02:00"
    moments = date(2026, 3, 1), datetime(2026, 3, 1, 2, tzinfo=zone), np.datetime64("2026-03-01")
    for value in (*texts, *moments, pandas.Timestamp("2026-03-01", tz=UTC)):
        assert as_time(value) == np.datetime64("2026-03-01")
        before, after = orders.split(before=value)
        assert [before.ids.tolist(), after.ids.tolist()] == [["a1"], ["m5", "x9"]]
    for value in ("soon", float("nan"), None, True, pandas.NaT, "inf", 10**400, 3, 20260301, "9999-12-31T23:59-10:00"):
        with pytest.raises(dl.InputError):
            dl.Baskets.from_lists([["bib"]], times=[value])


def test_lists_take_ids_and_times_one_per_basket() -> None:
    lists = [["bib"], ["crib"]]
    baskets = dl.Baskets.from_lists(lists, ids=["b", "a"], times=["2026-03-01", 1.5e9])
    assert (baskets.ids.tolist(), told(baskets)) == (["b", "a"], ["2026-03-01T00:00:00", "2017-07-14T02:40:00"])
    assert dl.Baskets.from_lists(lists, ids=[7, 3]).ids.tolist() == [7, 3]
    for wrong in ({"ids": ["a"]}, {"times": ["2026-03-01"]}):
        with pytest.raises(dl.InputError):
            dl.Baskets.from_lists(lists, **wrong)


def test_they_go_where_their_baskets_go(orders: dl.Baskets) -> None:
    last_two = LATEST[1:]
    assert told(orders.subset([2, 0])) == [LATEST[2], LATEST[0]]
    assert told(orders.weighted(np.array([0, 1, 2]))) == last_two
    assert told(orders.reweighted(0.3).as_counts()) == told(orders.over(Catalogue.of(["crib", "cot", "bib"])))
    assert told(orders.most_frequent(1)) == [LATEST[0], LATEST[2]]
    assert told(orders.known_to(Catalogue.of(["crib"]))[0]) == LATEST
    assert told(dl.Baskets.from_table(orders.to_table(), time="time")) == LATEST
    twice = dl.Baskets.together([orders, orders[:1]])
    assert (told(twice), twice.ids.tolist()) == ([*LATEST, LATEST[0]], [*IDS, IDS[0]])
    first, second = orders.split(0.7, rng=0)
    assert sorted(told(first) + told(second)) == LATEST


def test_merged_sets_have_no_identifier_and_no_time(orders: dl.Baskets) -> None:
    without = dl.Baskets.from_lists([["bib"]])
    with pytest.raises(dl.InputError):
        without.since("2026-03-01")
    for wrong in ({}, {"fraction": 0.5, "before": "2026-03-01"}, {"fraction": "2026-03-01"}):
        with pytest.raises(dl.InputError, match="before="):
            without.split(**wrong)
    for merged in (orders.deduplicated(), dl.Baskets.together([orders, without])):
        assert merged.times is merged.ids is None


def test_periods_are_those_of_the_calendar_and_weeks_begin_on_monday() -> None:
    times = np.array(["2026-01-05", "2025-12-31T23:59", "2026-01-04"], dtype="datetime64[us]")
    for by, expected in (
        ("day", ["2025-12-31", "2026-01-04", "2026-01-05"]),
        ("week", ["2025-12-29", "2026-01-05"]),
        ("month", ["2025-12", "2026-01"]),
        ("quarter", ["2025-Q4", "2026-Q1"]),
        ("year", ["2025", "2026"]),
    ):
        names, which = periods(times, by)
        assert names == expected
        assert names[which[1]] == expected[0]
        assert which[0] == len(expected) - 1


def test_a_basket_counts_half_after_every_half_life() -> None:
    times = np.array(["2026-01-01", "2026-01-08", "2026-01-15"], dtype="datetime64[us]")
    for half_life in ("1w", "7d", 7, "168h"):
        np.testing.assert_allclose(decay(times, half_life, times[-1]), [0.25, 0.5, 1])
    for wrong in ("soon", 0, "-7d", None, "1e30d", "1e-12d"):
        with pytest.raises(dl.InputError):
            decay(times, wrong, times[-1])


def test_every_command_that_reads_baskets_can_be_told_of_what_time() -> None:
    reading = {name: inspect.signature(command(name)).parameters for name in COMMANDS if name != "prepare"}
    without = [name for name, has in reading.items() if "weight" in has and not {"time", "since", "before"} <= {*has}]
    assert without == []


def test_the_program_learns_from_the_time_that_is_asked_for(tmp_path: Path) -> None:
    lists, days = [["bib"], ["bib", "cot"], ["cot"], ["bib", "crib"]] * 5, [f"2026-03-{day:02}" for day in range(1, 21)]
    table = pandas.DataFrame(dl.Baskets.from_lists(lists, times=days).to_table())
    table.to_csv(tmp_path / "orders.csv", index=False)
    call = ("fit", tmp_path / "orders.csv", "-o", tmp_path / "m.safetensors", "--model", "dpp", "--shrinkage", 1, "-q")
    assert run(*call, "--columns", "time=time", "--since", "2026-03-05", "--before", "2026-03-17").returncode == 0
    assert dl.load(tmp_path / "m.safetensors").learned.n_baskets == 12
    assert run(*call, "--columns", "time=time", "--since", "2027-01-01").returncode == 1


def test_recommendations_and_scores_are_told_by_identifiers(tmp_path: Path) -> None:
    names = "model.safetensors", "orders.csv", "out.csv", "scores.parquet"
    model, data, out, scores = (tmp_path / name for name in names)
    MODEL.save(model)
    TABLE.to_csv(data, index=False)
    answer("recommend", model, "--baskets", data, "-o", out)
    assert list(dict.fromkeys(pandas.read_csv(out)["basket"])) == IDS
    answer("score", model, data, "-o", scores)
    assert [row[0] for row in duckdb.sql(f"SELECT basket FROM '{scores}'").fetchall()] == IDS


def test_a_row_without_a_score_is_written(tmp_path: Path) -> None:
    model, data = tmp_path / "model.safetensors", tmp_path / "orders.csv"
    dl.DPP(MODEL.kernel, MODEL.items, nonempty=True).save(model)
    data.write_text("basket,item\n7,new\n8," + "\n8,".join(map(str, MODEL.items)) + "\n")
    answer("recommend", model, "--baskets", data, "--unknown", "drop", "-k", 1, "-o", data.with_name("out.csv"))
    header, row = data.with_name("out.csv").read_text().splitlines()
    assert header == "basket,rank,item,score,probability"
    assert row.startswith("7,1,")
    assert row.split(",")[3] == ""  # there is no score given the empty basket
