"""Colours of runs and paths on a timeline, which are those of the figures as far as possible."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.figures.style import looks, path_looks
from anabranch.reporting.timeline.model import Track


def track_colours(tracks: Sequence[Track]) -> list[str]:
    """Returns a colour for each track, as `#rrggbb`: that of its scheme, unless an earlier track has it."""
    styles = looks(track.scheme for track in tracks)
    spare = [look.color for look in looks(_KNOWN).values()]
    chosen: list[str] = []
    for track in tracks:
        candidates = [styles[track.scheme].color, *spare]
        chosen.append(next((colour for colour in candidates if colour not in chosen), candidates[0]))
    return chosen


def path_colours(paths: Sequence[str]) -> list[str]:
    """Returns a colour for each path, as `#rrggbb`."""
    return [look.color for look in path_looks(paths).values()]


# Schemes whose colours differ the most, for runs of one scheme at several points.
_KNOWN = (
    "cmt",
    "cmt-pf",
    "mptcp-ns2",
    "db-cmt",
    "cmt-qa",
    "a-cmt",
    "mptcp-olia",
    "smt-afr",
    "cmt-rpv1",
    "sctp",
    "bonded",
)
