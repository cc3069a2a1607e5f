"""Every long job tells one kind of thing how far it is, and that is what is shown."""

from __future__ import annotations

import time

import pytest

from dpplearn.errors import InputError
from dpplearn.tools.progress import Bar, Progress, line_of, shown_progress


class Told(Progress):
    """Notes what every bar says."""

    def __init__(self) -> None:
        self.bars: list[tuple[str, int, int | None, str]] = []

    def changed(self, bar: Bar) -> None:
        self.bars.append((bar.what, bar.done, bar.total, bar.text))


def test_a_bar_tells_where_it_begins_and_whenever_it_moves() -> None:
    told = Told()
    bar = told.bar("learning")
    bar.update(3, "fast", "learning, run 2 of 2")
    bar.advance(2)
    assert told.bars == [
        ("learning", 0, None, ""),
        ("learning, run 2 of 2", 3, None, "fast"),
        ("learning, run 2 of 2", 5, None, ""),
    ]


def test_groups_go_on_from_what_is_done_and_add_up() -> None:
    told = Told()
    advance = told.grouped({"a": 3, "b": 2}, {"a": 1}, "all trials")
    advance("b")
    assert told.bars == [
        ("a", 1, 3, ""),
        ("b", 0, 2, ""),
        ("all trials", 1, 5, ""),
        ("b", 1, 2, ""),
        ("all trials", 2, 5, ""),
    ]


def test_what_is_shown_goes_to_standard_error_as_it_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with shown_progress() as progress:
        progress.bar("reading [red]1,2[/red].csv")
        progress.bar("folds", 1200).advance(1000, "[3/s]")
    out, err = capsys.readouterr()
    assert out == ""
    for part in ("reading [red]1,2[/red].csv", "folds", "1,000/1,200", "[3/s]"):
        assert part in err


def test_nothing_is_shown_where_it_is_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(False) as progress:
        progress.grouped({"a": 1})("a")
    assert capsys.readouterr() == ("", "")


def test_lines_are_written_now_and_then_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPPLEARN_PROGRESS_SECONDS", "0.01")
    with shown_progress() as progress:
        progress.bar("folds", 1200).advance(1000, "[3/s]")
        ends = time.monotonic() + 10
        while not (told := capfd.readouterr().err) and time.monotonic() < ends:
            time.sleep(0.01)
    assert told.startswith("dpplearn: folds 1,000/1,200, [3/s], 0 seconds so far, about 0 seconds left\n")
    capfd.readouterr()
    time.sleep(0.05)
    assert capfd.readouterr().err == ""  # it has ended


def test_a_line_says_what_how_far_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    bar, unknown = Progress().bar("categories", 13, done=3), Progress().bar("reading orders.csv")
    monkeypatch.setattr(time, "monotonic", lambda: 400.0)
    assert line_of(bar) == "categories 3/13, 5 minutes so far"
    bar.advance(2)  # of those done before it, nobody knows how long they took
    assert line_of(bar) == "categories 5/13, 5 minutes so far, about 20 minutes left"
    assert line_of(unknown) == "reading orders.csv, 5 minutes so far"


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan"])
def test_a_time_between_lines_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("DPPLEARN_PROGRESS_SECONDS", seconds)
    with (
        pytest.raises(InputError, match=f"{seconds}"),
        shown_progress(),
    ):
        pass
