"""Command `anabranch video`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from video_support import random_arrivals

from anabranch import video
from anabranch.command.dispatch import _guarded
from anabranch.video import CodedClip


def command(*words: str | Path) -> int:
    """Runs the command as `anabranch.command.dispatch` does, even if the native module has no such command."""
    return _guarded("video", [str(word) for word in words])


@pytest.fixture
def arrivals(coded_clip: CodedClip, tmp_path: Path) -> Path:
    for name, loss in (("cmt", 0.1), ("none", 0.0), ("all", 1.0)):
        video.write_arrivals(
            tmp_path / f"{name}.csv", random_arrivals(coded_clip.frames, coded_clip.packets, loss, seed=1)
        )
    return tmp_path


def test_a_clip_is_written_as_yuv4mpeg2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "clip.y4m"
    assert command("clip", "synthetic", "--frames", "3", "--size", "64x48", "--rate", "30000/1001", "--out", out) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.read_bytes().startswith(b"YUV4MPEG2 W64 H48 F30000:1001 ")
    assert out.read_bytes().count(b"FRAME\n") == 3


def test_a_clip_is_encoded_and_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("encode", "synthetic", "--frames", "11", "--payload", "500", "--out", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path / 'out'}: 2 I, 3 P, 6 B frames of 176x144; ")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert f"SHA-256 {manifest['bitstream_sha256']}" in said
    assert manifest["payload_bytes"] == 500


def test_a_file_is_encoded_and_the_manifest_printed(
    coded_clip: CodedClip, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--size", "176x144", "--frames", "10", "--gop", "6", "--b-frames", "1", "--quantiser", "4", "--json", "-q"]
    assert command("encode", coded_clip.source.path, *words, "--out", tmp_path / "out") == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["clip"], manifest["gop_frames"], manifest["b_frames"], manifest["quantiser"]) == (
        "source.yuv",
        6,
        1,
        4,
    )


def test_arrivals_are_evaluated(coded_clip: CodedClip, arrivals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--arrivals", arrivals / "none.csv", "--arrivals", f"lossy={arrivals / 'cmt.csv'}", "--deadline", "150ms"]
    assert command("evaluate", coded_clip.folder, *words, "--out", arrivals / "out") == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()[2:6]] == ["run", "sent", "none", "lossy"]
    assert said.err == ""
    written = sorted(file.name for file in (arrivals / "out").iterdir())
    assert written == ["frames.parquet", "lossy.mp4", "none.mp4", "sent.mp4", "stills.png", "summary.json"]


def test_total_loss_is_reported(coded_clip: CodedClip, arrivals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--arrivals",
        arrivals / "all.csv",
        "--deadline",
        "0.15s",
        "--no-pictures",
        "--json",
        "--out",
        arrivals / "out",
    ]
    assert command("evaluate", coded_clip.folder, *words) == 0
    said = capsys.readouterr()
    assert said.err == ("anabranch video: all: no frame was decodable, so no quality can be computed\n")
    printed = json.loads(said.out)
    assert printed == json.loads((arrivals / "out" / "summary.json").read_text())
    assert printed["deadline_ms"] == 150
    assert printed["runs"]["all"]["psnr_db"] is None
    assert sorted(file.name for file in (arrivals / "out").iterdir()) == ["frames.parquet", "summary.json"]


def test_quiet_prints_no_text(coded_clip: CodedClip, arrivals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--arrivals", arrivals / "none.csv", "--deadline", "1s", "--no-pictures", "-q", "--out", arrivals / "out"]
    assert command("evaluate", coded_clip.folder, *words) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clip", "highway", "--out", "x.y4m"], "highway: is neither a file nor one of the clips"),
        (["clip", "synthetic", "--size", "175x144", "--out", "x.y4m"], "scale it with --scale 174x144"),
        (["encode", "synthetic", "--gop", "10", "--out", "x"], "so that one more divides --gop"),
        (["encode", "synthetic", "--payload", "0", "--out", "x"], "give 1 to 65000 with --payload"),
        (
            ["evaluate", "nowhere", "--arrivals", "a.csv", "--deadline", "1s", "--out", "x"],
            "manifest.json: cannot be read",
        ),
    ],
)
def test_impossible_request_fails_with_the_remedy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*words) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["evaluate", "clip", "--arrivals", "x"], ["compare", "clip"], ["play"]])
@pytest.mark.parametrize("deadline", ["0ms", "3601s"])
def test_deadline_of_zero_or_hours_is_refused(
    words: list[str], deadline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*words, "--deadline", deadline, "--out", tmp_path / "out")
    assert ended.value.code == 2
    assert "give one above 0, up to 3600 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["clip"],
        ["clip", "synthetic"],
        ["clip", "synthetic", "--out", "x", "--frames", "many"],
        ["clip", "synthetic", "--out", "x", "--frames", "9999999999999"],
        ["clip", "synthetic", "--out", "x", "--size", "176"],
        ["clip", "synthetic", "--out", "x", "--rate", "1/0"],
        ["clip", "synthetic", "--out", "x", "--rate", "1e9"],
        ["evaluate", "x", "--out", "x", "--deadline", "1s"],
        ["evaluate", "x", "--out", "x", "--arrivals", "a", "--deadline", "150"],
        ["evaluate", "x", "--out", "x", "--arrivals", "a", "--deadline", "1 day"],
        ["evaluate", "x", "--out", "x", "--arrivals", "a", "--deadline", "1s", "--against", "psnr"],
    ],
)
def test_a_wrong_command_line_is_wrong_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("words", [[], ["clip"], ["encode"], ["evaluate"], ["send"], ["play"], ["compare"]])
def test_help_has_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*words, "--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert re.search(r"^Examples:\n", shown, re.MULTILINE)
    assert " ".join(["anabranch video", *words]) in shown
    assert "exit status: 0 " in shown


def test_ctrl_c_leaves_no_half_written_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anabranch.video.coded.encode", interrupted)
    assert command("encode", "synthetic", "--frames", "2", "--out", tmp_path / "out", "-q") == 130
    assert not (tmp_path / "out" / "manifest.json").exists()
