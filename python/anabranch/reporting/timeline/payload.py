"""Timeline for the page's script: plain values with arrays in Base64, within the limits of a report."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.reporting.timeline.colours import path_colours, track_colours
from anabranch.reporting.timeline.downsampling import allot, envelope, evenly
from anabranch.reporting.timeline.model import Events, Seconds, Shares, Spans, Timeline, Track
from anabranch.reporting.timeline.spans import longest

FORMAT = 1

# Limits of all lines, events and spans of a report: about 2.1, 0.7 and 0.4 MB as Base64. The limits grow in proportion
# to the number of tracks above ten, so that each track keeps its shape.
MAX_POINTS = 200_000
MAX_EVENTS = 60_000
MAX_SPANS = 40_000

_USUAL_TRACKS = 10
MAX_TRACKS = 40
"""Maximum number of tracks for which limits grow, and whose decisions have reasons. Further tracks share the limits."""

_MAX_TICKS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class _Clock:
    """Times as whole numbers of ticks of a microsecond, or of a millisecond if the run is too long."""

    tick_s: float

    @classmethod
    def up_to(cls, end_s: float) -> _Clock:
        return cls(1e-6 if end_s <= _MAX_TICKS * 1e-6 else 1e-3)

    def encode(self, times_s: Seconds) -> str:
        # Times are rounded up, so that a line's value is valid at its tick. Half a nanosecond absorbs the error of
        # floats.
        return _base64(np.ceil((times_s - 0.5e-9) / self.tick_s).clip(0, _MAX_TICKS).astype(np.uint32))


def payload(timeline: Timeline) -> dict[str, Any]:
    """Returns a timeline as JSON values: at most about 4 MB for up to ten tracks, and 0.4 MB for each further one.

    Lines are thinned out such that all extremes stay, and events evenly. The shortest spans are omitted. `notes`
    reports how many. All numbers in arrays are little-endian: times are `uint32` ticks of `tick_s`, values `float32`.
    """
    clock = _Clock.up_to(timeline.end_s)
    notes = list(timeline.notes)
    if len(timeline.tracks) > MAX_TRACKS:
        notes.append(f"Only the first {MAX_TRACKS} of {len(timeline.tracks)} senders have the rules of their decisions")
    return {
        "format": FORMAT,
        "tick_s": clock.tick_s,
        "end_s": timeline.end_s,
        "paths": timeline.paths,
        "path_colours": path_colours(timeline.paths),
        "tracks": [
            {**_track(track, timeline), "colour": colour}
            for track, colour in zip(timeline.tracks, track_colours(timeline.tracks), strict=True)
        ],
        "lines": _lines(timeline, clock),
        # Events and spans add to the notes.
        "events": _events(timeline, clock, notes),
        "spans": _spans(timeline, clock, notes),
        "shares": [_shares(shares, with_reasons=shares.track < MAX_TRACKS) for shares in timeline.shares],
        "marks": [{"time_s": mark.time_s, "text": mark.text} for mark in timeline.marks],
        "notes": notes,
    }


def _track(track: Track, timeline: Timeline) -> dict[str, Any]:
    several_runs = any(other.run != track.run for other in timeline.tracks)
    names = [track.run, track.sender] if several_runs or track.sender is None else [track.sender]
    return {
        "names": [name for name in names if name is not None],
        "scheme": track.scheme,
        "paths": track.paths,
        "end_s": track.end_s,
        "numbered": track.numbered,
        "run": track.run,
    }


def _room(most: int, timeline: Timeline) -> int:
    """Returns the limit of a timeline, where `most` is the limit for ten tracks."""
    return most * min(max(len(timeline.tracks), _USUAL_TRACKS), MAX_TRACKS) // _USUAL_TRACKS


def _lines(timeline: Timeline, clock: _Clock) -> list[dict[str, Any]]:
    encoded = []
    allotted = allot([len(line.times_s) for line in timeline.lines], _room(MAX_POINTS, timeline))
    for line, most in zip(timeline.lines, allotted, strict=True):
        kept = envelope(line.times_s, line.values, most)
        encoded.append(
            {
                "channel": line.channel,
                "tracks": line.tracks,
                "paths": line.paths,
                "link": line.link,
                "times": clock.encode(line.times_s[kept]),
                "values": _base64(line.values[kept].astype(np.float32)),
                "total": line.total,
            }
        )
    return encoded


def _events(timeline: Timeline, clock: _Clock, notes: list[str]) -> list[dict[str, Any]]:
    encoded = []
    allotted = allot([len(events.times_s) for events in timeline.events], _room(MAX_EVENTS, timeline))
    for events, most in zip(timeline.events, allotted, strict=True):
        kept = evenly(len(events.times_s), most)
        if len(kept) < events.total:
            notes.append(f"{_where(timeline, events)}: {len(kept)} of {events.total} {_NAMES[events.kind]} are shown")
        encoded.append(
            {
                "kind": events.kind,
                "track": events.track,
                "path": events.path,
                "times": clock.encode(events.times_s[kept]),
                "tsns": None if events.tsns is None else _base64(events.tsns[kept]),
                "details": _base64(events.details[kept]),
                "words": events.words,
                "total": events.total,
            }
        )
    return encoded


def _spans(timeline: Timeline, clock: _Clock, notes: list[str]) -> list[dict[str, Any]]:
    encoded = []
    allotted = allot([len(spans.starts_s) for spans in timeline.spans], _room(MAX_SPANS, timeline))
    for spans, most in zip(timeline.spans, allotted, strict=True):
        kept = longest(spans, most)
        if len(kept.starts_s) < spans.total:
            missing_s = spans.total_s - float((kept.ends_s - kept.starts_s).sum())
            notes.append(
                f"{_where(timeline, spans)}: the {len(kept.starts_s)} longest of {spans.total} {_NAMES[spans.kind]} are"
                f" shown; the others last {missing_s:.3g} s of {spans.total_s:.3g} s"
            )
        encoded.append(
            {
                "kind": spans.kind,
                "track": spans.track,
                "path": spans.path,
                "state": spans.state,
                "starts": clock.encode(kept.starts_s),
                "ends": clock.encode(kept.ends_s),
            }
        )
    return encoded


_NAMES = {
    "dropped": "drops",
    "lost": "chunks declared lost",
    "retransmission": "retransmissions",
    "timeout": "time-outs",
    "blocked": "times of a closed window",
    "state": "times out of service",
}


def _where(timeline: Timeline, item: Events | Spans) -> str:
    label = timeline.tracks[item.track].label
    return label if item.path is None else f"{label}, {item.path}"


def _shares(shares: Shares, *, with_reasons: bool) -> dict[str, Any]:
    """Encodes reasons and refusals of each way and bin as a flat list of position in `words` and count."""
    words: dict[str, int] = {}
    nothing: list[list[list[tuple[str, int]]]] = [[[] for _ in bins] for bins in shares.reasons]

    def flat(table: list[list[list[tuple[str, int]]]]) -> list[list[list[int]]]:
        return [
            [[number for word, count in bin_ for number in (words.setdefault(word, len(words)), count)] for bin_ in way]
            for way in table
        ]

    return {
        "track": shares.track,
        "bin_s": shares.bin_s,
        "ways": shares.ways,
        "counts": _base64(shares.counts.astype(np.uint32).ravel()),
        "reasons": flat(shares.reasons if with_reasons else nothing),
        "refused": flat(shares.refused if with_reasons else nothing),
        "words": list(words),
    }


def _base64(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")
