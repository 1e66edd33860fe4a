"""Command `anabranch video compare`: simulated runs, stored files, and output."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import _native, video
from anabranch.command.dispatch import _guarded
from anabranch.video import CodedClip, ReadOptions, RunArrivals
from anabranch.video.metrics import METRICS

PATHS = ("rate=2Mbit,delay=10ms,loss=5%", "rate=1Mbit,delay=30ms,loss=5%")
SLOW = "rate=1Mbit,delay=300ms"
FAST = ("rate=50Mbit,delay=5ms", "rate=50Mbit,delay=10ms")


def command(*words: str | Path) -> int:
    """Runs it as `anabranch.command.dispatch` does."""
    return _guarded("video", ["compare", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    """Clip of 46 small frames, with one packet or a few each."""
    return video.write_coded(
        "synthetic",
        tmp_path_factory.mktemp("clip"),
        reading=ReadOptions(frames=46, size=(64, 48), rate=Fraction(30)),
        payload_bytes=400,
    )


def compared(clip: CodedClip, out: Path, *words: str | Path) -> dict[str, Any]:
    assert command(clip.folder, "--paths", *PATHS, "--out", out, "--no-page", "-q", *words) == 0
    read: dict[str, Any] = json.loads((out / "comparison.json").read_text())
    return read


def test_without_loss_every_scheme_has_exactly_the_quality_of_coding(clip: CodedClip, tmp_path: Path) -> None:
    schemes = anabranch.schemes().schemes.names
    words = ["--schemes", ",".join(schemes), "--seeds", "1,", "--deadline", "2s", "--no-page", "-q"]
    assert command(clip.folder, "--paths", *FAST, *words, "--out", tmp_path) == 0
    read = json.loads((tmp_path / "comparison.json").read_text())
    assert list(read["schemes"]) == schemes
    for scheme, figures in read["schemes"].items():
        assert figures["decodable_percent"]["mean"] == 100, scheme
        for metric in METRICS:
            assert figures[metric]["mean"] == read["coding"][metric], scheme


def test_only_late_frames_are_reported(clip: CodedClip, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Lifetimes of the deadline would abandon packets before they are late.
    words = ["--schemes", "cmt", "--seeds", "1,", "--deadline", "1ms", "--reliability", "full"]
    assert command(clip.folder, "--paths", SLOW, "--out", tmp_path, "--no-page", "-q", *words) == 0
    read = json.loads((tmp_path / "comparison.json").read_text())
    note = "cmt-seed1: no frame was decodable, so no quality can be computed"
    assert read["warnings"] == [note]
    assert read["schemes"]["cmt"]["late"]["mean"] == 46
    assert read["schemes"]["cmt"]["psnr_db"]["mean"] is None
    assert capsys.readouterr().out == ""


def test_figures_are_those_of_the_run_and_of_an_evaluation_of_its_arrivals(clip: CodedClip, tmp_path: Path) -> None:
    read = compared(clip, tmp_path, "--schemes", "cmt", "--seeds", "3,")
    figures = read["schemes"]["cmt"]
    kept = json.loads((tmp_path / "runs" / "cmt-seed3.json").read_text())
    simulated = kept["result"]["flows"][0]["video"]
    assert 0 < figures["lost"]["mean"] < 46
    for fate in ("lost", "late", "undecodable"):
        assert figures[fate]["mean"] == sum(simulated["fates"][kind][fate] for kind in "IPB")
    assert figures["stall_s"]["mean"] == pytest.approx(simulated["stall_s"])
    found = video.evaluate(clip, [RunArrivals("cmt", tmp_path / "arrivals" / "cmt-seed3.csv")], 150).runs[0]
    assert found.quality is not None
    for metric in METRICS:
        assert figures[metric]["mean"] == found.quality.mean(metric)
    assert figures["abandoned"]["mean"] == kept["result"]["flows"][0]["abandoned"]["messages"] > 0


def test_finished_runs_are_reused_and_new_ones_computed(
    clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    native = _native.run_batch

    def counted(jobs: Any, done: Callable[[int, str], object], **others: Any) -> None:
        made.append(len(jobs))
        native(jobs, done, **others)

    monkeypatch.setattr(_native, "run_batch", counted)
    first = compared(clip, tmp_path, "--schemes", "cmt", "--seeds", "2")
    assert made == [2]
    assert compared(clip, tmp_path, "--schemes", "cmt", "--seeds", "2") == first
    assert made == [2]
    compared(clip, tmp_path, "--schemes", "cmt,cmt-pf", "--seeds", "3")
    assert made == [2, 4]
    # A run with another deadline, or a changed file, is another run.
    (tmp_path / "arrivals" / "cmt-seed1.csv").write_text("packet,arrival_ms\n")
    (tmp_path / "runs" / "cmt-seed2.json").write_text("{")
    compared(clip, tmp_path, "--schemes", "cmt", "--seeds", "2")
    assert made == [2, 4, 2]
    compared(clip, tmp_path, "--schemes", "cmt", "--seeds", "2", "--deadline", "200ms")
    assert made == [2, 4, 2, 2]
    assert not (tmp_path / ".traces").exists()


def test_ctrl_c_keeps_finished_runs(
    clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    native = _native.run_batch

    def interrupted(jobs: Any, done: Callable[[int, str], object], **others: Any) -> None:
        native(jobs[:1], done, **others)
        raise KeyboardInterrupt

    words = [clip.folder, "--paths", *PATHS, "--schemes", "cmt", "--seeds", "3", "--no-page", "--out", tmp_path]
    with monkeypatch.context() as patched:
        patched.setattr(_native, "run_batch", interrupted)
        assert command(*words) == 130
    said = f"interrupted: 1 of 3 runs are finished and kept in {tmp_path}: the same command continues from there\n"
    assert said in capsys.readouterr().err
    made: list[int] = []

    def counted(jobs: Any, done: Callable[[int, str], object], **others: Any) -> None:
        made.append(len(jobs))
        native(jobs, done, **others)

    monkeypatch.setattr(_native, "run_batch", counted)
    assert command(*words) == 0
    assert made == [2]


def test_a_page_and_a_table_are_made_of_a_scenario_and_a_computed_clip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [{"name": "wifi", "rate": "2 Mbit/s", "delay": "10 ms"}]
    scenario = anabranch.Scenario.from_dict({"run": {"duration": "5 s"}, "path": paths})
    (tmp_path / "scenario.toml").write_text(scenario.to_toml())
    words = ["synthetic", "--frames", "10", "--scenario", tmp_path / "scenario.toml", "--schemes", "sctp"]
    assert command(*words, "--seeds", "2,5", "--show-seed", "5", "--out", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert said.splitlines()[3].startswith("sent")
    assert said.endswith(f"{tmp_path / 'out' / 'comparison.html'}\n")
    text = (tmp_path / "out" / "comparison.html").read_text()
    assert "Over time, seed 5" in text
    assert 'name = "wifi"' in text.replace("&#34;", '"')
    assert (tmp_path / "out" / "clip" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give the network with --paths or --scenario"),
        (["--paths", "rate=1Mbit"], "missing key `delay`"),
        (["--paths", "rate=fast,delay=1ms"], "fast"),
        (["--paths", PATHS[0], "--schemes", "cmt-"], "cmt-"),
        (["--paths", PATHS[0], "--seeds", "0"], "seeds"),
        (["--paths", PATHS[0], "--seeds", "2000"], "runs are more than 1000"),
        (["--paths", PATHS[0], "--show-seed", "11"], "--show-seed 11"),
        (["--paths", PATHS[0], "--reliability", "half"], "is not a reliability"),
        (["--paths", PATHS[0], "--scenario", "a.toml"], "give the network with --paths or --scenario"),
    ],
)
def test_a_wrong_command_line_is_wrong_input(
    clip: CodedClip, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert command(clip.folder, *words, "--out", tmp_path) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "comparison.json").exists()
