"""What was finished is on disk line by line; a torn line costs itself alone, and rows of another run are refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dpplearn import InputError
from dpplearn.tools.journal import Journal

ROWS = [{"job": "a", "value": 1 / 3}, {"job": "b", "value": None}, {"job": "c", "value": [1, "ü"]}]


def journal(path: Path, **setting: object) -> Journal:
    return Journal(path / "journal.jsonl", {"seed": 0, **setting}, ["job", "value"], "begin anew")


@pytest.fixture
def begun(tmp_path: Path) -> Journal:
    begun = journal(tmp_path)
    with begun.appending(ROWS[:1]) as append:
        for row in ROWS[1:]:
            append(row)
    return begun


@pytest.mark.parametrize("lost", [1, 2, 20])
def test_a_torn_last_line_is_none_unless_its_row_is_whole(begun: Journal, lost: int) -> None:
    begun.path.write_bytes(begun.path.read_bytes()[:-lost])
    assert begun.rows() == (ROWS if lost == 1 else ROWS[:2])  # of the first, the end of the line alone is lost


def test_a_run_goes_on_behind_a_torn_line(begun: Journal) -> None:
    begun.path.write_bytes(begun.path.read_bytes()[:-7])
    with begun.appending(begun.rows()) as append:
        append(ROWS[2])
    assert begun.rows() == ROWS


def test_a_row_is_on_disk_before_the_next_job_ends(begun: Journal, tmp_path: Path) -> None:
    with begun.appending([]) as append:
        append(ROWS[0])
        assert journal(tmp_path).rows() == ROWS[:1]


def test_rows_of_another_setting_are_refused_and_stay(begun: Journal, tmp_path: Path) -> None:
    before = begun.path.read_bytes()
    with pytest.raises(InputError, match=r"journal.jsonl.*0.*1"):
        journal(tmp_path, seed=1).rows()
    with pytest.raises(InputError, match=r"journal\.jsonl"):
        journal(tmp_path, limit=5).rows()
    assert begun.path.read_bytes() == before


@pytest.mark.parametrize("line", ["[]", "3", '{"job": "d"}', '{"job": "d", "value": 1, "more": 2}'])
def test_a_row_of_another_shape_is_left_out(begun: Journal, line: str) -> None:
    begun.path.write_text(f"{begun.path.read_text()}{line}\n")
    assert begun.rows() == ROWS


def test_a_full_disk_is_told_of(begun: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with begun.appending([]) as append:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"journal.jsonl"):
            append(ROWS[0])
