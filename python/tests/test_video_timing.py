"""Clips with a variable frame rate: each frame keeps its time, from the file to transmission and display."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from anabranch.errors import VideoError
from anabranch.video import ffmpeg
from anabranch.video.browser_clip import write_browser_clip
from anabranch.video.coded import CodedClip, read_coded, write_coded
from anabranch.video.fates import Playout, deliveries
from anabranch.video.format import FrameFormat
from anabranch.video.live.description import Description, read_description
from anabranch.video.measures import delivery_measures
from anabranch.video.timing import read_timing
from anabranch.video.trace import read_frame_trace
from anabranch.video.user_clip import ReadOptions, read_clip

# 25 frames in the first second, and then one each 400 ms.
SLOWING = "setpts='if(lt(N,25),N/25,1.001+(N-25)*2/5)/TB'"
TIMES_MS = [number * 40.0 for number in range(25)] + [1000.0 + number * 400.0 for number in range(25)]
TONE = ("-f", "lavfi", "-i", "sine=duration=1")


def make(path: Path, *arguments: str) -> Path:
    ffmpeg.run([*arguments, ffmpeg.file_url(path)], path.name, 60)
    return path


def pattern(filter_: str = "null", rate: str = "25", seconds: float = 2) -> list[str]:
    source = f"testsrc=size=64x64:rate={rate}:duration={seconds}"
    return ["-f", "lavfi", "-i", source, "-vf", filter_, "-fps_mode", "vfr", "-c:v", "mpeg4"]


@pytest.fixture(scope="module")
def slowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clip") / "slowing.mp4", *pattern(SLOWING))


@pytest.fixture(scope="module")
def clip(slowing: Path, tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    return write_coded(str(slowing), tmp_path_factory.mktemp("coded") / "slowing")


def test_frames_of_varying_rate_are_handed_over_at_their_times(clip: CodedClip) -> None:
    assert [frame.time_ms for frame in clip.frames] == pytest.approx(TIMES_MS, abs=1)
    assert [frame.time_ms for frame in read_frame_trace(clip.folder / "trace.csv")] == pytest.approx(TIMES_MS, abs=1)
    assert float(clip.source.format.rate) == pytest.approx(49 / 10.6, rel=0.01)


def test_coded_clip_of_varying_rate_is_read_as_it_was_written(clip: CodedClip) -> None:
    again = read_coded(clip.folder)
    assert again.frames == clip.frames
    assert again.source.format == clip.source.format


@pytest.mark.parametrize("times", [[0, 5], [0, 1, "2"], "0", [1] * 50, [0, *[5] * 48, 4]])
def test_wrong_times_in_a_manifest_are_refused(clip: CodedClip, tmp_path: Path, times: object) -> None:
    import json
    import shutil

    folder = tmp_path / "clip"
    shutil.copytree(clip.folder, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "times_us": times}))
    with pytest.raises(VideoError):
        read_coded(folder)


def test_variable_rate_frames_are_due_and_stall_by_their_times(clip: CodedClip) -> None:
    playout = Playout.of(100.0)
    due = dict(zip([frame.display for frame in clip.frames], playout.due_ms(clip.frames), strict=True))
    gaps = [due[place + 1] - due[place] for place in range(49)]
    assert gaps == pytest.approx([40.0] * 25 + [400.0] * 24, abs=1)
    arrivals = {packet.number: clip.frames[packet.frame].time_ms + 10 for packet in clip.packets}
    last = max(clip.frames, key=lambda frame: frame.display).number
    lost = {packet.number for packet in clip.packets if packet.frame == last}
    found = deliveries(clip.frames, clip.packets, {n: t for n, t in arrivals.items() if n not in lost}, playout)
    assert delivery_measures(found).stall_s == pytest.approx(0.4, abs=0.001)


def test_player_of_varying_rate_gets_the_times(clip: CodedClip) -> None:
    sent = Description.of(clip, 100.0)
    read = read_description(sent.encode())
    assert read.frames == clip.frames
    assert read.duration_s == pytest.approx(11.0, abs=0.002)
    constant = FrameFormat(64, 64, Fraction(25))
    assert constant.time_ms(3) == 120.0


def test_player_refuses_times_beyond_a_day(clip: CodedClip) -> None:
    message = bytearray(Description.of(clip, 100.0).encode())
    table = message.index(b"\n") + 1
    for at in range(table, len(message), 9):
        message[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    with pytest.raises(VideoError, match=r"do not begin at 0|lasts longer|more than an hour"):
        read_description(bytes(message))


def test_pictures_of_varying_rate_play_as_long_as_the_clip(clip: CodedClip, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    write_browser_clip(clip.source, path)
    shown = subprocess.run([ffmpeg.executable(), "-hide_banner", "-i", str(path)], capture_output=True, text=True)
    assert "Duration: 00:00:11.0" in shown.stderr


@pytest.mark.parametrize(
    ("name", "rate", "expected"),
    [("a.mp4", "30000/1001", Fraction(30000, 1001)), ("a.mkv", "30", Fraction(30)), ("a.avi", "12", Fraction(12))],
)
def test_constant_rate_stays_constant_in_each_container(
    tmp_path: Path, name: str, rate: str, expected: Fraction
) -> None:
    made = read_clip(make(tmp_path / name, *pattern(rate=rate)), tmp_path / "out.yuv", ReadOptions())
    assert (made.format.rate, made.format.times_us) == (expected, None)


def test_given_rate_plays_all_frames_at_that_rate(slowing: Path, tmp_path: Path) -> None:
    made = read_clip(slowing, tmp_path / "out.yuv", ReadOptions(rate=Fraction(10)))
    assert (made.count, made.format.rate, made.format.times_us) == (50, Fraction(10), None)


def test_fewer_frames_keep_the_times_of_the_first(slowing: Path, tmp_path: Path) -> None:
    made = read_clip(slowing, tmp_path / "out.yuv", ReadOptions(frames=30))
    assert made.format.times_us is not None
    assert [time / 1000 for time in made.format.times_us] == pytest.approx(TIMES_MS[:30], abs=1)


def test_offset_of_the_first_frame_is_taken_off(tmp_path: Path) -> None:
    path = make(tmp_path / "late.mkv", *pattern("setpts='(5+N*N/25)/TB'", seconds=0.4))
    made = read_clip(path, tmp_path / "out.yuv", ReadOptions())
    assert made.format.times_us is not None
    assert made.format.times_us[:3] == pytest.approx([0, 40_000, 160_000], abs=1000)


@pytest.mark.parametrize("times", ["0, 0, x", "0, 0", "0, 0, 0\n0, 0, 0"])
def test_unreadable_times_are_an_error(tmp_path: Path, times: str) -> None:
    (tmp_path / "times").write_text(times)
    with pytest.raises(VideoError, match=r"clip: the times of its frames"):
        read_timing(tmp_path / "times", Fraction(25), "clip")


def test_frames_without_times_follow_the_nominal_rate(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("#tb\n" + f"0, 0, {-(1 << 63)}\n" * 3)
    assert read_timing(tmp_path / "times", Fraction(25), "clip").times_us is None


def sound(folder: Path) -> Path:
    return make(folder / "sound.m4a", *TONE, "-c:a", "aac")


def covered_sound(folder: Path) -> Path:
    cover = make(folder / "cover.png", "-f", "lavfi", "-i", "testsrc=size=64x64:duration=0.04", "-frames:v", "1")
    streams = ("-map", "0:a", "-map", "1:v", "-c:v", "png", "-disposition:v:0", "attached_pic", "-c:a", "aac")
    return make(folder / "covered.m4a", *TONE, "-i", ffmpeg.file_url(cover), *streams)


@pytest.mark.parametrize("file", [sound, covered_sound], ids=["sound", "sound with a cover"])
def test_sound_without_moving_pictures_is_named_so(tmp_path: Path, file: Callable[[Path], Path]) -> None:
    with pytest.raises(VideoError, match=r"has no video stream, only sound or sound with a cover picture"):
        read_clip(file(tmp_path), tmp_path / "out.yuv", ReadOptions())


def test_cover_picture_before_the_video_is_left_out(tmp_path: Path) -> None:
    cover = make(tmp_path / "cover.png", "-f", "lavfi", "-i", "testsrc=size=32x32:duration=0.04", "-frames:v", "1")
    video = make(tmp_path / "video.mp4", *pattern(seconds=1))
    inputs = ("-i", ffmpeg.file_url(cover), "-i", ffmpeg.file_url(video), "-map", "0:v", "-map", "1:v", "-c", "copy")
    both = make(tmp_path / "both.mp4", *inputs, "-disposition:v:0", "attached_pic")
    made = read_clip(both, tmp_path / "out.yuv", ReadOptions())
    assert (made.count, made.format.size) == (25, "64x64")
