"""Links of a scenario: the paths over them, and their changes during the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anabranch.reporting.timeline.model import Mark

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def links_of(scenario: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the paths over each link of a resolved scenario. A path's own link has the name of the path."""
    links: dict[str, list[str]] = {}
    for path in scenario["path"]:
        own = [path["name"]] if "rate" in path or "capacity" in path else []
        for link in [*path.get("via", []), *own]:
            links.setdefault(link, []).append(path["name"])
    return {link: tuple(paths) for link, paths in links.items()}


def marks_of(scenario: Mapping[str, Any]) -> list[Mark]:
    """Returns the changes in a resolved scenario in order of time, one mark for both directions of a link."""
    changes: dict[tuple[float, str], dict[str, None]] = {}
    for link in [*scenario.get("link", []), *scenario["path"]]:
        for event in link.get("event", []):
            of_link = changes.setdefault((_seconds(event["at"]), link["name"]), {})
            of_link.update(
                {_change(key, value): None for key, value in event.items() if key not in ("at", "direction")}
            )
    return [Mark(time_s, f"{link}: {', '.join(found)}") for (time_s, link), found in sorted(changes.items())]


def _change(key: str, value: object) -> str:
    if key == "up":
        return "up again" if value else "down"
    return f"{key} {value}" if isinstance(value, str) else f"other {key}"


def _seconds(time: str) -> float:
    matched = re.fullmatch(r"([\d.]+) ([a-z]+)", time)
    assert matched is not None, f"a resolved scenario does not write `{time}`"
    return float(matched[1]) * _SECONDS[matched[2]]
