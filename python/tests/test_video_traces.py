"""Files of frames, packets and arrivals: written files are read back, and errors in them are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from video_support import CODING_ORDER, arrivals_of, frames_of

from anabranch.errors import VideoError
from anabranch.video.arrivals import read_arrivals, write_arrivals
from anabranch.video.evalvid import read_evalvid
from anabranch.video.frame import Frame, FrameType
from anabranch.video.packets import packetise
from anabranch.video.tables import write_table
from anabranch.video.trace import read_frame_trace, write_frame_trace


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        read()
    return str(refused.value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_trace_is_read_as_it_was_written(tmp_path: Path, ending: str) -> None:
    frames = frames_of(CODING_ORDER)
    file = tmp_path / f"trace.{ending}"
    write_frame_trace(file, frames)
    assert read_frame_trace(file) == frames


def test_the_places_in_the_order_of_display_follow_from_the_types(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("number,type,size_bytes,time_ms\n0,I,900,0\n1,P,100,33.333\n2,B,50,66.667\n")
    assert [(frame.type, frame.display) for frame in read_frame_trace(file)] == [
        (FrameType.I, 0),
        (FrameType.P, 2),
        (FrameType.B, 1),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "has no frame"),
        ("0,X,10,0", "row 1: `type` is 'X', and should be I, P or B"),
        ("0,I,ten,0", "row 1: `size_bytes` is 'ten', which is not a number"),
        ("0,I,-1,0", "row 1: `size_bytes` is '-1', and should be a whole number from 0"),
        ("0,I,1.5,0", "row 1: `size_bytes` is '1.5'"),
        ("0,I,1e300,0", "row 1: `size_bytes` is '1e300'"),
        ("0,I,0,0", "row 1: a frame of 0 bytes"),
        ("1,I,10,0", "row 1: `number` should be 0"),
        ("0,I,10,nan", "row 1: `time_ms` is 'nan'"),
        ("0,I,10,inf", "row 1: `time_ms` is 'inf'"),
        ("0,I,10,5\n1,P,10,4", "row 2: `time_ms` is before"),
        ("0,I,10", "row 1: `time_ms` is None, which is not a number"),
        ("0,I,\x1b[31m,0", r"row 1: `size_bytes` is '\x1b[31m'"),
    ],
)
def test_a_wrong_trace_is_refused_with_file_and_row(tmp_path: Path, rows: str, message: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(f"number,type,size_bytes,time_ms\n{rows}\n" if rows else "number,type,size_bytes,time_ms\n")
    said = refusal(lambda: read_frame_trace(file))
    assert said.startswith(f"{file}: ")
    assert message in said


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"number,type\n0,I\n", "has no column `size_bytes`"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read"),
        ("a.parquet", b"PAR1 but no more", "is damaged or no Parquet file"),
        ("a.parquet", b"", "is damaged or no Parquet file"),
        ("a.json", b"{}", "tables are .csv or .parquet"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in refusal(lambda: read_frame_trace(tmp_path / name))


def test_missing_file_is_reported(tmp_path: Path) -> None:
    assert (
        refusal(lambda: read_frame_trace(tmp_path / "none.csv"))
        == f"{tmp_path / 'none.csv'}: cannot be read: No such file or directory"
    )


def test_a_trace_with_more_frames_than_a_clip_may_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.video.trace.MAX_FRAMES", 18)
    write_frame_trace(tmp_path / "trace.csv", frames_of(CODING_ORDER))
    assert "has more than 18 rows" in refusal(lambda: read_frame_trace(tmp_path / "trace.csv"))


def test_a_trace_of_evalvid_gives_frames_with_their_headers(tmp_path: Path) -> None:
    file = tmp_path / "st_highway"
    file.write_text(
        "0\tH\t29\t1\t5.000\n1\tI\t3071\t4\t5.033\n2\tP\t659\t1\t5.066\n\n3\tB\t357\t1\t5.099\n4 B 374 1 5.133\n"
    )
    frames = read_evalvid(file)
    assert frames[0] == Frame(0, 0, FrameType.I, 3100, 0.0)
    assert frames[1] == Frame(1, 3, FrameType.P, 659, 33.0)
    assert [frame.display for frame in frames] == [0, 3, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 I 100 1\n", "line 1: has 4 fields, and should have 5"),
        ("0 Q 100 1 0.0\n", "line 1: `type` is 'Q'"),
        ("0 I x 1 0.0\n", "line 1: `size_bytes` is 'x'"),
        ("0 I 100 1 0.0\n1 P 100 1 -1\n", "line 2: `time_s` is '-1'"),
        ("0 H 100 1 0.0\n", "has no frame"),
        ("I" * 10_000, "line 1: has 1 fields"),
    ],
)
def test_a_wrong_trace_of_evalvid_is_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "st"
    file.write_text(text)
    said = refusal(lambda: read_evalvid(file))
    assert said.startswith(f"{file}: ")
    assert message in said


def test_packets_are_full_but_the_last_of_each_frame_and_never_shared() -> None:
    frames = frames_of("IP", size_bytes=3000)
    packets = packetise(frames, 1452)
    assert [(packet.number, packet.frame, packet.size_bytes) for packet in packets] == [
        (0, 0, 1452),
        (1, 0, 1452),
        (2, 0, 96),
        (3, 1, 1452),
        (4, 1, 1452),
        (5, 1, 96),
    ]
    assert len(packetise(frames_of("I", size_bytes=2904), 1452)) == 2


@pytest.mark.parametrize("payload", [0, -1, 65_001])
def test_a_payload_out_of_bounds_is_refused(payload: int) -> None:
    assert "give 1 to 65000 with --payload" in refusal(lambda: packetise(frames_of("I"), payload))


def test_more_packets_than_there_may_be_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch.video.packets.MAX_PACKETS", 199)
    assert "200 packets are more than 199" in refusal(lambda: packetise(frames_of("IP", size_bytes=100), 1))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_arrivals_are_read_as_they_were_written(tmp_path: Path, ending: str) -> None:
    frames = frames_of(CODING_ORDER)
    packets = packetise(frames)
    arrivals = arrivals_of(frames, packets, [3, 7])
    write_arrivals(tmp_path / f"a.{ending}", arrivals)
    assert read_arrivals(tmp_path / f"a.{ending}", frames, packets) == arrivals


def test_lost_packets_have_no_row_or_time_and_first_copy_counts(tmp_path: Path) -> None:
    frames = frames_of("IPBB")
    file = tmp_path / "a.csv"
    file.write_text("packet,arrival_ms,path\n2,90,1\n0,\n1,70,2\n2,80,2\n1,75,1\n")
    assert read_arrivals(file, frames, packetise(frames)) == {1: 70.0, 2: 80.0}
    table = pa.table({"packet": [0, 1, 2], "arrival_ms": [None, 70.0, float("nan")]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_arrivals(tmp_path / "a.parquet", frames, packetise(frames)) == {1: 70.0}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_arrivals_are_distinguished_from_other_files(tmp_path: Path, ending: str) -> None:
    frames = frames_of("IPBB")
    packets = packetise(frames)
    file = tmp_path / f"a.{ending}"
    write_arrivals(file, {})
    assert read_arrivals(file, frames, packets) == {}
    write_table(file, {"packet": [], "time_s": []})
    assert f"{file}: has no column `arrival_ms`" in refusal(lambda: read_arrivals(file, frames, packets))


def test_other_columns_of_parquet_are_not_even_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = frames_of("IPBB")
    table = pa.table({"packet": [0], "note": ["x" * 10_000], "arrival_ms": [20.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    read: list[list[str]] = []
    batches = pq.ParquetFile.iter_batches

    def noted(self: pq.ParquetFile, size: int, *, columns: list[str], use_threads: bool) -> object:
        read.append(columns)
        return batches(self, size, columns=columns, use_threads=use_threads)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert read_arrivals(tmp_path / "a.parquet", frames, packetise(frames)) == {0: 20.0}
    assert read == [["packet", "arrival_ms"]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("4,500", "row 1: `packet` is '4', and should be a whole number from 0 to 3"),
        ("-1,500", "row 1: `packet` is '-1'"),
        ("0,soon", "row 1: `arrival_ms` is 'soon', which is not a number"),
        ("0,-5", "row 1: `arrival_ms` is '-5', and should be a time of 0 or more"),
        ("0,inf", "row 1: `arrival_ms` is 'inf'"),
        ("0,5\n3,99", "row 2: packet 3 arrives at 99 ms, before its frame is handed to the sender at 100 ms"),
        ("0,5\n" * 65, "has more than 64 rows"),
    ],
)
def test_wrong_arrivals_are_refused_with_file_and_row(tmp_path: Path, rows: str, message: str) -> None:
    frames = frames_of("IPBB")
    file = tmp_path / "a.csv"
    file.write_text(f"packet,arrival_ms\n{rows}\n")
    said = refusal(lambda: read_arrivals(file, frames, packetise(frames)))
    assert said.startswith(f"{file}: ")
    assert message in said
