"""`dpplearn reproduce`, run as a user runs it: the quick run on the original registries, and all that can go wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpplearn.experiments.plan import QUICK, QUICK_CATEGORIES, plan
from dpplearn.experiments.registries import Source
from dpplearn.experiments.report.claims import AUTHORS_WITHIN, MEDIAN_WITHIN
from dpplearn.experiments.report.parts import FIGURES
from dpplearn.experiments.reproduction import JOURNAL, reproduce
from dpplearn.experiments.results import job_name, read_results
from dpplearn.experiments.runner import run_trial
from dpplearn.experiments.trials.trial import Row
from helpers.made_results import made_results
from helpers.program import ENVIRONMENT, Terminal, answer, begin, run, table, wait_for
from helpers.registry_files import shoppers, write_registry

SEED = 0  # what the program takes where none is given
ONE_TRIAL = ("reproduce", "--quick", "--categories", "furniture", "--trials", 1)


def lines_of(report: Any, name: str) -> dict[str, Any]:
    return {line["category"]: line for line in report["tables"][name]["categories"]}


def without_times(row: Row) -> str:
    """As text, in which NaN equals NaN."""
    return repr({name: value for name, value in row.items() if not name.endswith("seconds")})


def test_the_quick_run_on_the_original_registries_shows_what_the_paper_shows(shared: Path, tmp_path: Path) -> None:
    """The algorithms as printed, which take most of the time of a quick run, in one category instead of all four."""
    folder, data = tmp_path / "report", shared / "data" / "registries"
    source, scale = (
        Source(data, SEED, shared / "reference"),
        replace(QUICK, small_tolerance=1, printed=0, few_printed=0),
    )
    reproduce(folder, source, categories=QUICK_CATEGORIES, scale=replace(scale, recovery=0, growth=0))
    report = answer(*ONE_TRIAL, "--data", data, "-o", folder)

    assert {path.name for path in folder.iterdir()} == {
        "report.html",
        "results.parquet",
        *(f"{name}.svg" for name in FIGURES),
    }
    preparation = report["tables"]["preparation"]
    assert (preparation["n_admitted"], preparation["n_known"], preparation["n_equal"]) == (13, 13, 13)
    assert (round(preparation["mean_n_items"]), round(preparation["mean_n_train"])) == (71, 8585)

    gains = lines_of(report, "wishart")
    assert set(gains) == set(QUICK_CATEGORIES)
    for line in gains.values():
        assert line["trials"] == 3
        assert abs(line["difference"]) <= MEDIAN_WITHIN
    assert all(abs(line["quartiles"][1]) < 1 for line in lines_of(report, "moments").values())
    assert all(line["small"][1] < 0.5 for line in lines_of(report, "tolerance").values())

    few = lines_of(report, "few")
    assert all(line["finite_all"] == 0 and line["unseen_items"] > 0 for line in few.values())
    assert all(line["finite_possible"] == line["draws"] for line in few.values())

    trap = report["tables"]["trap"]
    assert trap["largest_off_diagonal_from_diagonal"] == 0
    assert trap["first_zeros_share"] > 0.5
    assert all(line["ka_off_diagonal"][1] < 0.6 < line["em_off_diagonal"][1] for line in trap["categories"])

    authors = report["tables"]["authors"]
    assert len(authors["runs"]) == authors["same_iterations"] == 12
    assert authors["largest_difference"] <= AUTHORS_WITHIN
    assert report["tables"]["runtime"]["disagreement"] < 1e-9

    assert len(report["tables"]["registry"]["em"]) == 10
    assert {claim["section"] for claim in report["claims"]} >= {"wishart", "moments", "few", "strength", "trap"}

    page = (folder / "report.html").read_bytes()
    redrawn = table("reproduce", "--from", folder / "results.parquet", "-o", tmp_path / "again")
    assert "furniture" in redrawn
    assert (tmp_path / "again" / "report.html").read_bytes() == page


def test_an_interrupted_run_goes_on_to_the_tables_of_a_whole_one(tmp_path: Path) -> None:
    data, cut = tmp_path / "registries", tmp_path / "cut"
    write_registry(data, "furniture", shoppers(75, 25), 25)
    call = (*ONE_TRIAL, "--data", data, "-o", cut)
    terminal = Terminal()
    with begin(*call, stderr=terminal.theirs) as process:
        journal = cut / JOURNAL
        wait_for(lambda: journal.exists() and len(journal.read_text().splitlines()) > 10, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    shown = terminal.close()
    assert process.returncode == 130
    assert shown.rstrip().endswith(f"the finished trials are kept in {cut}; run the same command again to go on")
    assert "Traceback" not in shown
    assert "all trials" in shown
    assert "furniture" in shown

    kept = json.loads(journal.read_text().splitlines()[1])
    journal.write_text(journal.read_text() + '{"job": "cut sho')  # as a kill in the midst of writing leaves it
    assert run(*call).returncode == 0
    rows = {row["job"]: row for row in read_results(cut / "results.parquet").rows}
    source = Source(data, SEED)
    jobs = {job_name(job): job for job in plan(source, ["furniture"], replace(QUICK, trials=1))}
    assert rows.keys() == jobs.keys()
    for name, job in jobs.items():
        if job.experiment != "growth":  # which has times and nothing else
            assert without_times(rows[name]) == without_times(run_trial(job, source))
    assert rows[kept["job"]] == kept  # to the very times: it was not run again
    assert not journal.exists()

    refused = run(*call, "--seed", 1)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "seed 0 and not 1" in refused.stderr
    assert "--fresh" in refused.stderr


def test_without_the_original_files_it_says_what_they_are_and_where_they_go(tmp_path: Path) -> None:
    done = run("reproduce", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    for told in ("registries", "1_100_100_100_<category>_regs.csv", "authors published", "--data", "--generated"):
        assert told in done.stderr
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--generated", "--categories", "safty"), 1, "did you mean safety?"),
        (("--from", "nowhere.parquet"), 1, "no file is called nowhere.parquet"),
        (("--from", "foreign.parquet"), 1, "is not a whole results.parquet"),
        (("--from", "results.parquet", "--quick", "--trials", "2"), 2, "--trials, --quick cannot be given with it"),
        (("--generated", "--reference", "."), 2, "--generated and --reference exclude each other"),
        (("--generated", "--data", "."), 2, "--generated and --data exclude each other"),
        (
            ("--data", ".", "--reference", "nowhere"),
            1,
            "has neither paper_tables.json nor a folder authors_runs",
        ),
        (("--from", "results.parquet", "--seed", "0", "--data", "."), 2, "--data, --seed cannot be given with it"),
        (("--trials", "0"), 2, "--trials"),
        (("--from", "results.parquet", "-o", "foreign.parquet"), 1, "cannot be made a folder"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    from dpplearn.experiments.results import write_results

    write_results(tmp_path / "results.parquet", made_results())
    (tmp_path / "foreign.parquet").write_text("no Parquet at all")
    done = run("reproduce", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv = ['dpplearn', 'reproduce', '--generated']\n"
        "from dpplearn.cli import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert 'pip install "dpplearn[report]"' in done.stderr
    assert not list(tmp_path.iterdir())
