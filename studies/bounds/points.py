"""Points at which goodput is compared with its bound, read from `data/points.toml`, and their scenarios."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from anabranch.errors import PlanError
from anabranch.scenario import Scenario
from anabranch.text_file import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = FilePath(__file__).parent / "data" / "points.toml"

QUEUE_PACKETS = 49
"""Packets that wait in a queue: in ns-2 one of the 50 places belongs to the packet in transmission."""

# A bound is found by simulating a million packets, which should be many windows.
BUFFER_BYTES = (1500, 64 << 20)
RATE_KBPS = (1, 10_000_000)
DELAY_MS = (0, 60_000)

SUBJECT = "subject"
"""Name of the flow whose scheme is judged."""

FULL_PACKET_BITS = 1500 * 8

ACCESS_MS = 2 * (FULL_PACKET_BITS / 100_000 + 0.001)
"""One-way time of the two access links of a path."""

START = "0.5 s"
"""Start of the flow, after the cross traffic, as in ns-2's scripts."""


@dataclass(frozen=True, slots=True)
class PointPath:
    """Path of a point. Packets are lost before the queue, in the direction of the data."""

    rate_kbps: float
    delay_ms: float
    loss: float
    cbr_kbps: float = 0.0
    pareto_load: float = 0.0

    @property
    def free_kbps(self) -> float:
        """Rate of the path less the cross traffic that reaches the queue."""
        return self.rate_kbps - (self.cbr_kbps + self.pareto_load * self.rate_kbps) * (1 - self.loss)


@dataclass(frozen=True, slots=True)
class LimitPoint:
    """Setting with a bound. A scheme has to reach `goal_percent` of the bound."""

    id: str
    group: str
    goal_percent: float
    buffer_bytes: int
    paths: tuple[PointPath, ...]

    def empty_delays_ms(self) -> dict[str, float]:
        """Returns the time of a full packet over each empty path, by the path's name."""
        names = zip(self.path_names, self.paths, strict=True)
        return {name: path.delay_ms + FULL_PACKET_BITS / path.rate_kbps + ACCESS_MS for name, path in names}

    @property
    def path_names(self) -> list[str]:
        """Names of its paths in its scenario."""
        return [f"path-{number}" for number in range(1, len(self.paths) + 1)]


@dataclass(frozen=True, slots=True)
class PointClass:
    """Points that belong together."""

    name: str
    about: str
    points: tuple[LimitPoint, ...]


@cache
def read_points(file: FilePath = DATA) -> tuple[PointClass, ...]:
    """Reads the classes of points of a file. Raises `PlanError` with the file and the fault."""
    try:
        document = tomllib.loads(read_text(file))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{file}: the points cannot be read: {error}") from error
    try:
        classes = tuple(_class(table) for table in document["class"])
        _check_ids(classes)
    except KeyError as error:
        raise PlanError(f"{file}: a class or point lacks the key {error}") from error
    except (TypeError, ValueError) as error:
        raise PlanError(f"{file}: a class or point is wrong: {error}") from error
    return classes


def _check_ids(classes: Sequence[PointClass]) -> None:
    seen: set[str] = set()
    for group in classes:
        if not group.points:
            raise ValueError(f"class {group.name} has no point")
        for point in group.points:
            if point.id in seen:
                raise ValueError(f"there are two points {point.id}: give each another `id`")
            seen.add(point.id)


def _class(table: Mapping[str, Any]) -> PointClass:
    points = tuple(_point(each, table) for each in table["point"])
    return PointClass(_text(table, "name"), _text(table, "about"), points)


def _point(table: Mapping[str, Any], group: Mapping[str, Any]) -> LimitPoint:
    name = _text(table, "id")
    point = LimitPoint(
        id=name,
        group=_text(group, "name"),
        goal_percent=_within(name, "goal_percent", table.get("goal_percent", group.get("goal_percent")), (0, 100)),
        buffer_bytes=int(_within(name, "buffer_bytes", table.get("buffer_bytes", 65536), BUFFER_BYTES)),
        paths=tuple(_path(name, path) for path in table["paths"]),
    )
    if not point.paths or any(path.free_kbps <= 0 or not 0 <= path.loss < 1 for path in point.paths):
        raise ValueError(f"{point.id}: every path needs a loss below 1 and a rate above that of its cross traffic")
    return point


def _path(point: str, table: Mapping[str, Any]) -> PointPath:
    path = PointPath(**table)
    _within(point, "rate_kbps", path.rate_kbps, RATE_KBPS)
    _within(point, "delay_ms", path.delay_ms, DELAY_MS)
    _within(point, "loss", path.loss, (0, 1))
    _within(point, "cbr_kbps", path.cbr_kbps, (0, RATE_KBPS[1]))
    _within(point, "pareto_load", path.pareto_load, (0, 1))
    return path


def _within(point: str, key: str, value: object, ends: tuple[float, float]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not ends[0] <= value <= ends[1]:
        raise ValueError(f"{point}: `{key}`: expected a number from {ends[0]:g} to {ends[1]:g}, found {value!r:.40}")
    return value


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str):
        raise TypeError(f"`{key}`: expected text, found {value!r:.40}")
    return value


def scenario_of(point: LimitPoint, duration_s: float, alone: str | None = None) -> str:
    """Returns the canonical scenario of a point, with all paths or one of them `alone`."""
    table = table_of(point, duration_s)
    if alone:
        table["flow"] = [{"name": SUBJECT, "paths": [alone]}]
    return Scenario.from_dict(table, name=point.id).to_toml(resolved=True)


def table_of(point: LimitPoint, duration_s: float) -> dict[str, Any]:
    """Returns the scenario of a point under profile `rfc9260`.

    As in ns-2's scripts, a path is a bottleneck between two access links of 100 Mbit/s.
    """
    return {
        "run": {"duration": f"{duration_s:g} s", "start": START, "profile": "rfc9260", "delays": True},
        "association": {"recv_buffer": f"{point.buffer_bytes} B"},
        "link": [link for name, path in zip(point.path_names, point.paths, strict=True) for link in _links(name, path)],
        "path": [
            {"name": name, "via": [f"{name}-left", f"{name}-middle", f"{name}-right"]} for name in point.path_names
        ],
        "flow": [{"name": SUBJECT, "paths": point.path_names}],
    }


def _links(name: str, path: PointPath) -> Sequence[dict[str, Any]]:
    access = {"rate": "100 Mbit/s", "delay": "1 us", "queue": f"{QUEUE_PACKETS} packets"}
    middle = {
        "name": f"{name}-middle",
        "rate": kbit(path.rate_kbps),
        "delay": f"{path.delay_ms:g} ms",
        "queue": f"{QUEUE_PACKETS} packets",
        "loss": path.loss,
        "background": _background(path),
    }
    return [{"name": f"{name}-left", **access}, middle, {"name": f"{name}-right", **access}]


def _background(path: PointPath) -> list[dict[str, Any]]:
    if path.cbr_kbps:
        return [{"kind": "cbr", "rate": kbit(path.cbr_kbps), "packet": "500 B", "jitter": 0.5}]
    if not path.pareto_load:
        return []
    # Eight sources that are on for half of the time.
    source = kbit(2 * path.pareto_load * path.rate_kbps / 8)
    return [
        {"kind": "pareto", "rate": source, "packet": f"{size} B", "count": count}
        | ({"fragment": "1000 B"} if size > 1000 else {})
        for size, count in ((44, 4), (576, 2), (1500, 2))
    ]


def kbit(rate_kbps: float) -> str:
    """Returns the text of a rate."""
    return f"{round(rate_kbps * 1000)} bit/s"
