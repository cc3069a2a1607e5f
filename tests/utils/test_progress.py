"""Progress of long jobs on standard error."""

from __future__ import annotations

import time

import pytest

from dpplearn.errors import InputError
from dpplearn.utils.progress import shown_progress


def test_progress_is_shown_on_standard_error_only_if_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with shown_progress(False) as progress:
        progress.bar("folds", 2).advance()
    assert capsys.readouterr() == ("", "")
    with shown_progress() as progress:
        progress.bar("reading [red]1,2[/red].csv")
        progress.bar("folds", 1200).advance(1000, "[3/s]")
    out, err = capsys.readouterr()
    assert out == ""
    for part in ("reading [red]1,2[/red].csv", "folds", "1000/1200", "[3/s]"):
        assert part in err


def test_lines_elsewhere_name_what_is_done_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPPLEARN_PROGRESS_SECONDS", "0.01")
    shown, deadline = "", time.monotonic() + 60
    with shown_progress() as progress:
        bar = progress.bar("folds", 1200, 200)
        for done in (300, 400):
            bar.update(done, "fold 2")
            time.sleep(0.01)
        while "left" not in shown and time.monotonic() < deadline:
            shown += capsys.readouterr().err
            time.sleep(0.01)
    (line, *_) = [each for each in shown.splitlines() if "left" in each]
    assert line.startswith("dpplearn: folds 400/1,200, fold 2, ")


def test_the_seconds_between_lines_must_be_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("DPPLEARN_PROGRESS_SECONDS", seconds)
        with pytest.raises(InputError, match=seconds), shown_progress():
            pass
