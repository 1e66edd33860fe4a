"""Outcome of a video, and of messages with a limit, as columns of table `flows`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.values import Value

_FATES = ("lost", "late", "undecodable")
_PERCENTILES = (50, 95, 99)


def delivery_figures(flow: Mapping[str, Any]) -> dict[str, Value | None]:
    """Returns the columns of `DELIVERY_FIGURES` of a flow, in the format of `anabranch run --json`."""
    abandoned: Mapping[str, Any] = flow.get("abandoned") or {}
    video: Mapping[str, Any] = flow.get("video") or {}
    fates: Mapping[str, Mapping[str, int]] = video.get("fates") or {}
    delay: Mapping[str, Any] = video.get("delay") or {}
    return {
        "abandoned_messages": abandoned.get("messages"),
        "frames": video.get("frames"),
        "frames_not_due": video.get("not_due"),
        **{f"dropped_{kind.lower()}_frames": _sum(fates.get(kind), _FATES) for kind in "IPB"},
        **{f"missing_{kind.lower()}_frames": _sum(fates.get(kind), _FATES[:2]) for kind in "IPB"},
        **{f"{fate}_frames": sum(of[fate] for of in fates.values()) if fates else None for fate in _FATES},
        "decodable_frame_ratio": video.get("decodable_frame_ratio"),
        "stalls": video.get("stalls"),
        "stall_s": video.get("stall_s"),
        "longest_stall_s": video.get("longest_stall_s"),
        "frame_delay_mean_ms": delay.get("mean_ms"),
        **{f"frame_delay_p{percent}_ms": delay.get(f"p{percent}_ms") for percent in _PERCENTILES},
        "frame_fates": video.get("frame_fates"),
    }


def _sum(counts: Mapping[str, int] | None, fates: tuple[str, ...]) -> int | None:
    return None if counts is None else sum(counts[fate] for fate in fates)
