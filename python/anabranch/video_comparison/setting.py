"""Scenario of a comparison: paths, and one flow that sends the clip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anabranch import _native
from anabranch.errors import VideoError
from anabranch.scenario import Scenario
from anabranch.video.coded import TRACE, CodedClip
from anabranch.video.reliability import Limit, LimitKind, Reliability

MAX_PATHS = 8

FLOW = "video"
# Time after the last playout in which late packets may arrive.
_AFTERWARDS_S = 5.0
# Time for a handshake over slow paths, before the first frame is handed over.
_HANDSHAKE_S = 5.0


def paths_of(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the tables of paths that are written as links of `anabranch relay`.

    Raises `VideoError` about their number, and `ScenarioError` about a path.
    """
    if not 1 <= len(texts) <= MAX_PATHS:
        raise VideoError(f"{len(texts)} paths: give 1 to {MAX_PATHS} with --paths")
    return [_native.read_link(text, "--paths", f"path-{number}") for number, text in enumerate(texts, start=1)]


def scenario_of(
    clip: CodedClip, base: dict[str, Any], deadline_ms: float, reliability: Reliability, name: str
) -> Scenario:
    """Returns the scenario `base`, reduced to paths and association, with the clip as its only flow.

    Raises `ScenarioError` with all errors in the paths.
    """
    duration_s = (clip.source.format.time_ms(clip.source.count) + deadline_ms) / 1000
    run = {key: value for key, value in base.get("run", {}).items() if key in ("profile",)}
    flow: dict[str, Any] = {
        "name": FLOW,
        "kind": "video",
        "trace": TRACE,
        "payload": f"{clip.manifest['payload_bytes']} B",
        "deadline": f"{deadline_ms:g} ms",
        "ordered": False,
    }
    if limits := {kind.value: _table(limit) for kind, limit in reliability.items() if limit.kind is not LimitKind.NONE}:
        flow["reliability"] = limits
    table = {
        **{key: value for key, value in base.items() if key != "flow"},
        "run": {**run, "duration": f"{duration_s + _HANDSHAKE_S + _AFTERWARDS_S:.3f} s"},
        "flow": [flow],
    }
    return Scenario.from_dict(table, name, Path(clip.folder).absolute())


def _table(limit: Limit) -> dict[str, Any]:
    if limit.kind is LimitKind.LIFETIME:
        return {"lifetime": f"{limit.value:g} ms"}
    key = "max_retransmissions" if limit.kind is LimitKind.RETRANSMISSIONS else "priority"
    return {key: int(limit.value)}
