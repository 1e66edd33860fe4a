"""Command `anabranch report`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pytest
from report_samples import swept, write_traces

from anabranch.command import main
from anabranch.reporting import results_page
from anabranch.reporting.charts import Charts
from anabranch.results import Results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    swept(folder, over={"scheme": ["cmt", "sctp"]}, seeds=2).write(folder / "losses")
    return folder / "losses"


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_page, "charts_of", lambda results, baseline: Charts((), (), ()))


def test_a_report_goes_beside_the_results_and_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(results)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{results / 'report.html'}\n"
    assert said.err == ""
    assert (results / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("traced", [False, True])
def test_suggested_commands_exist(results: Path, tmp_path: Path, traced: bool) -> None:
    folder = results
    if traced:
        write_traces(tmp_path / "traces")
        folder = tmp_path / "traces"
    out = tmp_path / "report.html"
    assert main(["report", str(folder), "--out", str(out)]) == 0
    blocks = re.findall(r"<pre[^>]*>(.*?)</pre>", out.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in re.sub("<[^>]*>", "", block).splitlines()]
    typed = [line for line in lines if line.startswith("anabranch")]
    assert len(typed) >= 2
    for line in typed:
        assert re.match(r"anabranch (sweep|run|explain|report) \w|anabranch\.plot_\w+\(", line), line


def test_quiet_prints_no_text(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(results), "--out", str(tmp_path / "r.html"), "--title", "Mine", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert "<title>Mine</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_traces_are_reported_too(tmp_path: Path) -> None:
    write_traces(tmp_path / "traces", ["cmt"])
    assert main(["report", str(tmp_path / "traces"), "--timeline", "cmt", "--seed", "1", "-q"]) == 0
    assert (tmp_path / "traces" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--timeline", "cmt-pf"], "no runs of `cmt-pf`; choose one of: `cmt`, `sctp`"),
        (["--seed", "3"], "no run has seed 3; choose one of: `1`, `2`"),
        (["--timeline", "cmt@run.duration=1 s"], "`run.duration` was not swept"),
    ],
)
def test_unknown_run_is_invalid_input(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["report", str(results), "--out", str(tmp_path / "r.html"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("words", [[], ["DIR", "--seed", "first"], ["DIR", "--colour"]])
def test_a_wrong_command_line_is_wrong_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", *words])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert "\n\nUsage: anabranch report" in shown


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--help"])
    assert ended.value.code == 0
    assert "anabranch report out/losses --timeline" in capsys.readouterr().out


def test_a_damaged_file_is_a_failure_that_names_it(results: Path, tmp_path: Path) -> None:
    Results.read(results).write(tmp_path / "copy")
    (tmp_path / "copy" / "paths.parquet").write_bytes(b"not Parquet")
    ran = subprocess.run(
        [sys.executable, "-m", "anabranch", "report", str(tmp_path / "copy")],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert str(tmp_path / "copy" / "paths.parquet") in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_folder_that_is_not_there_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nowhere")]) == 1
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_runs_that_differ_on_repetition_cause_a_warning(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = Results.read(results)
    timeouts = read.runs.column_names.index("timeouts")
    runs = read.runs.set_column(timeouts, read.runs.schema.field(timeouts), pc.add(read.runs["timeouts"], 3))
    Results(runs, read.paths, read.flows, read.manifest).write(tmp_path / "other")
    assert main(["report", str(tmp_path / "other"), "--timeline", "cmt"]) == 0
    said = capsys.readouterr()
    assert "anabranch report: warning: cmt, seed 1: run timeouts is " in said.err
    assert said.out == f"{tmp_path / 'other' / 'report.html'}\n"


def test_ctrl_c_leaves_neither_a_report_nor_traces(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(results_page, "timeline_of", interrupted)
    assert main(["report", str(results), "--out", str(tmp_path / "r.html")]) == 130
    assert list(tmp_path.iterdir()) == []
