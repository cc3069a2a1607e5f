"""Tables of the command line: what fits on a line."""

from __future__ import annotations

import pytest

from dpplearn.cli.output import show
from dpplearn.tools.tables import TextTable


def test_numbers_of_a_table_of_many_columns_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "model"]
    row = ["toys-games", "12", "316", "-0.076", "48.1", "-7.209", "+0.001", "kept"]
    show([TextTable("Models", "", columns, [row])])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(cell in out for cell in row)
    assert "…" not in out


def test_names_that_fit_with_less_space_between_columns_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = ["kinds of people alone", "2.1 times as likely", "+0.744 ± 0.060", "nonsymmetric DPP"]
    show([TextTable("Gain", "", ["what a model knows", "a basket is>", "nats per basket>", "model"], [row])])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(cell in out for cell in row)
