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


def test_a_torn_last_line_costs_its_row_alone_and_a_run_continues_behind_it(begun: Journal) -> None:
    whole = begun.path.read_bytes()
    for lost in (1, 2, 20):
        begun.path.write_bytes(whole[:-lost])
        assert begun.rows() == (ROWS if lost == 1 else ROWS[:2])  # of the first, the end of the line alone is lost
    with begun.appending(begun.rows()) as append:
        append(ROWS[2])
        assert begun.rows() == ROWS  # on disk before the next job ends


def test_rows_of_another_setting_are_refused_and_stay(begun: Journal, tmp_path: Path) -> None:
    before = begun.path.read_bytes()
    with pytest.raises(InputError, match=r"journal.jsonl.*0.*1"):
        journal(tmp_path, seed=1).rows()
    with pytest.raises(InputError, match=r"journal\.jsonl"):
        journal(tmp_path, limit=5).rows()
    assert begun.path.read_bytes() == before


def test_a_row_of_another_shape_is_left_out(begun: Journal) -> None:
    lines = "\n".join(["[]", "3", '{"job": "d"}', '{"job": "d", "value": 1, "more": 2}'])
    begun.path.write_text(f"{begun.path.read_text()}{lines}\n")
    assert begun.rows() == ROWS


def test_a_full_disk_is_told_of(begun: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with begun.appending([]) as append:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"journal.jsonl"):
            append(ROWS[0])
