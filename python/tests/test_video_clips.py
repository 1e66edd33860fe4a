"""Clips: computed ones are the same on all machines, and a user's file is read or refused."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from anabranch.errors import VideoError
from anabranch.video import bounds, ffmpeg
from anabranch.video.clips import SOURCES, as_y4m, make_clip
from anabranch.video.format import QCIF, FrameFormat, most_frames
from anabranch.video.raw import RawFrames, write_frames
from anabranch.video.user_clip import ReadOptions

# SHA-256 of the first 20 frames. The frames are computed with integers only, so they are the same on all machines.
HASHES = {
    "photographs": "b892986132e01b0ee1ac851ef8d5dc00c2d1c3d5e338fe1de36b2853e2284eae",
    "synthetic": "80cc7a64fe8911f7bdb2c55a4765c06b14747f4d5b6fba4f5da459d600aa7ba1",
}
FRAMES = 20


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        make()
    return str(refused.value)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> RawFrames:
    return make_clip("synthetic", tmp_path_factory.mktemp("clip") / "clip.yuv", ReadOptions(frames=FRAMES))


@pytest.fixture(scope="module")
def files(clip: RawFrames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clip as a raw file, as YUV4MPEG2 and as lossless Matroska."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "clip_qcif.yuv").write_bytes(clip.path.read_bytes())
    (folder / "clip.y4m").write_bytes(b"".join(bytes(part) for part in as_y4m(clip)))
    command = [ffmpeg.executable(), "-v", "error", "-i", str(folder / "clip.y4m"), "-c:v", "ffv1"]
    subprocess.run([*command, str(folder / "clip.mkv")], check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize("name", SOURCES)
def test_a_computed_clip_has_the_same_bytes_everywhere(tmp_path: Path, name: str) -> None:
    made = make_clip(name, tmp_path / "clip.yuv", ReadOptions(frames=FRAMES))
    assert (made.count, made.format) == (FRAMES, QCIF)
    assert made.sha256() == HASHES[name]


@pytest.mark.parametrize("name", SOURCES)
def test_a_computed_clip_opens_no_connection(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a clip asks the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    make_clip(name, tmp_path / "clip.yuv", ReadOptions(frames=2))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("size", [(32, 32), (352, 288), (640, 36)])
def test_a_computed_clip_has_any_size_and_moves(tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    made = make_clip(name, tmp_path / "clip.yuv", ReadOptions(frames=3, size=size, rate=Fraction(25)))
    assert made.format == FrameFormat(*size, Fraction(25))
    luma = made.luma()
    assert not np.array_equal(luma[0], luma[1])
    assert luma.std() > 10
    assert luma.min() >= 16
    assert luma.max() <= 235


def test_the_step_is_called_for_each_computed_frame(tmp_path: Path) -> None:
    calls: list[int] = []
    make_clip("synthetic", tmp_path / "clip.yuv", ReadOptions(frames=5), lambda: calls.append(1))
    assert len(calls) == 5


@pytest.mark.parametrize("name", ["clip_qcif.yuv", "clip.y4m", "clip.mkv"])
def test_a_file_is_read_frame_by_frame(clip: RawFrames, files: Path, tmp_path: Path, name: str) -> None:
    read = make_clip(str(files / name), tmp_path / "clip.yuv")
    assert (read.format, read.count) == (clip.format, FRAMES)
    assert np.array_equal(read.samples(), clip.samples())


@pytest.mark.parametrize("name", ["clip_qcif.yuv", "clip.y4m", "clip.mkv"])
def test_the_first_frames_of_a_file_are_taken(clip: RawFrames, files: Path, tmp_path: Path, name: str) -> None:
    read = make_clip(str(files / name), tmp_path / "clip.yuv", ReadOptions(frames=3))
    assert np.array_equal(read.samples(), clip.samples()[:3])


@pytest.mark.parametrize("name", ["clip_qcif.yuv", "clip.y4m", "clip.mkv"])
def test_a_file_is_scaled(files: Path, tmp_path: Path, name: str) -> None:
    read = make_clip(str(files / name), tmp_path / "clip.yuv", ReadOptions(scale=(64, 48)))
    assert (read.format.size, read.count) == ("64x48", FRAMES)


def test_a_rate_that_is_given_replaces_that_of_the_file(files: Path, tmp_path: Path) -> None:
    rate = Fraction(30_000, 1001)
    assert make_clip(str(files / "clip.y4m"), tmp_path / "clip.yuv", ReadOptions(rate=rate)).format.rate == rate


def test_raw_frames_of_unknown_size_ask_for_it(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "clip.yuv"
    file.write_bytes((files / "clip_qcif.yuv").read_bytes())
    assert refusal(lambda: make_clip(str(file), tmp_path / "out")).startswith(f"{file}: raw YUV contains no frame size")
    assert make_clip(str(file), tmp_path / "out", ReadOptions(size=(176, 144))).count == FRAMES


def test_a_raw_file_that_is_cut_off_is_refused(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "clip_qcif.yuv"
    file.write_bytes((files / "clip_qcif.yuv").read_bytes()[:-1])
    said = refusal(lambda: make_clip(str(file), tmp_path / "out"))
    assert said.startswith(f"{file}: 760319 bytes are no whole number of frames of 176x144")
    assert "--size" in said


@pytest.mark.parametrize("name", ["clip_qcif.yuv", "clip.y4m", "clip.mkv", "clip.mp4"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    said = refusal(lambda: make_clip(str(tmp_path / name), tmp_path / "out"))
    assert said == f"{tmp_path / name}: is empty: repair it, or give another file"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-1], "is damaged or cut off at frame 19: take those before with --frames 19"),
        (lambda content: content.replace(b"FRAME\n", b"FRUME\n", 1), "is damaged or cut off at frame 0"),
        (lambda content: content[content.index(b"\n") :], "begins with no header of YUV4MPEG2"),
        (lambda content: content.replace(b" W176", b" W99999999999"), "its header has `W99999999999`"),
        (lambda content: content.replace(b" F30:1", b" F30:0"), "has the rate `30:0`: give another with --rate"),
        (lambda content: content[: content.index(b"\n") + 1], "has no frames"),
    ],
)
def test_a_damaged_y4m_is_refused(files: Path, tmp_path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    file = tmp_path / "clip.y4m"
    file.write_bytes(damage((files / "clip.y4m").read_bytes()))
    said = refusal(lambda: make_clip(str(file), tmp_path / "out"))
    assert said.startswith(f"{file}: {message}")
    assert not (tmp_path / "out").exists()


def test_a_y4m_with_other_samples_is_converted(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "clip.y4m"
    command = [ffmpeg.executable(), "-v", "error", "-i", str(files / "clip.mkv"), "-pix_fmt", "yuv444p"]
    subprocess.run([*command, str(file)], check=True, stdin=subprocess.DEVNULL)
    assert make_clip(str(file), tmp_path / "out").count == FRAMES


@pytest.mark.parametrize("name", ["clip.mkv", "clip.mp4"])
def test_file_that_is_no_video_is_refused_with_ffmpeg_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1b[2Jthis is not a video" * 100)
    said = refusal(lambda: make_clip(str(tmp_path / name), tmp_path / "out"))
    assert said.startswith(f"{tmp_path / name}: ffmpeg failed (exit status ")
    assert said.endswith("repair it, or give another file")
    assert said.isprintable()


def test_a_video_that_is_cut_off_is_refused(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "clip.mkv"
    content = (files / "clip.mkv").read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
    said = refusal(lambda: make_clip(str(file), tmp_path / "out"))
    assert said.startswith(f"{file}: ")
    assert said.endswith("repair it, or give another file")


def test_a_video_with_damage_in_the_middle_is_refused(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "clip.mkv"
    content = bytearray((files / "clip.mkv").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 500] = bytes(500)
    file.write_bytes(content)
    assert refusal(lambda: make_clip(str(file), tmp_path / "out")).endswith("repair it, or give another file")


def test_a_playlist_that_names_another_host_is_not_followed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = tmp_path / "clip.m3u8"
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a.ts"
        file.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{url}\n#EXT-X-ENDLIST\n")
        refusal(lambda: make_clip(str(file), tmp_path / "out"))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (ReadOptions(frames=1, size=(175, 144)), "frames of 175x144 have an odd side"),
        (ReadOptions(frames=1, size=(176, 30)), "frames of 176x30 are outside"),
        (ReadOptions(frames=1, size=(4098, 64)), "frames of 4098x64 are outside"),
        (ReadOptions(frames=1, size=(4096, 4096)), "frames of 4096x4096 are outside"),
        (ReadOptions(frames=0), "has no frames"),
        (ReadOptions(frames=bounds.MAX_FRAMES + 1), "more than 108000 frames"),
        (ReadOptions(frames=1, rate=Fraction(1001)), "a rate of 1001 frames a second"),
        (ReadOptions(frames=1, rate=Fraction(0)), "a rate of 0 frames a second"),
    ],
)
def test_out_of_bounds_value_is_refused_with_the_remedy(tmp_path: Path, reading: ReadOptions, message: str) -> None:
    said = refusal(lambda: make_clip("synthetic", tmp_path / "clip.yuv", reading))
    assert said.startswith(f"synthetic: {message}")
    assert ": " in said[len("synthetic: ") :]
    assert not list(tmp_path.iterdir())


def test_an_odd_size_of_a_file_says_how_to_scale_it(tmp_path: Path) -> None:
    file = tmp_path / "clip.y4m"
    file.write_bytes(b"YUV4MPEG2 W175 H143 F30:1\n")
    assert refusal(lambda: make_clip(str(file), tmp_path / "out")).endswith("scale it with --scale 174x142")


def test_raw_frames_of_one_clip_are_bounded() -> None:
    large = FrameFormat(1920, 1088, Fraction(30))
    assert most_frames(large) * large.frame_bytes <= bounds.MAX_RAW_BYTES
    assert most_frames(QCIF) == bounds.MAX_FRAMES


def test_a_file_with_too_many_frames_is_refused_while_it_is_read(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_FRAMES", FRAMES - 1)
    for name in ("clip_qcif.yuv", "clip.y4m", "clip.mkv"):
        said = refusal(lambda name=name: make_clip(str(files / name), tmp_path / "out"))  # type: ignore[misc]
        assert said == f"{files / name}: more than 19 frames of 176x144: take fewer with --frames 19"


def test_no_more_frames_are_taken_than_may_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> Iterator[bytes]:
        for number in count():
            assert number < 4, "more frames were asked for"
            yield bytes(QCIF.frame_bytes)

    monkeypatch.setattr(bounds, "MAX_FRAMES", 3)
    assert "more than 3 frames" in refusal(lambda: write_frames(tmp_path / "out.yuv", QCIF, endless(), "endless"))
    assert not list(tmp_path.iterdir())


def test_output_of_ffmpeg_is_escaped() -> None:
    said = refusal(lambda: ffmpeg.run(["-i", "file:\u202enowhere", "-f", "null", "-"], "clip.mp4", 60))
    assert r"\u202enowhere" in said
    assert said.isprintable()


def test_a_name_that_is_neither_clip_nor_file_lists_the_clips(tmp_path: Path) -> None:
    said = refusal(lambda: make_clip("highway", tmp_path / "out"))
    assert said == "highway: is neither a file nor one of the clips: photographs, synthetic"
    assert refusal(lambda: make_clip(str(tmp_path), tmp_path / "out")) == f"{tmp_path}: is not a file: name a clip"


@pytest.mark.parametrize("module", ["imageio_ffmpeg", "PIL"])
def test_a_missing_package_is_an_error_that_names_the_extra(tmp_path: Path, module: str) -> None:
    code = f"""
import sys
sys.modules[{module!r}] = None
from pathlib import Path
from anabranch import video
from anabranch.errors import VideoError
try:
    video.write_coded("photographs", Path({str(tmp_path)!r}), reading=video.ReadOptions(frames=2))
except VideoError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("pip install 'anabranch[video]'\n")


def test_a_missing_codec_is_an_error_with_a_remedy() -> None:
    ffmpeg.require("encoders", "mpeg4", "libx264")
    ffmpeg.require("filters", "psnr", "ssim", "libvmaf")
    said = refusal(lambda: ffmpeg.require("encoders", "no-such-codec"))
    assert "this ffmpeg has no encoder `no-such-codec`" in said
    assert "pip install 'anabranch[video]'" in said


def test_ffmpeg_that_does_not_end_is_stopped() -> None:
    endless = ["-re", "-f", "lavfi", "-i", "testsrc2", "-f", "null", "-"]
    said = refusal(lambda: ffmpeg.run(endless, "clip.mp4", 0.2))
    assert said == "clip.mp4: ffmpeg did not end within 0.2 s and was stopped: give a shorter or smaller clip"
