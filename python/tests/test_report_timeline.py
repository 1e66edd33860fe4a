"""Data of the timeline: the part of traces in it, and notes on the rest."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_samples import write_traces

from anabranch.reporting.timeline import payload as payload_module
from anabranch.reporting.timeline.downsampling import allot, changes, envelope, evenly
from anabranch.reporting.timeline.events import path_events
from anabranch.reporting.timeline.lines import bin_width_s
from anabranch.reporting.timeline.model import Line, Spans, Timeline, Track
from anabranch.reporting.timeline.network import links_of, marks_of
from anabranch.reporting.timeline.payload import payload
from anabranch.reporting.timeline.trace import joined, timeline_of
from anabranch.scenario import Scenario
from anabranch.series import Series


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return Series(write_traces(tmp_path_factory.mktemp("traces"), ["cmt-pf"]))


@pytest.fixture(scope="module")
def timeline(series: Series) -> Timeline:
    return timeline_of(series, "cmt-pf")


NAMES = {
    "dropped": "drops",
    "lost": "chunks declared lost",
    "retransmission": "retransmissions",
    "timeout": "time-outs",
}


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=f"<{kind}")


def value_at(line: Line, time_s: float) -> float:
    return float(line.values[np.searchsorted(line.times_s, time_s, side="right") - 1])


def lines(timeline: Timeline, channel: str) -> list[Line]:
    return [line for line in timeline.lines if line.channel == channel]


def test_tsns_continue_across_the_wrap() -> None:
    rows = pd.DataFrame({"time_s": [1.0, 2.0], "path": ["path-1"] * 2, "tsn": [2**32 - 1, 4], "cause": ["timeout"] * 2})
    (events,) = path_events("lost", 0, rows, first_tsn=2**32 - 6)
    assert events.tsns is not None
    assert list(events.tsns) == [5, 10]


def test_timeouts_have_no_tsn(timeline: Timeline) -> None:
    assert {events.tsns is None for events in timeline.events if events.kind == "timeout"} == {True}
    encoded = [events for events in payload(timeline)["events"] if events["kind"] == "timeout"]
    assert [events["tsns"] for events in encoded] == [None]


@pytest.mark.parametrize(
    ("channel", "column", "divisor"),
    [
        ("cwnd", "cwnd_bytes", 1024),
        ("ssthresh", "ssthresh_bytes", 1024),
        ("outstanding", "outstanding_bytes", 1024),
        ("srtt", "srtt_ms", 1),
    ],
)
def test_a_line_has_the_value_of_the_trace_at_any_time(
    series: Series, timeline: Timeline, channel: str, column: str, divisor: int
) -> None:
    for line in lines(timeline, channel):
        rows = series.paths()
        rows = rows[(rows["path"] == line.paths[0]) & rows[column].notna()]
        times_s = np.linspace(line.times_s[0], series.end_s, 5000)
        last = np.searchsorted(rows["time_s"].to_numpy(), times_s, side="right") - 1
        expected = rows[column].to_numpy(dtype=float)[last] / divisor
        assert [value_at(line, time_s) for time_s in times_s] == pytest.approx(list(expected), rel=1e-6)


def test_every_path_has_every_channel(timeline: Timeline) -> None:
    found = {(line.channel, line.paths) for line in timeline.lines}
    channels = ("throughput", "cwnd", "ssthresh", "outstanding", "srtt", "queue")
    assert found == {(channel, (path,)) for channel in channels for path in ("path-1", "path-2")}


def test_throughput_adds_up_to_what_arrived(series: Series, timeline: Timeline) -> None:
    packets = series.packets()
    received = packets[(packets["event"] == "received") & (packets["path"] == "path-1")]["chunk_bytes"].sum()
    (line,) = [line for line in lines(timeline, "throughput") if line.paths == ("path-1",)]
    edges = np.append(line.times_s, series.end_s)
    assert (line.values * np.diff(edges)).sum() * 1000 / 8 == pytest.approx(received, rel=1e-6)


def test_events_are_those_that_the_run_counted(series: Series, timeline: Timeline) -> None:
    assert series.result is not None
    result = series.result["result"]
    total = {
        kind: sum(events.total for events in timeline.events if events.kind == kind)
        for kind in ("dropped", "lost", "retransmission", "timeout")
    }
    assert total["retransmission"] == result["retransmissions"] > 0
    assert total["timeout"] == result["timeouts"] > 0
    assert total["lost"] == len(series.losses()) > 0
    assert total["dropped"] == len(series.drops()) > 0


def test_an_event_has_its_cause_and_its_tsn_from_the_first_one_on(series: Series, timeline: Timeline) -> None:
    losses = series.losses()
    first = timeline.tracks[0].first_tsn
    assert first == series.packets()["tsn"].iloc[0]
    for events in timeline.events:
        if events.kind == "lost":
            rows = losses[losses["path"] == events.path]
            assert list(events.tsns) == [(tsn - first) % 2**32 for tsn in rows["tsn"]]
            assert max(events.tsns) < len(series.packets())
            assert [events.words[detail] for detail in events.details] == list(rows["cause"])


def test_blocking_lasts_as_long_as_the_run_counted(series: Series, timeline: Timeline) -> None:
    assert series.result is not None
    blocked = [spans for spans in timeline.spans if spans.kind == "blocked"]
    total_s = sum(float((spans.ends_s - spans.starts_s).sum()) for spans in blocked)
    # The run stops counting when its endpoint is called for the last time.
    assert total_s == pytest.approx(series.result["result"]["rwnd_blocked_s"], abs=0.1)
    assert total_s > 0


def test_a_path_that_fails_is_out_of_service_from_the_time_out_on(timeline: Timeline) -> None:
    (failed,) = [spans for spans in timeline.spans if spans.state == "PotentiallyFailed"]
    (timeout,) = [events for events in timeline.events if events.kind == "timeout"]
    assert failed.path == timeout.path == "path-2"
    assert failed.starts_s[0] == timeout.times_s[0]
    assert failed.ends_s[0] > 5


def test_shares_count_every_decision_once_with_its_reasons(series: Series, timeline: Timeline) -> None:
    (shares,) = timeline.shares
    decisions = series.decisions()
    placed = decisions[decisions["decision"].isin(["schedule", "copies", "bind"])]
    assert shares.ways == ("path-1", "path-2", "wait")
    for way, counts in zip(shares.ways, shares.counts, strict=True):
        assert counts.sum() == (placed["path"] == way).sum() > 0
    bin_ = int(np.argmax(shares.counts[0]))
    inside = placed["time_s"].between(bin_ * shares.bin_s, (bin_ + 1) * shares.bin_s, inclusive="left")
    of_bin = placed[inside & (placed["path"] == "path-1")]
    assert dict(shares.reasons[0][bin_]) == dict(of_bin["reason"].value_counts().loc[lambda count: count > 0].head(3))


def test_copies_count_for_each_of_their_paths(tmp_path: Path) -> None:
    series = Series(write_traces(tmp_path, ["cmt+redundant"]))
    (shares,) = timeline_of(series, "redundant").shares
    decisions = series.decisions()
    copies = decisions[decisions["decision"] == "copies"]["path"].astype(str)
    alone = decisions[decisions["decision"] == "schedule"]["path"]
    assert len(copies) > 0
    assert shares.counts[0].sum() == copies.str.contains("path-1").sum() + (alone == "path-1").sum()


def test_a_run_over_a_shared_link_shows_its_queue_for_both_paths(tmp_path: Path) -> None:
    text = """
[run]
duration = "1 s"
[[link]]
name = "shared"
rate = "2 Mbit/s"
delay = "10 ms"
[[path]]
via = ["shared"]
rate = "10 Mbit/s"
delay = "5 ms"
[[path]]
via = ["shared"]
"""
    timeline = timeline_of(Series(write_traces(tmp_path, ["cmt"], text)), "cmt")
    queues = {line.link: line.paths for line in lines(timeline, "queue")}
    assert queues == {"shared": ("path-1", "path-2"), "path-1": ("path-1",)}


def test_data_both_ways_gives_a_track_for_each_sender(tmp_path: Path) -> None:
    text = """
[run]
duration = "2 s"
[[path]]
rate = "2 Mbit/s"
delay = "10 ms"
[[flow]]
name = "talk"
kind = "messages"
size = "1 kB"
interval = "10 ms"
direction = "both"
[[flow]]
name = "bulk"
kind = "bulk"
scheme = "cmt-pf"
"""
    timeline = timeline_of(Series(write_traces(tmp_path, ["cmt"], text)), "run")
    assert [track.label for track in timeline.tracks] == ["run: talk", "run: talk-reverse", "run: bulk"]
    assert [track.scheme for track in timeline.tracks] == ["cmt", "cmt", "cmt-pf"]
    owners = {line.tracks for line in lines(timeline, "queue")}
    assert owners == {(0, 2), (1,)}
    cwnd = {line.tracks: value_at(line, 1.5) for line in lines(timeline, "cwnd")}
    assert set(cwnd) == {(0,), (1,), (2,)}
    assert cwnd[(2,)] > cwnd[(0,)]


def test_the_only_run_does_not_name_itself_before_its_senders(timeline: Timeline) -> None:
    sender = Track("run", "talk", "cmt", "talk", "forward", ("path-1",), 1.0)
    other = Track("run", "bulk", "cmt", "bulk", "forward", ("path-1",), 1.0)
    alone = payload(Timeline([sender, other]))
    assert [track["names"] for track in alone["tracks"]] == [["talk"], ["bulk"]]
    beside = payload(Timeline([sender, *timeline.tracks]))
    assert [track["names"] for track in beside["tracks"]] == [["run", "talk"], ["cmt-pf"]]


def test_marks_are_the_events_of_the_scenario() -> None:
    text = """
[run]
duration = "9 s"
[[link]]
name = "shared"
rate = "2 Mbit/s"
delay = "10 ms"
[[link.event]]
at = "1500 ms"
rate = "1 Mbit/s"
loss = 0.5
[[path]]
via = ["shared"]
rate = "1 Mbit/s"
delay = "1 ms"
[[path.event]]
at = "1 s"
direction = "forward"
up = false
[[path]]
via = ["shared"]
"""
    scenario = _table(text)
    assert [(mark.time_s, mark.text) for mark in marks_of(scenario)] == [
        (1.0, "path-1: down"),
        (1.5, "shared: rate 1 Mbit/s, other loss"),
    ]
    assert links_of(scenario) == {"shared": ("path-1", "path-2"), "path-1": ("path-1",)}


def _table(text: str) -> dict[str, Any]:
    import tomli

    return tomli.loads(Scenario.parse(text).to_toml(resolved=True))


def test_joined_timelines_keep_their_tracks_apart(timeline: Timeline) -> None:
    both = joined([timeline, timeline])
    assert len(both.tracks) == 2
    assert {line.tracks for line in both.lines} == {(0,), (1,)}
    assert {events.track for events in both.events} == {0, 1}
    assert {spans.track for spans in both.spans} == {0, 1}
    assert [shares.track for shares in both.shares] == [0, 1]
    assert both.marks == timeline.marks


def test_changes_omits_repeated_values() -> None:
    assert list(changes(np.array([1, 1, 2, 2, 1], dtype=np.float32))) == [0, 2, 4]
    assert list(changes(np.array([], dtype=np.float32))) == []


def test_an_envelope_keeps_first_last_least_and_greatest_of_each_stretch() -> None:
    random = np.random.default_rng(1)
    times = np.sort(random.uniform(0, 100, 50_000))
    values = random.normal(size=50_000).astype(np.float32)
    kept = envelope(times, values, 400)
    assert len(kept) <= 400
    assert (np.diff(kept) > 0).all()
    edges = np.searchsorted(times, times[0] + np.arange(101) * (times[-1] - times[0]) / 100)
    edges[-1] = len(times)
    for start, end in pairwise(edges):
        own = values[kept[(kept >= start) & (kept < end)]]
        assert {own.min(), own.max()} == {values[start:end].min(), values[start:end].max()}
        assert own[0] == values[start]
        assert own[-1] == values[end - 1]


def test_an_envelope_of_few_points_is_all_of_them() -> None:
    times = np.arange(10.0)
    assert list(envelope(times, times.astype(np.float32), 10)) == list(range(10))


def test_an_envelope_of_one_moment_is_no_error() -> None:
    kept = envelope(np.zeros(100), np.arange(100, dtype=np.float32), 8)
    assert list(kept) == [0, 99]


def test_evenly_keeps_first_and_last() -> None:
    kept = evenly(1000, 10)
    assert (kept[0], kept[-1], len(kept)) == (0, 999, 10)
    assert list(evenly(3, 10)) == [0, 1, 2]


def test_unused_budget_is_given_to_others() -> None:
    assert allot([5, 300, 300], 105) == [5, 50, 50]
    assert allot([1, 2], 100) == [1, 2]
    assert allot([], 100) == []


@pytest.mark.parametrize(
    ("end_s", "width_s"), [(0.0, 0.1), (30.0, 0.1), (31.0, 0.2), (90.0, 0.5), (200.0, 1.0), (3600.0, 20.0)]
)
def test_bins_have_a_round_width(end_s: float, width_s: float) -> None:
    assert bin_width_s(end_s) == width_s


def test_times_are_ticks_at_which_the_value_holds(series: Series, timeline: Timeline) -> None:
    content = payload(timeline)
    assert content["tick_s"] == 1e-6
    for line, encoded in zip(timeline.lines, content["lines"], strict=True):
        ticks = numbers(encoded["times"], "u4") * 1e-6
        assert (ticks >= line.times_s - 1e-9).all()
        assert (ticks < line.times_s + 1e-6).all()
        assert (numbers(encoded["values"], "f4") == line.values).all()


def test_runs_of_more_than_an_hour_have_coarser_ticks() -> None:
    track = Track("long", None, "cmt", "flow-1", "forward", ("path-1",), 500_000.0)
    times = np.array([0.0, 499_999.9994])
    line = Line("cwnd", (0,), ("path-1",), times, np.zeros(2, dtype=np.float32), 2)
    content = payload(Timeline([track], [line]))
    assert content["tick_s"] == 1e-3
    assert list(numbers(content["lines"][0]["times"], "u4")) == [0, 500_000_000]


def test_events_beyond_the_budget_are_omitted_and_counted(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_module, "MAX_POINTS", 200)
    monkeypatch.setattr(payload_module, "MAX_EVENTS", 40)
    monkeypatch.setattr(payload_module, "MAX_SPANS", 12)
    content = payload(timeline)
    assert sum(len(numbers(line["times"], "u4")) for line in content["lines"]) <= 200
    events = {(each["kind"], each["path"]): len(numbers(each["times"], "u4")) for each in content["events"]}
    assert sum(events.values()) <= 40
    for whole in timeline.events:
        shown = events[(whole.kind, whole.path)]
        note = f"cmt-pf, {whole.path}: {shown} of {whole.total} {NAMES[whole.kind]} are shown"
        assert (note in content["notes"]) == (shown < whole.total)
    assert any("the others last" in note for note in content["notes"])
    assert sum(line.total for line in timeline.lines) > 200


@pytest.mark.parametrize(("tracks", "points"), [(1, 100), (10, 100), (20, 200), (40, 400), (90, 400)])
def test_more_runs_have_more_room_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, tracks: int, points: int) -> None:
    monkeypatch.setattr(payload_module, "MAX_POINTS", 100)
    many = [Track(f"run {place}", None, "cmt", "flow-1", "forward", ("path-1",), 9.0) for place in range(tracks)]
    times = np.linspace(0, 9, 1000)
    line = Line("cwnd", (0,), ("path-1",), times, np.sin(1000 * times).astype(np.float32), 1000)
    content = payload(Timeline(many, [line]))
    assert 0.9 * points <= len(numbers(content["lines"][0]["times"], "u4")) <= points
    assert any("have the rules of their decisions" in note for note in content["notes"]) == (tracks > 40)


def test_longest_spans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    track = Track("run", None, "cmt", "flow-1", "forward", ("path-1",), 10.0)
    starts = np.array([0.0, 2.0, 4.0, 6.0])
    ends = starts + np.array([0.1, 1.0, 0.2, 1.5])
    spans = Spans("blocked", 0, "path-1", starts, ends, 4, float((ends - starts).sum()))
    monkeypatch.setattr(payload_module, "MAX_SPANS", 2)
    content = payload(Timeline([track], spans=[spans]))
    assert list(numbers(content["spans"][0]["starts"], "u4")) == [2_000_000, 6_000_000]
    assert content["notes"] == [
        "run, path-1: the 2 longest of 4 times of a closed window are shown; the others last 0.3 s of 2.8 s"
    ]


def test_runs_of_one_scheme_have_colours_of_their_own() -> None:
    tracks = [Track(f"cmt @ {place}", None, "cmt", "flow-1", "forward", ("path-1",), 1.0) for place in range(10)]
    colours = [track["colour"] for track in payload(Timeline(tracks))["tracks"]]
    assert len(set(colours)) == 10


def test_truncated_trace_is_shown_up_to_its_end(series: Series, tmp_path: Path) -> None:
    for file in series.folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "result.json").unlink()
    cut = (tmp_path / "flow-1-paths.csv").read_bytes()
    (tmp_path / "flow-1-paths.csv").write_bytes(cut[: len(cut) // 2])
    timeline = timeline_of(Series(tmp_path), "half")
    assert any(note.startswith("half: the run did not end") for note in payload(timeline)["notes"])
    assert lines(timeline, "cwnd")
