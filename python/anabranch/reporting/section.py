"""Section of a page with a timeline: its data and the texts beside it."""

from __future__ import annotations

import json
from typing import Literal

from markupsafe import Markup

from anabranch.reporting.content import TimelineSection
from anabranch.reporting.run_index import RunIndex
from anabranch.reporting.timeline.model import Timeline
from anabranch.reporting.timeline.payload import payload

Counted = Literal["arrived", "sent", "packets"]

_COUNTED: dict[Counted, str] = {
    "arrived": "DATA chunks that arrived over each path, with their headers, copies and retransmissions.",
    "sent": "DATA chunks sent over each path, with their headers, copies and retransmissions. A log of one host cannot "
    "show which of them arrived.",
    "packets": "Packets sent over each path, by their lengths in the log. A thin line shows received packets.",
}


def timeline_section(
    timeline: Timeline, about: tuple[str, ...], *, counted: Counted = "arrived", index: RunIndex | None = None
) -> TimelineSection:
    """Returns the section of a timeline that has tracks.

    `counted` selects the meaning of its throughput. `index` lists the other runs.
    """
    data = {**payload(timeline), "index": None if index is None else index.content}
    # A `<` could end the script element. JSON allows this escape.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return TimelineSection(
        data=Markup(text),
        series=frozenset([*data["path_colours"], *(track["colour"] for track in data["tracks"])]),
        about=about,
        counted=_COUNTED[counted],
        bin=_bins(timeline),
        marks=tuple(f"at {mark.time_s:g} s {mark.text}" for mark in timeline.marks),
        notes=(*data["notes"], *(index.notes if index is not None else ())),
    )


def _bins(timeline: Timeline) -> str:
    """Returns the widths of the bins, which are larger in longer runs."""
    widths_s = sorted({track.bin_s for track in timeline.tracks})
    return " or ".join(f"{width_s:g} s" for width_s in widths_s)
