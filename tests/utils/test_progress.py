"""Progress of long jobs on standard error."""

from __future__ import annotations

import pytest

from dpplearn.errors import InputError
from dpplearn.utils.progress import Bar, Progress, shown_progress


class Recorded(Progress):
    """Keeps every state of every bar."""

    def __init__(self) -> None:
        self.bars: list[tuple[str, int, int | None, str]] = []

    def changed(self, bar: Bar) -> None:
        self.bars.append((bar.what, bar.done, bar.total, bar.text))


def test_bars_report_where_they_begin_and_whenever_they_move_and_groups_add_up() -> None:
    recorded = Recorded()
    bar = recorded.bar("learning")
    bar.update(3, "fast", "learning, run 2 of 2")
    bar.advance(2)
    recorded.grouped({"a": 3, "b": 2}, "all trials")("b")
    assert recorded.bars == [
        ("learning", 0, None, ""),
        ("learning, run 2 of 2", 3, None, "fast"),
        ("learning, run 2 of 2", 5, None, ""),
        ("a", 0, 3, ""),
        ("b", 0, 2, ""),
        ("all trials", 0, 5, ""),
        ("b", 1, 2, ""),
        ("all trials", 1, 5, ""),
    ]


def test_progress_is_shown_on_standard_error_only_if_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with shown_progress(False) as progress:
        progress.grouped({"a": 1})("a")
    assert capsys.readouterr() == ("", "")
    with shown_progress() as progress:
        progress.bar("reading [red]1,2[/red].csv")
        progress.bar("folds", 1200).advance(1000, "[3/s]")
    out, err = capsys.readouterr()
    assert out == ""
    for part in ("reading [red]1,2[/red].csv", "folds", "1,000/1,200", "[3/s]"):
        assert part in err


def test_the_seconds_between_lines_must_be_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("DPPLEARN_PROGRESS_SECONDS", seconds)
        with pytest.raises(InputError, match=seconds), shown_progress():
            pass
