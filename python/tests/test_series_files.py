"""Folders that are no trace, traces that are cut off, and invalid files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from written_traces import PACKET_HEADER, decision_row, packet_row, path_row, write_trace

from anabranch.errors import AnabranchError, TraceError
from anabranch.scenario import Path as ScenarioPath
from anabranch.scenario import RunSettings, Scenario
from anabranch.series import read_trace
from anabranch.series.folder import FORMAT
from anabranch.simulation import run

PACKETS = [packet_row(0.1, "sent", 1), packet_row(0.2, "received", 1), packet_row(0.3, "sent", 2)]


def trace(folder: Path, **more: object) -> Path:
    rows = {"paths": [path_row(0.0), path_row(0.25)], "decisions": [decision_row(0.15, "blocked")], "packets": PACKETS}
    return write_trace(folder, **{**rows, **more})  # type: ignore[arg-type]


def change(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))


# Folders


def test_the_format_is_that_of_the_runs_of_this_version(tmp_path: Path) -> None:
    scenario = Scenario(run=RunSettings(duration="1 s"), paths=[ScenarioPath(rate="1 Mbit/s", delay="1 ms")])
    assert run(scenario, trace=tmp_path).series.manifest["format"] == FORMAT


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere: no such folder") as caught:
        read_trace(tmp_path / "nowhere")
    assert isinstance(caught.value, AnabranchError)


def test_folder_without_trace_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"(?s)no run\.toml.*`run\(\.\.\., trace=DIR\)` writes"):
        read_trace(tmp_path)


def test_a_folder_of_several_runs_names_them(tmp_path: Path) -> None:
    for index in range(7):
        trace(tmp_path / f"cmt-seed{index}")
    with pytest.raises(
        TraceError, match=r"traces of 7 runs; open one of its folders: cmt-seed0, .*, cmt-seed4, \.\.\.$"
    ):
        read_trace(tmp_path)


def test_traces_of_earlier_versions_are_recognized(tmp_path: Path) -> None:
    (trace(tmp_path / "run") / "run.toml").unlink()
    with pytest.raises(TraceError, match=r"traces without run\.toml, as earlier versions wrote them"):
        read_trace(tmp_path / "run")


@pytest.mark.parametrize(("found", "said"), [(1, "of format 1"), (3, "of format 3"), ("two", "of format two")])
def test_traces_of_another_format_are_refused(tmp_path: Path, found: object, said: str) -> None:
    folder = trace(tmp_path / "run", format=found, version="9.9")
    with pytest.raises(TraceError, match=rf"run\.toml: traces {said}, written by version 9\.9; format 2 is"):
        read_trace(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "of no format, written by version unknown"),
        (b"format = ", "Invalid value"),
        (b"caf\xe9 = 1", "utf-8"),
        (b"format = 2\nsender = 5", "`sender` is not a list"),
        (b"format = 2\nsender = [5]", r"a \[\[sender\]\] lacks"),
        (b'format = 2\n[[sender]]\nname = "a"\nflow = "b"\npaths = []', r"lacks 'direction'"),
        (b'format = 2\n[[sender]]\nname = "a"\nflow = "b"\npaths = []\ndirection = "up"', "about the sender 'a'"),
        (b'format = 2\n[[sender]]\nname = "a"\nflow = 1\npaths = []\ndirection = "forward"', "about the sender 'a'"),
    ],
)
def test_a_manifest_that_no_run_writes_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    folder = trace(tmp_path / "run")
    (folder / "run.toml").write_bytes(text)
    with pytest.raises(TraceError, match=message) as caught:
        read_trace(folder)
    assert str(caught.value).startswith(str(folder / "run.toml"))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"5", b'{"ended_s": "soon", "file_bytes": {}}', b'{"ended_s": 1}'])
def test_a_result_that_no_run_writes_is_refused(tmp_path: Path, text: bytes) -> None:
    folder = trace(tmp_path / "run")
    (folder / "result.json").write_bytes(text)
    with pytest.raises(TraceError, match=r"result\.json: .*trace the run again"):
        read_trace(folder)


# Traces that are not complete


def test_unfinished_run_is_read_up_to_its_end(tmp_path: Path) -> None:
    series = read_trace(trace(tmp_path / "run", ended_s=None))
    assert not series.complete
    assert series.result is None
    assert series.notes == ["the run did not end: result.json is missing"]
    assert series.end_s == 0.3
    assert series.packets()["tsn"].tolist() == [1, 1, 2]
    assert series.blocked()[["start_s", "end_s"]].to_numpy().tolist() == [[0.15, 0.3]]
    assert series.throughput(0.2)["time_s"].unique().tolist() == [0.0, 0.2]
    assert "incomplete" in repr(series)


@pytest.mark.parametrize("ended_s", [None, 1.0])
@pytest.mark.parametrize("cut", range(1, len(PACKETS[-1]) + 2))
def test_a_file_that_is_cut_off_anywhere_in_its_last_row_loses_only_that(
    tmp_path: Path, ended_s: float | None, cut: int
) -> None:
    folder = trace(tmp_path / "run", ended_s=ended_s)
    change(folder / "packets.csv", lambda data: data[:-cut])
    series = read_trace(folder)
    assert len(series.packets()) == 2
    assert not series.complete
    if ended_s is not None:
        assert series.notes == ["not as the run wrote it, being cut short or changed: packets.csv"]
        assert series.end_s == 1.0


@pytest.mark.parametrize("length", [0, 1, 20, len(PACKET_HEADER), len(PACKET_HEADER) + 1])
def test_a_file_that_is_cut_off_before_its_first_row_is_empty(tmp_path: Path, length: int) -> None:
    folder = trace(tmp_path / "run", ended_s=None)
    change(folder / "packets.csv", lambda data: data[:length])
    series = read_trace(folder)
    assert len(series.packets()) == len(series.tsn()) == len(series.out_of_order()) == 0
    assert len(series.throughput()) == 2
    assert series.end_s == 0.25


def test_a_run_that_ended_before_it_began_has_no_length(tmp_path: Path) -> None:
    series = read_trace(write_trace(tmp_path / "run", ended_s=None))
    assert series.end_s == 0.0
    assert len(series.throughput()) == len(series.sampled()) == 0


def test_bytes_after_the_last_row_are_ignored(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    change(folder / "packets.csv", lambda data: data + b"\0" * 4096)
    assert len(read_trace(folder).packets()) == 3
    change(folder / "packets.csv", lambda data: data.rstrip(b"\0") + "0.4,flow-1,forward,pfä".encode()[:-1])
    assert len(read_trace(folder).packets()) == 3


def test_rows_may_be_far_from_the_end_of_a_file_that_is_cut_off(tmp_path: Path) -> None:
    rows = [packet_row(index / 1000, "sent", index) for index in range(5000)]
    folder = trace(tmp_path / "run", packets=rows, ended_s=None)
    change(folder / "packets.csv", lambda data: data[:-3])
    assert read_trace(folder).packets()["tsn"].tolist() == list(range(4999))


def test_a_missing_file_is_named_and_the_others_can_be_read(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    (folder / "packets.csv").unlink()
    series = read_trace(folder)
    assert series.notes == ["missing: packets.csv"]
    assert "incomplete" in repr(series)
    assert len(series.paths()) == 2
    for read in (series.packets, series.tsn, series.throughput):
        with pytest.raises(TraceError, match=rf"{re.escape(str(folder))}/packets\.csv: No such file"):
            read()


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    (folder / "packets.csv").unlink()
    (folder / "packets.csv").mkdir()
    with pytest.raises(TraceError, match=r"packets\.csv"):
        read_trace(folder).packets()


# Invalid rows


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"tsn", b"TSN", r"no column `tsn`, so the file was written by another version \(0\.1\.0\)"),
        (b"sent,1,1000", b"sent,1", r"Expected 7 columns, got 6"),
        (b"sent,1,", b"sent,one,", "invalid value 'one'"),
        (b"sent,1,", b"sent,,", r"line 2: `tsn` is empty"),
        (b"sent,2,", b"sent,99999999999999999999,", "invalid value '99999999999999999999'"),
        (b"0.300000000", b"0.150000000", "line 4: the time goes back"),
        (b"0.200000000", b"", "line 3: `time_s` is empty"),
        (b"received", b'"received', "CSV parse error"),
        (b"received", b"rec\xe9ived", "UTF8"),
    ],
)
def test_a_row_that_no_run_writes_is_an_error_with_its_place(
    tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    folder = trace(tmp_path / "run")
    change(folder / "packets.csv", lambda data: data.replace(old, new, 1))
    with pytest.raises(TraceError, match=message) as caught:
        read_trace(folder).packets()
    assert str(caught.value).startswith(str(folder / "packets.csv"))


def test_columns_that_are_not_known_here_are_kept(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    change(folder / "packets.csv", lambda data: data.replace(b"\n", b",7\n").replace(b"bytes,7", b"bytes,stream", 1))
    assert read_trace(folder).packets()["stream"].tolist() == [7, 7, 7]


def test_the_order_of_columns_does_not_matter(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    rows = (folder / "packets.csv").read_text().splitlines()
    (folder / "packets.csv").write_text("".join(f"{','.join(reversed(row.split(',')))}\n" for row in rows))
    assert read_trace(folder).tsn()["tsn"].tolist() == [1, 1, 2]


def test_files_that_the_result_does_not_count_are_not_whole(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    result = json.loads((folder / "result.json").read_text())
    del result["file_bytes"]["queues.csv"]
    (folder / "result.json").write_text(json.dumps(result))
    assert read_trace(folder).notes == ["not as the run wrote it, being cut short or changed: queues.csv"]
