"""Coding: the structure of groups, a reproducible bitstream, and a decoder that confirms the dependencies."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from video_support import DEADLINE_MS, arrivals_of, random_arrivals

from anabranch.errors import VideoError
from anabranch.video import CodedClip, Coding, ReadOptions, ffmpeg, read_coded, write_coded
from anabranch.video.clips import make_clip
from anabranch.video.elementary import CodedFrame, split
from anabranch.video.encoder import decode, encode
from anabranch.video.fates import Delivery, Fate, Playout, deliveries
from anabranch.video.format import QCIF, FrameFormat
from anabranch.video.frame import FrameType
from anabranch.video.raw import RawFrames, write_frames
from anabranch.video.rebuild import rebuild, reduced_stream, shown_frames
from anabranch.video.trace import read_frame_trace


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        make()
    return str(refused.value)


def delivered(clip: CodedClip, arrivals_ms: dict[int, float]) -> list[Delivery]:
    playout = Playout.of(DEADLINE_MS)
    return deliveries(clip.frames, clip.packets, arrivals_ms, playout)


def test_the_structure_of_the_paper_is_met() -> None:
    assert Coding().expected(2000) == {FrameType.I: 223, FrameType.P: 445, FrameType.B: 1332}


def test_groups_of_nine_have_two_b_frames_between_references(coded_clip: CodedClip) -> None:
    types = "".join(frame.type.value for frame in sorted(coded_clip.frames, key=lambda frame: frame.display))
    assert types == "IBBPBBPBB" * 6 + "IP"


@pytest.mark.parametrize(
    ("frames", "coding"),
    [
        *((frames, Coding()) for frames in (1, 2, 8, 9, 16, 17, 18, 19)),
        *((frames, Coding(6, 1)) for frames in (6, 11, 12, 19)),
        *((10, Coding(3, 0)), (7, Coding(1, 0)), (23, Coding(12, 2))),
    ],
)
def test_other_structures_have_their_counted_frames(tmp_path: Path, frames: int, coding: Coding) -> None:
    clip = write_coded("synthetic", tmp_path, reading=ReadOptions(frames=frames, size=(64, 48)), coding=coding)
    assert Counter(frame.type for frame in clip.frames) == +coding.expected(frames)
    assert decode(tmp_path / "stream.m4v", clip.source, tmp_path / "decoded.yuv").count == frames


def test_a_cut_in_the_clip_makes_no_i_frame(coded_clip: CodedClip, tmp_path: Path) -> None:
    other = make_clip("synthetic", tmp_path / "other.yuv", ReadOptions(frames=9))
    rows = [*coded_clip.source.samples()[:5], *other.samples()]
    clip = write_frames(tmp_path / "cut.yuv", QCIF, (row.tobytes() for row in rows), "cut")
    types = "".join(frame.type.value for frame in split(encode(clip, tmp_path / "cut.m4v"), "cut"))
    assert types == "IPBBPBBIBBPBBP"


@pytest.mark.parametrize(
    "coding", [Coding(0), Coding(601), Coding(9, 3), Coding(9, -1), Coding(9, 2, 0), Coding(9, 2, 32)]
)
def test_setting_that_the_encoder_would_change_is_refused(coding: Coding) -> None:
    assert re.search(r"give .* with --(gop|b-frames|quantiser)|so that one more divides --gop", refusal(coding.checked))


def test_types_and_order_are_those_that_ffmpeg_decodes(coded_clip: CodedClip) -> None:
    command = [ffmpeg.executable(), "-hide_banner", "-i", str(coded_clip.folder / "stream.m4v"), "-vf", "showinfo"]
    ended = subprocess.run(
        [*command, "-f", "null", "-"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    decoded = re.findall(r" type:([IPB]) ", ended.stderr)
    assert decoded == [frame.type.value for frame in sorted(coded_clip.frames, key=lambda frame: frame.display)]


def test_frames_are_all_of_the_stream_without_gaps(coded_clip: CodedClip) -> None:
    assert b"".join(frame.bytes_of(coded_clip.stream) for frame in coded_clip.coded) == coded_clip.stream
    for frame in coded_clip.coded:
        vop = frame.bytes_of(coded_clip.stream)[frame.header_bytes :]
        assert vop.startswith(b"\x00\x00\x01\xb6")
        assert (frame.header_bytes > 0) == (frame.type is FrameType.I)


def test_the_same_clip_gives_the_same_bitstream(coded_clip: CodedClip, tmp_path: Path) -> None:
    again = encode(coded_clip.source, tmp_path / "again.m4v")
    assert again == coded_clip.stream
    assert hashlib.sha256(again).hexdigest() == coded_clip.manifest["bitstream_sha256"]


def test_manifest_has_the_encoder_settings(coded_clip: CodedClip) -> None:
    manifest = json.loads((coded_clip.folder / "manifest.json").read_text())
    assert manifest == coded_clip.manifest
    assert manifest["clip"] == "photographs"
    assert manifest["encoder"].startswith("ffmpeg version ")
    assert manifest["frames_by_type"] == {"I": 7, "P": 13, "B": 36}
    assert manifest["packets"] == len(coded_clip.packets)
    assert sum(packet.size_bytes for packet in coded_clip.packets) == manifest["bitstream_bytes"]
    assert str(coded_clip.folder) not in json.dumps(manifest)


def test_a_users_clip_is_named_without_its_folder(coded_clip: CodedClip, tmp_path: Path) -> None:
    file = tmp_path / "mine_qcif.yuv"
    shutil.copyfile(coded_clip.source.path, file)
    assert write_coded(str(file), tmp_path / "out", reading=ReadOptions(frames=2)).manifest["clip"] == "mine_qcif.yuv"


def test_traces_for_a_sender_lie_beside_the_bitstream(coded_clip: CodedClip) -> None:
    assert read_frame_trace(coded_clip.folder / "trace.csv") == coded_clip.frames
    lines = (coded_clip.folder / "packets.csv").read_text().splitlines()
    assert lines[0] == "packet,frame,type,size_bytes,time_ms"
    assert len(lines) == 1 + len(coded_clip.packets)


def test_a_coded_clip_is_read_as_it_was_written(coded_clip: CodedClip) -> None:
    assert read_coded(coded_clip.folder) == coded_clip


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("stream.m4v", lambda content: content[:-1], "stream.m4v: differs from manifest.json"),
        ("stream.m4v", lambda content: b"", "stream.m4v: differs from manifest.json"),
        ("source.yuv", lambda content: content[1:] + b"x", "source.yuv: differs from manifest.json"),
        ("source.yuv", lambda content: content[1:], "are no whole number of frames"),
        ("manifest.json", lambda content: content[:-10], "manifest.json: is damaged"),
        ("manifest.json", lambda content: b"[]", "manifest.json: is not a manifest"),
        ("manifest.json", lambda content: b"[" * 60_000, "manifest.json: is damaged"),
        ("manifest.json", lambda content: b" " * 5_000_000, "manifest.json: has more than 4194304 bytes"),
        ("manifest.json", lambda content: content.replace(b"video-1", b"video-9"), "`format` is not"),
        ("manifest.json", lambda content: content.replace(b'"width": 176', b'"width": "176"'), "`width` is missing"),
        (
            "manifest.json",
            lambda content: content.replace(b'"rate": "30"', b'"rate": "1/0"'),
            "`rate` is not a fraction",
        ),
        ("manifest.json", lambda content: content.replace(b'"rate": "30"', b'"rate": "1e9"'), "a rate of 1000000000"),
        ("manifest.json", lambda content: content.replace(b'bytes": 1452', b'bytes": 0'), "a payload of 0 bytes"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_file(
    coded_clip: CodedClip, tmp_path: Path, name: str, change: Callable[[bytes], bytes], message: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(coded_clip.folder, folder)
    (folder / name).write_bytes(change((folder / name).read_bytes()))
    assert message in refusal(lambda: read_coded(folder))


def test_folder_with_other_files_is_unchanged(coded_clip: CodedClip, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    assert "has other files (`thesis.tex`)" in refusal(lambda: write_coded("synthetic", tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def vop(kind: int) -> bytes:
    return b"\x00\x00\x01\xb6" + bytes([kind << 6]) + b"data"


def test_headers_belong_to_the_frame_after_them() -> None:
    layer, group = b"\x00\x00\x01\x20layer", b"\x00\x00\x01\xb3group"
    stream = layer + group + vop(0) + vop(1) + vop(2) + group + vop(0)
    assert split(stream, "s") == [
        CodedFrame(FrameType.I, 0, 27, 18),
        CodedFrame(FrameType.P, 27, 9, 0),
        CodedFrame(FrameType.B, 36, 9, 0),
        CodedFrame(FrameType.I, 45, 18, 9),
    ]


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"", "is not an elementary stream"),
        (b"RIFF" + vop(0), "is not an elementary stream"),
        (b"\x00\x00\x01", "ends without a coded frame"),
        (b"\x00\x00\x01\x20layer", "ends without a coded frame"),
        (vop(0) + b"\x00\x00\x01\xb3group", "ends without a coded frame"),
        (b"\x00\x00\x01\xb6", "a coded frame at byte 0 is empty"),
        (b"\x00\x00\x01\xb6" + vop(0), "a coded frame at byte 0 is empty"),
        (vop(0) + vop(3), "the coded frame at byte 9 is a sprite"),
    ],
)
def test_a_damaged_stream_is_refused(stream: bytes, message: str) -> None:
    assert refusal(lambda: split(stream, "stream.m4v")).startswith(f"stream.m4v: {message}")


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.video.elementary.MAX_FRAMES", 3)
    assert "more than 3 frames" in refusal(lambda: split(vop(0) * 5, "s"))
    monkeypatch.setattr("anabranch.video.elementary.MAX_BITSTREAM_BYTES", 20)
    assert "more than 20 bytes" in refusal(lambda: split(vop(0) * 5, "s"))


@pytest.mark.parametrize(("loss", "seed"), [(0.02, 1), (0.1, 2), (0.1, 3), (0.3, 4), (0.6, 5)])
def test_decodable_frames_alone_decode_to_the_samples_of_the_clip(
    coded_clip: CodedClip, decoded_clip: Path, tmp_path: Path, loss: float, seed: int
) -> None:
    found = delivered(coded_clip, random_arrivals(coded_clip.frames, coded_clip.packets, loss, seed))
    good = sorted(each.frame.display for each in found if each.fate is Fate.GOOD)
    assert 0 < len(good) < len(found)
    reduced = tmp_path / "reduced.m4v"
    reduced.write_bytes(reduced_stream(coded_clip.stream, coded_clip.coded, found))
    received = decode(reduced, coded_clip.source, tmp_path / "received.yuv", len(good))
    whole = RawFrames.open(decoded_clip, QCIF)
    assert np.array_equal(received.samples(), whole.samples()[good])


def test_the_bitstream_without_its_first_group_decodes_too(
    coded_clip: CodedClip, decoded_clip: Path, tmp_path: Path
) -> None:
    arrivals = arrivals_of(coded_clip.frames, coded_clip.packets, [0])
    found = delivered(coded_clip, arrivals)
    good = sorted(each.frame.display for each in found if each.fate is Fate.GOOD)
    assert good[0] == 9
    (tmp_path / "reduced.m4v").write_bytes(reduced_stream(coded_clip.stream, coded_clip.coded, found))
    received = decode(tmp_path / "reduced.m4v", coded_clip.source, tmp_path / "received.yuv", len(good))
    assert np.array_equal(received.samples(), RawFrames.open(decoded_clip, QCIF).samples()[good])


def test_a_frame_that_a_decoder_does_not_give_is_an_error(coded_clip: CodedClip, tmp_path: Path) -> None:
    (tmp_path / "short.m4v").write_bytes(b"".join(frame.bytes_of(coded_clip.stream) for frame in coded_clip.coded[:10]))
    said = refusal(lambda: decode(tmp_path / "short.m4v", coded_clip.source, tmp_path / "out.yuv"))
    assert said == f"{tmp_path / 'short.m4v'}: 10 frames were decoded of 56: encode the clip again"


def test_last_good_frame_is_repeated_and_numbers_stay(
    coded_clip: CodedClip, decoded_clip: Path, tmp_path: Path
) -> None:
    lost_frame = next(frame.number for frame in coded_clip.frames if frame.display == 15)
    lost = [packet.number for packet in coded_clip.packets if packet.frame == lost_frame]
    shown = shown_frames(delivered(coded_clip, arrivals_of(coded_clip.frames, coded_clip.packets, lost)))
    # The P frame in place 15, and the B frames on both sides.
    assert shown == [*range(13), 12, 12, 12, 12, 12, *range(18, 56)]
    whole = RawFrames.open(decoded_clip, QCIF)
    rebuilt = rebuild(whole, shown, tmp_path / "rebuilt.yuv")
    assert rebuilt.count == 56
    assert np.array_equal(rebuilt.samples(), whole.samples()[shown])


def test_before_the_first_good_frame_the_screen_is_black(
    coded_clip: CodedClip, decoded_clip: Path, tmp_path: Path
) -> None:
    shown = shown_frames(delivered(coded_clip, arrivals_of(coded_clip.frames, coded_clip.packets, [0])))
    assert shown[:10] == [None] * 9 + [9]
    rebuilt = rebuild(RawFrames.open(decoded_clip, QCIF), shown, tmp_path / "rebuilt.yuv")
    assert set(np.unique(rebuilt.luma()[0])) == {16}
    assert set(np.unique(rebuilt.samples()[0, QCIF.luma_bytes :])) == {128}


def test_a_stream_with_larger_frames_than_it_is_said_to_have_is_refused(coded_clip: CodedClip, tmp_path: Path) -> None:
    small = RawFrames(coded_clip.folder / "stream.m4v", FrameFormat(64, 48, QCIF.rate), 56)
    said = refusal(lambda: decode(small.path, small, tmp_path / "decoded.yuv"))
    assert "are no whole number of frames of 64x48" in said or "frames were decoded of 56" in said
    # The output ends some frames after the size of smaller frames, and not with the last of the larger ones.
    assert (tmp_path / "decoded.yuv").stat().st_size < 28 * QCIF.frame_bytes
