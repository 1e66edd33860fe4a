"""Command `anabranch view`: logs of QUIC and of SCTP as timelines, and other files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anabranch.command.view import main
from anabranch.errors import QlogError
from anabranch.reporting.qlog import logs as logs_module
from anabranch.reporting.qlog import records as records_module
from anabranch.reporting.qlog.drawn import timeline_of_connections
from anabranch.reporting.qlog.logs import read_logs
from anabranch.reporting.timeline.model import Events, Line, Timeline

LOGS = Path(__file__).parent / "data" / "qlog"
WRITERS = {"aioquic": LOGS / "aioquic.qlog", "quic-go": LOGS / "quic-go.sqlog", "anabranch": LOGS / "anabranch.sqlog"}
HEADER: dict[str, Any] = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"name": "own"}}}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes events as a JSON text sequence."""

    def written(*events: Any, header: Any = HEADER, name: str = "own.sqlog") -> Path:
        file = tmp_path / name
        file.write_bytes(b"".join(b"\x1e" + json.dumps(each).encode() + b"\n" for each in (header, *events)))
        return file

    return written


def event(time: Any, name: str, path: Any = None, **data: Any) -> dict[str, Any]:
    return {"time": time, "name": name, "data": data, **({} if path is None else {"path": path})}


def metrics(time: Any, path: Any = None, **data: Any) -> dict[str, Any]:
    return event(time, "recovery:metrics_updated", path, **data)


def timeline_of(*files: Path) -> Timeline:
    return timeline_of_connections(read_logs(files).connections)


def line(timeline: Timeline, channel: str, path: str) -> Line:
    return next(each for each in timeline.lines if each.channel == channel and each.paths == (path,))


def events(timeline: Timeline, kind: str) -> Events:
    return next(each for each in timeline.events if each.kind == kind)


def raw_events(name: str) -> list[dict[str, Any]]:
    text = WRITERS[name].read_text(encoding="utf-8")
    if not text.startswith("\x1e"):
        return list(json.loads(text)["traces"][0]["events"])
    return [json.loads(record) for record in text.split("\x1e")[2:]]


@pytest.mark.parametrize(
    ("writer", "path", "cwnd", "flight"),
    [
        ("aioquic", "path-0", "cwnd", "bytes_in_flight"),
        ("quic-go", "path-0", "congestion_window", "bytes_in_flight"),
        ("anabranch", "path-1", "cwnd_bytes", "outstanding_bytes"),
    ],
)
def test_lines_have_the_values_of_the_log_where_they_change(writer: str, path: str, cwnd: str, flight: str) -> None:
    timeline = timeline_of(WRITERS[writer])
    every = raw_events(writer)
    for channel, key in (("cwnd", cwnd), ("outstanding", flight)):
        noted = [(each["time"], each["data"][key]) for each in every if key in each["data"]]
        shown = line(timeline, channel, path)
        last = (
            np.searchsorted(shown.times_s, [(time - every[0]["time"]) / 1000 + 1e-9 for time, _ in noted], "right") - 1
        )
        later = [next(value for at, value in reversed(noted) if at <= time) for time, _ in noted]
        assert len(noted) > 10
        assert list(shown.values[last] * 1024) == pytest.approx(later, rel=1e-6)


@pytest.mark.parametrize("writer", WRITERS)
def test_throughput_adds_up_to_what_was_sent_and_received(writer: str) -> None:
    timeline = timeline_of(WRITERS[writer])
    (track,) = timeline.tracks
    for channel, name in (("throughput", "packet_sent"), ("received", "packet_received")):
        data = [each["data"] for each in raw_events(writer) if each["name"].endswith(f":{name}")]
        total = sum(each["raw"]["length"] if "raw" in each else each["length"] for each in data)
        shown = line(timeline, channel, track.paths[0])
        edges = np.append(shown.times_s, track.end_s)
        assert (shown.values * np.diff(edges)).sum() * 1000 / 8 == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("writer", ["aioquic", "quic-go"])
def test_lost_packets_have_number_and_space(writer: str) -> None:
    lost = [each for each in raw_events(writer) if each["name"] == "recovery:packet_lost"]
    shown = events(timeline_of(WRITERS[writer]), "lost")
    if writer == "quic-go":
        assert list(shown.tsns if shown.tsns is not None else []) == [
            each["data"]["header"]["packet_number"] for each in lost
        ]
        assert shown.words == ("reordering_threshold, 1RTT",)
    else:
        assert list(shown.tsns if shown.tsns is not None else []) == [each["data"]["packet_number"] for each in lost]
    assert shown.total == len(lost) > 0


def test_decisions_and_tsns_of_our_own_log_are_on_the_timeline() -> None:
    timeline = timeline_of(WRITERS["anabranch"])
    (track,) = timeline.tracks
    every = raw_events("anabranch")
    decided = [each["data"] for each in every if each["name"] == "sctp:scheduler_decision"]
    sent = [chunk["tsn"] for each in every for chunk in each["data"].get("chunks", []) if chunk["type"] == "DATA"]
    assert (track.numbered, track.scheme, track.first_tsn) == ("TSN", "bonded", 2384991431)
    assert track.first_tsn in sent
    assert timeline.shares[0].counts.sum() == len([each for each in decided if each["decision"] == "schedule"])


def test_a_path_without_name_is_called_after_its_identifier(write: Write) -> None:
    file = write(
        metrics(0, congestion_window=1024),
        metrics(1, path=1, congestion_window=2048),
        event(2, "quic:packet_lost", header={"packet_number": 7, "path_id": 1, "packet_type": "1RTT"}),
        metrics(3, path="wifi", congestion_window=4096),
    )
    timeline = timeline_of(file)
    assert timeline.tracks[0].paths == ("path-0", "path-1", "wifi")
    values = [line(timeline, "cwnd", path).values[0] for path in timeline.tracks[0].paths]
    assert values == [1, 2, 4]
    assert events(timeline, "lost").path == "path-1"


def test_times_may_be_differences(write: Write) -> None:
    header = {**HEADER, "trace": {"common_fields": {"time_format": "relative_to_previous_event"}}}
    file = write(*(metrics(10, smoothed_rtt=value) for value in (1, 2, 3)), header=header)
    assert list(line(timeline_of(file), "srtt", "path-0").times_s) == pytest.approx([0, 0.01, 0.02])


def test_expired_timer_is_a_timeout_and_set_timer_is_not(write: Write) -> None:
    name = "recovery:loss_timer_updated"
    file = write(event(0, name, event_type="set"), event(5, name, event_type="expired", timer_type="pto"))
    shown = events(timeline_of(file), "timeout")
    assert list(shown.times_s) == [0.005]
    assert (shown.words, shown.tsns) == (("pto",), None)


def test_a_chunk_that_is_sent_twice_is_sent_again_and_states_last(write: Write) -> None:
    data = {"type": "DATA", "length": 100}
    file = write(
        event(0, "sctp:packet_sent", "path-1", length=100, chunks=[{**data, "tsn": 4294967295}]),
        event(10, "sctp:packet_sent", "path-1", length=100, chunks=[{**data, "tsn": 0}]),
        event(20, "sctp:path_state", "path-1", state="potentially_failed"),
        event(20, "sctp:peer_window_closed", "path-1", rule="full"),
        event(30, "sctp:packet_sent", "path-1", length=100, chunks=[{**data, "tsn": 0}]),
        event(40, "sctp:peer_window_opened"),
        event(50, "sctp:path_state", "path-1", state="active"),
    )
    timeline = timeline_of(file)
    again = events(timeline, "retransmission")
    assert again.tsns is not None
    assert list(again.tsns) == [1]
    spans = {(each.kind, each.state): (each.starts_s[0], each.ends_s[0]) for each in timeline.spans}
    assert spans == {("state", "PotentiallyFailed"): (0.02, 0.05), ("blocked", None): (0.02, 0.04)}


def test_the_last_record_may_be_cut_off(write: Write) -> None:
    file = write(metrics(0, congestion_window=1024), metrics(1, congestion_window=2048))
    file.write_bytes(file.read_bytes()[:-9])
    assert line(timeline_of(file), "cwnd", "path-0").total == 1


def test_records_may_go_over_several_lines_and_lines_need_no_separator(tmp_path: Path) -> None:
    spread = tmp_path / "spread.sqlog"
    spread.write_text("".join(f"\x1e{json.dumps(each, indent=1)}\n" for each in (HEADER, metrics(0, cwnd=1024))))
    plain = tmp_path / "lines.qlog"
    plain.write_text("".join(f"{json.dumps(each)}\n" for each in (HEADER, metrics(0, cwnd=1024))))
    assert [line(timeline_of(file), "cwnd", "path-0").total for file in (spread, plain)] == [1, 1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (metrics("now", cwnd=1), "line 3: `time`: expected milliseconds, found 'now'"),
        (metrics(1e14, cwnd=1), "line 3: `time`: is more than 30 days after the first event"),
        (metrics(1, cwnd="many"), "line 3: `cwnd`: expected a number, 0 or more, found 'many'"),
        (metrics(1, cwnd=-1), "line 3: `cwnd`: expected a number, 0 or more, found -1"),
        (metrics(1, path=-4, cwnd=1), "line 3: `path`: expected a whole number, 0 or more, found -4"),
        (event(1, "packet_lost", header={"packet_number": 1.5}), "line 3: `packet_number`: expected a whole number"),
        ({"time": 1, "name": "a", "data": []}, "line 3: `data`: expected an object, found []"),
        ({"time": 1, "name": 7}, "line 3: `name`: expected text, found 7"),
        ([1, "recovery", "metrics_updated"], "line 3: expected an object"),
    ],
)
def test_an_event_that_is_wrong_is_refused_with_its_line(write: Write, bad: Any, message: str) -> None:
    file = write(metrics(0, cwnd=1024), bad, metrics(2, cwnd=1024))
    with pytest.raises(QlogError, match=re.escape(f"{file}: {message}")):
        timeline_of(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\x1e", "is empty"),
        ("{", "line 1, column 2: no JSON"),
        ('{"qlog_version": "0.3",\n "traces": [,]}', "line 2, column 13: no JSON"),
        ("[]", "expected an object with `traces`"),
        ('{"a": 1}\n', "expected qlog 0.3 or later"),
        ('{"qlog_version": "draft-02", "traces": []}', "expected qlog 0.3 or later"),
        ('{"qlog_version": "0.3", "traces": 3}', "it has no list of `traces`"),
        ('{"qlog_version": "0.3", "traces": [{}]}', "trace 1: has no list of `events`"),
        ('{"qlog_version": "0.3", "traces": [{"events": [[1, 2]]}]}', "trace 1, event 1: expected an object"),
        ("\x1e" + "[" * 100_000, "is nested too deeply"),
        ('\x1e{"a": ' + "1" * 5000 + "}", "no JSON: Exceeds the limit"),
        ('\x1e{"a": NaN}', "NaN is not a number of JSON"),
        ("\x1e\udcff", "no JSON"),
    ],
)
def test_a_file_that_is_no_log_is_refused_by_its_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.qlog"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(QlogError, match=f"{re.escape(str(file))}.*{re.escape(message)}"):
        timeline_of(file)


def test_oversized_log_is_refused(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MAX_RECORD_BYTES", 300)
    with pytest.raises(QlogError, match="line 2: a record is longer than"):
        timeline_of(write(metrics(0, note="x" * 300)))
    monkeypatch.setattr(records_module, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(QlogError, match="have it written as a JSON text sequence"):
        timeline_of(WRITERS["aioquic"])


def test_events_and_connections_beyond_the_limit_are_counted(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_module, "MAX_CONNECTIONS", 2)
    many = [{**metrics(time, cwnd=1024), "group_id": f"g{time}"} for time in range(5)]
    read = read_logs([write(*many)])
    assert [each.name for each in read.connections] == ["g0", "g1"]
    assert read.notes == ["Only the first 2 connections are shown; 3 more were omitted"]
    monkeypatch.setattr(logs_module, "MAX_EVENTS", 3)
    assert "Only the first 3 events were read" in read_logs([write(*many)]).notes


def test_a_connection_with_too_many_paths_is_refused(write: Write) -> None:
    with pytest.raises(QlogError, match=r"line 34: a connection with more than 32 paths"):
        timeline_of(write(*(metrics(0, path=number, cwnd=1) for number in range(33))))


def test_numbers_that_stand_for_infinity_are_no_values(write: Write) -> None:
    timeline = timeline_of(write(metrics(0, cwnd=1024, ssthresh=2**64 - 1)))
    assert {each.channel for each in timeline.lines} == {"cwnd"}


def test_text_of_a_log_is_text_on_the_page(write: Write, tmp_path: Path) -> None:
    nasty = "</script><img src=x onerror=alert(1)>"
    header = {**HEADER, "trace": {"vantage_point": {"name": nasty}}}
    file = write(
        {**metrics(0, path=nasty, cwnd=1024), "group_id": nasty},
        event(1, "packet_lost", nasty, trigger=nasty, header={"packet_number": 1, "packet_type": nasty}),
        header=header,
    )
    assert main([str(file), "--out", str(tmp_path / "view.html"), "--title", nasty, "--quiet"]) == 0
    text = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert "<img" not in text.split("<script>")[0]
    assert text.count("</script>") == 3


def test_a_page_goes_beside_its_log_or_into_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in WRITERS.values():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert main([str(tmp_path / "aioquic.qlog")]) == 0
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [str(tmp_path / "aioquic.qlog.html"), str(tmp_path / "view.html")]
    page = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert "3 connections in 3 logs" in page
    content = json.loads(re.search(r'id="timeline-data">(.*?)</script>', page)[1])  # type: ignore[index]
    assert [track["names"] for track in content["tracks"]] == [["aioquic.qlog"], ["anabranch.sqlog"], ["quic-go.sqlog"]]
    assert [track["numbered"] for track in content["tracks"]] == ["packet", "TSN", "packet"]


def test_a_folder_without_logs_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QlogError, match=r"has no files whose names end with \.qlog or \.sqlog"):
        main([str(tmp_path)])
    with pytest.raises(QlogError, match=r"none\.qlog: No such file"):
        main([str(tmp_path / "none.qlog")])
