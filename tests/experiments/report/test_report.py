"""The report: what claims say, what the page and its figures hold, and that the rows alone make them."""

from __future__ import annotations

import dataclasses
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpplearn.experiments.report import figures
from dpplearn.experiments.report.claims import ELSEWHERE, FAILS, HOLDS, IN_PART, OPEN, Claim
from dpplearn.experiments.report.figures import PAPER
from dpplearn.experiments.report.page import Report, write_report
from dpplearn.experiments.report.parts import FIGURES, PARTS, all_claims, all_sections, summarise
from dpplearn.experiments.results import COLUMNS, Results, Table, read_results, write_results
from helpers.made_results import COMMAND, made_results


def claims(results: Results) -> list[Claim]:
    return all_claims(summarise(results), original=results.about.data == "original")


def verdicts(results: Results) -> dict[str, str]:
    return {claim.section: claim.verdict for claim in claims(results)}


def said(results: Results, section: str) -> str:
    return next(claim.here for claim in claims(results) if claim.section == section)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report(tmp_path_factory.mktemp("report"), made_results())


DRAWN: dict[tuple[str, str], str] = {}


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many reports have the same tables; to draw those again would take most of the time."""
    draw = figures.drawn

    def drawn(make: Callable[[Table], Any], table: Table) -> str:
        key = make.__name__, repr(table)
        DRAWN[key] = DRAWN.get(key) or draw(make, table)
        return DRAWN[key]

    monkeypatch.setattr(figures, "drawn", drawn)


@pytest.fixture(scope="module")
def page(written: Report) -> str:
    return written.path.read_text(encoding="utf-8")


def test_sections_and_claims_go_by_the_name_of_their_part() -> None:
    tables = summarise(made_results())
    assert [section.name for section in all_sections(tables)] == list(PARTS)
    assert {claim.section for claim in all_claims(tables, original=True)} == set(PARTS) - {"registry"}


def shifted(category: str, by: float) -> Results:
    """EM's test likelihood in the Wishart trials of a category moved by so many per cent of K-Ascent's."""
    results = made_results()
    chosen = f"wishart/{category}"
    rows = (
        {**row, "em_test": row["em_test"] + by / 10} if row["job"].startswith(chosen) else row for row in results.rows
    )
    return dataclasses.replace(results, rows=tuple(rows))


def test_a_median_far_from_the_papers_is_no_confirmation() -> None:
    assert verdicts(shifted("beta", 0.5))["wishart"] == HOLDS
    assert verdicts(shifted("beta", 0.7))["wishart"] == IN_PART


def test_a_category_where_em_is_behind_is_no_confirmation() -> None:
    assert verdicts(shifted("safety", -0.45))["wishart"] == HOLDS
    assert verdicts(shifted("safety", -0.55))["wishart"] == IN_PART
    assert "and not in safety" in said(shifted("safety", -0.55), "wishart")


def test_the_moments_claim_says_what_was_checked_where_a_category_is_far_off() -> None:
    text = said(made_results(), "moments")
    assert "Beta: +0.20 % against the paper's +1.50 %" in text
    assert "outside the range of ours, +0.15 % to +0.25 % over 3" in text
    assert "no rule for zero: +4.00 % where ours give +0.15 %" in text
    assert "Safety" not in text


def test_two_n_sets_decide_nothing_and_say_how_many_draws_are_finite() -> None:
    text = said(made_results(), "few")
    assert verdicts(made_results())["few"] == OPEN
    assert "finite in 0 of 9 draws" in text
    assert "both are finite in 3 of 9 draws" in text


def test_the_printed_gains_are_held_against_the_papers_category_by_category() -> None:
    """All are +4.00 in the made-up rows, so that no rank exists, and the furthest median of the paper's is 2."""
    table = summarise(made_results())["few"]
    assert table is not None
    assert math.isnan(table["printed_with_paper"])
    assert table["printed_furthest_from_paper"] == pytest.approx(2.0)
    assert "does not reproduce the column" not in said(made_results(), "few")
    rows = [dict(row) for row in made_results().rows]
    for row in rows:
        if row["job"] in {"moments of 2N as printed/beta/0", "moments of 2N as printed/safety/0"}:
            row["em_test_unruled"] = -10.0  # +20 %, where the paper has the most, too
    changed = dataclasses.replace(made_results(), rows=tuple(rows))
    assert "rank correlation of 1.00 with the paper's medians and is up to 15.0 points away" in said(changed, "few")


@pytest.mark.parametrize(("power", "verdict"), [(2.0, HOLDS), (1.6, IN_PART)])
def test_an_exponent_short_of_the_printed_one_holds_in_part(power: float, verdict: str) -> None:
    results = made_results()
    rows = [dict(row) for row in results.rows]
    for row in rows:
        if row["experiment"] == "growth" and row["category"] == "k":
            row["em_seconds"] = row["set_size"] ** power
    changed = dataclasses.replace(results, rows=tuple(rows))
    assert verdicts(changed)["growth"] == verdict
    assert ("In k EM's pass does not reach" in said(changed, "growth")) == (verdict == IN_PART)


def test_a_run_that_differs_from_the_authors_is_seen() -> None:
    results = made_results()
    assert verdicts(results)["authors"] == HOLDS
    rows = tuple({**row, "em_test": -5.1} if row["experiment"] == "authors" else row for row in results.rows)
    assert verdicts(dataclasses.replace(results, rows=rows))["authors"] == FAILS


def test_on_generated_registries_claims_about_the_papers_own_are_not_applicable() -> None:
    original, generated = verdicts(made_results()), verdicts(made_results(paper=False, data="generated"))
    about_algorithms = {"tolerance", "trap", "growth", "recovery"}
    assert {name for name, verdict in generated.items() if verdict != ELSEWHERE} == about_algorithms
    assert {name: generated[name] for name in about_algorithms} == {name: original[name] for name in about_algorithms}
    assert ELSEWHERE not in original.values()


def test_the_trap_counts_escapes_and_zeros_that_came_back() -> None:
    text = said(made_results(), "trap")
    assert "It escapes in 3 of 9 trials" in text
    assert "fewer than a tenth of those zeros are left in 3 of 3 categories" in text


def test_the_page_stands_alone(page: str) -> None:
    links = re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert links
    assert all(link.startswith("#") for link in links)
    targets = set(re.findall(r' id="([^"]+)"', page))
    assert {link[1:] for link in links} <= targets
    assert page.count("<svg") == len(FIGURES)
    assert "<script" not in page


def test_the_page_says_when_and_by_which_command_it_was_made(page: str) -> None:
    assert "finished 2026-01-02 03:04:05 UTC" in page
    assert f"<code>{COMMAND}</code>" in page


@pytest.mark.parametrize(("paper", "data"), [(True, "original"), (False, "original"), (False, "generated")])
def test_sentences_of_the_page_have_a_space_between_them(
    tmp_path: Path, drawn_once: None, paper: bool, data: str
) -> None:
    page = write_report(tmp_path, made_results(paper, data)).path.read_text(encoding="utf-8")
    without_figures = re.sub(r"<(svg|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    for block in re.split(r"</?(?:p|h[12]|td|th|tr|figure|div|table|title)\b[^>]*>", without_figures):
        text = re.sub(r"<[^>]+>", "", block)
        assert not re.search(r"[a-z0-9)][.!?;:,](?=[A-Z])|[.!?;]  +\S|\s[.,;:!?](?:\s|$)", text), text


def test_names_of_products_are_text_and_not_html(page: str) -> None:
    assert "a &lt;b&gt;bold&lt;/b&gt; item" in page
    assert "<b>bold" not in page


def test_every_figure_is_a_file_of_its_own_that_an_xml_reader_takes(written: Report) -> None:
    assert {path.stem for path in written.figures} == set(FIGURES)
    for path in written.figures:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_the_papers_bars_stand_beside_ours(written: Report, tmp_path: Path, drawn_once: None) -> None:
    without = write_report(tmp_path, made_results(paper=False))
    for report, paper in ((written, True), (without, False)):
        figure = next(path for path in report.figures if path.stem == "wishart").read_text(encoding="utf-8")
        assert (PAPER in figure) == paper
        assert "average is –" not in report.path.read_text(encoding="utf-8")
        assert ("were not at hand" in report.path.read_text(encoding="utf-8")) == (not paper)


def test_the_rows_alone_make_the_report(written: Report, tmp_path: Path) -> None:
    write_results(tmp_path / "results.parquet", made_results())
    again = write_report(tmp_path, read_results(tmp_path / "results.parquet"))
    for one, other in zip((written.path, *written.figures), (again.path, *again.figures), strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("experiment", sorted({row["experiment"] for row in made_results().rows}))
def test_a_report_without_one_of_the_experiments_is_a_report(tmp_path: Path, drawn_once: None, experiment: str) -> None:
    results = made_results()
    rows = tuple(row for row in results.rows if row["experiment"] != experiment)
    assert write_report(tmp_path, dataclasses.replace(results, rows=rows)).path.exists()


def test_a_report_on_one_trial_of_one_category_is_a_report(tmp_path: Path, drawn_once: None) -> None:
    results = made_results(paper=False)
    rows = tuple(row for row in results.rows if row["category"] in {"beta", "n"} and row["trial"] == 0)
    written = write_report(tmp_path, dataclasses.replace(results, rows=rows))
    assert written.tables["strength"] is None
    assert written.tables["wishart"] is not None


def test_every_column_is_explained(page: str) -> None:
    assert all(f"<code>{name}</code>" in page for name in COLUMNS)
    assert all(meaning and "{}" not in meaning for _, meaning in COLUMNS.values())


def test_lines_have_as_many_cells_as_columns() -> None:
    for section in all_sections(summarise(made_results())):
        assert section.lines
        assert {len(line) for line in section.lines} == {len(section.columns)}, section.name
