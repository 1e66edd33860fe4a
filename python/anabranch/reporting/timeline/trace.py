"""Timeline of one traced run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tomli

from anabranch.errors import ReportError
from anabranch.reporting.timeline.events import path_events
from anabranch.reporting.timeline.lines import bin_width_s, path_lines, queue_lines, throughput_lines
from anabranch.reporting.timeline.model import EventKind, Timeline, Track
from anabranch.reporting.timeline.network import links_of, marks_of
from anabranch.reporting.timeline.shares import decided_shares
from anabranch.reporting.timeline.spans import blocked_spans, state_spans
from anabranch.text_file import read_text

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.series import Series


def timeline_of(series: Series, label: str) -> Timeline:
    """Returns the timeline of one traced run, with `label` as its name.

    Raises `TraceError` if a file of the trace is missing or invalid, and `ReportError` if its scenario cannot be read.
    """
    senders = series.manifest.get("sender", [])
    every_s = bin_width_s(series.end_s)
    tracks = [_track(series, sender, label, every_s) for sender in senders]
    timeline = Timeline(tracks, notes=[f"{label}: {note}" for note in series.notes])
    if not tracks:
        timeline.notes.append(f"{label}: no data was sent")
        return timeline
    throughput = series.throughput(every_s)
    for index, track in enumerate(tracks):
        _add_track(timeline, series, index, track, throughput, every_s)
    scenario = _scenario(series)
    if scenario is not None:
        timeline.lines.extend(queue_lines(series.queues(), links_of(scenario), tracks))
        timeline.marks.extend(marks_of(scenario))
    return timeline


def joined(timelines: Iterable[Timeline]) -> Timeline:
    """Returns timelines as one, with their tracks one after the other."""
    whole = Timeline()
    for part in timelines:
        first = len(whole.tracks)
        whole.tracks.extend(part.tracks)
        whole.lines.extend(replace(line, tracks=tuple(first + track for track in line.tracks)) for line in part.lines)
        whole.events.extend(replace(events, track=first + events.track) for events in part.events)
        whole.spans.extend(replace(spans, track=first + spans.track) for spans in part.spans)
        whole.shares.extend(replace(shares, track=first + shares.track) for shares in part.shares)
        whole.notes.extend(part.notes)
        whole.marks.extend(mark for mark in part.marks if mark not in whole.marks)
    whole.marks.sort(key=lambda mark: (mark.time_s, mark.text))
    return whole


def _track(series: Series, sender: Mapping[str, Any], label: str, every_s: float) -> Track:
    alone = len(series.manifest["sender"]) == 1
    return Track(
        run=label,
        sender=None if alone else sender["name"],
        scheme=str(sender.get("scheme", series.manifest.get("scheme", ""))),
        flow=sender["flow"],
        direction=sender["direction"],
        paths=tuple(sender["paths"]),
        end_s=min(float(sender.get("end_s", series.end_s)), series.end_s),
        first_tsn=_first_tsn(series.tsn(), sender["flow"], sender["direction"]),
        bin_s=every_s,
    )


def _add_track(
    timeline: Timeline, series: Series, index: int, track: Track, throughput: pd.DataFrame, every_s: float
) -> None:
    def own(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["flow"] == track.flow) & (frame["direction"] == track.direction)]

    paths = own(series.paths())
    timeline.lines.extend(throughput_lines(own(throughput), index))
    timeline.lines.extend(path_lines(paths, index))
    happened: dict[EventKind, pd.DataFrame] = {
        "dropped": series.drops(),
        "lost": series.losses(),
        "retransmission": series.retransmissions(),
        "timeout": series.timeouts(),
    }
    for kind, rows in happened.items():
        timeline.events.extend(path_events(kind, index, own(rows), track.first_tsn))
    timeline.spans.extend(blocked_spans(own(series.blocked()), index))
    timeline.spans.extend(state_spans(paths, index, track.end_s))
    timeline.shares.append(decided_shares(own(series.decisions()), index, track, every_s))


def _first_tsn(tsns: pd.DataFrame, flow: str, direction: str) -> int:
    """Returns the lowest TSN of an association in the trace. TSNs are unwrapped, so that later ones are greater."""
    own = tsns[(tsns["flow"] == flow) & (tsns["direction"] == direction)]["tsn"]
    return int(own.min()) if len(own) else 0


def _scenario(series: Series) -> dict[str, Any] | None:
    """Returns the scenario of a simulation, or `None` for a trace of real sockets."""
    if series.manifest.get("vantage") == "host":
        return None
    file = series.folder / "scenario.toml"
    try:
        return tomli.loads(read_text(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReportError(f"{file}: {reason}; a trace is whole with all of its files: trace the run again") from error
