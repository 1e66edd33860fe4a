"""Examples of the chapter on reports."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from book import BOOK, FENCE, run_chapter

from anabranch.command import main


def test_the_python_of_the_chapter_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_chapter("report.md", tmp_path, monkeypatch)
    assert (tmp_path / "outage.html").stat().st_size > 1_000_000


def test_the_options_of_the_chapter_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    shown = capsys.readouterr().out
    text = (BOOK / "report.md").read_text(encoding="utf-8")
    for option in ("--out FILE.html", "--timeline SCHEME[@KEY=VALUE,...]", "--seed N", "--title TEXT", "--quiet"):
        assert f"`{option}`" in text
        assert option in shown
    blocks = [block["body"] for block in FENCE.finditer(text) if block["kind"].strip() == "sh"]
    commands = [shlex.split(line) for block in blocks for line in block.splitlines() if "anabranch report" in line]
    assert len(commands) == 4
    assert {word for command in commands for word in command if word.startswith("--")} <= {"--timeline"}
