"""The journal of a reproduction: its rows as they were, whatever a kill cut off, and none of another run."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import pytest

from dpplearn import InputError
from dpplearn.experiments.reproduction import JOURNAL
from dpplearn.experiments.results import About, full_row
from dpplearn.experiments.runner import trial_journal
from dpplearn.experiments.trials.trial import Job, Row
from dpplearn.tools.journal import Journal

ABOUT = About(seed=0, data="original", digest="abc", version="1")
ROWS: list[Row] = [
    full_row(Job("wishart", "bells"), {"em_test": -1.25, "em_set": ["a, b", 'c"d']}),
    full_row(Job("moments", "bells"), {"em_test": -math.inf}),
    full_row(Job("moments", "bells", 1), {"em_test": 1 / 3, "em_set": []}),
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = trial_journal(tmp_path / JOURNAL, ABOUT)
    with journal.appending(ROWS[:1]) as append:
        for row in ROWS[1:]:
            append(row)
    return journal


def test_a_journal_gives_back_what_was_there_and_what_was_appended(journal: Journal) -> None:
    assert journal.rows() == ROWS


def test_there_are_no_rows_before_a_journal_is_begun(tmp_path: Path) -> None:
    assert trial_journal(tmp_path / JOURNAL, ABOUT).rows() == []


def test_a_journal_has_a_row_as_soon_as_it_is_appended(journal: Journal) -> None:
    with journal.appending([]) as append:
        append(ROWS[0])
        assert journal.rows() == ROWS[:1]


@pytest.mark.parametrize("lost", [2, 5, 40])
def test_a_last_line_that_was_cut_off_is_left_out_and_the_others_kept(journal: Journal, lost: int) -> None:
    journal.path.write_bytes(journal.path.read_bytes()[:-lost])
    assert journal.rows() == ROWS[:2]


def test_a_journal_goes_on_behind_a_line_that_was_cut_off(journal: Journal) -> None:
    journal.path.write_bytes(journal.path.read_bytes()[:-5])
    with journal.appending(journal.rows()) as append:
        append(ROWS[2])
    assert journal.rows() == ROWS


@pytest.mark.parametrize("kept", [0, 10])
def test_a_journal_cut_off_in_its_first_line_has_no_rows(journal: Journal, kept: int) -> None:
    journal.path.write_bytes(journal.path.read_bytes()[:kept])
    assert journal.rows() == []


def test_the_journal_of_another_seed_is_refused(journal: Journal) -> None:
    with pytest.raises(InputError, match=r"unfinished.jsonl holds trials of another run \(seed 0 and not 1\)"):
        trial_journal(journal.path, About(1, "original", "abc", "1")).rows()


def test_all_that_differs_from_another_run_is_named_with_what_to_do() -> None:
    theirs = About(1, "generated", "generated", "2")
    with pytest.raises(InputError) as error:
        trial_journal(Path("y"), ABOUT).check_same(asdict(theirs), Path("x"))
    for part in ("seed 1", "generated", "other registries", "version of dpplearn 2 and not 1", "-o", "--fresh"):
        assert part in str(error.value)


def test_trials_with_other_columns_are_run_again(tmp_path: Path) -> None:
    journal = trial_journal(tmp_path / JOURNAL, ABOUT)
    older = {name: value for name, value in ROWS[0].items() if name != "em_kl"}
    with journal.appending([older, *ROWS[1:]]):
        pass
    assert trial_journal(tmp_path / JOURNAL, ABOUT).rows() == ROWS[1:]
