"""The report of the proof."""

from __future__ import annotations

import pytest

from proof.report import VARIABLE, Row, attack, rows


def lose_a_run():
    with attack("loud") as row:
        row.lost += 1
        raise AssertionError


def test_an_attack_adds_its_row_also_when_it_fails(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "report"))
    with attack("quiet") as row:
        row.cases += 2
    with pytest.raises(AssertionError):
        lose_a_run()
    assert rows(tmp_path / "report") == [Row("quiet", cases=2), Row("loud", lost=1)]


def test_nothing_is_written_where_no_report_is_wanted(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with attack("quiet"):
        pass
    assert not list(tmp_path.iterdir())
