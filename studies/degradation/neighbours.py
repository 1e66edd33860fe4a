"""Settings with other flows on a shared link, and links that show the share of a scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studies.bounds.points import FULL_PACKET_BITS
from studies.degradation.setting import SUBJECT, Contest, Setting, Table, kbit, ms, poisson, run_table, subject

QUEUES_PACKETS = (10, 20, 42, 84, 200)
DELAYS_MS = (5.0, 20.0, 100.0)
OTHER_FLOWS = (1, 4)
RATE_KBPS = 10_000.0
WARMUP_S = 20.0

_BUFFER = "1 MiB"
"""Receive buffer of more than a round trip and a full queue, so that windows divide the link, and not buffers."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Link of 10 Mbit/s that several paths share."""

    queue_packets: int
    delay_ms: float

    @property
    def name(self) -> str:
        """Part of the names of settings."""
        return f"queue-{self.queue_packets}-delay-{self.delay_ms:g}"

    @property
    def table(self) -> Table:
        """Link as the table of a scenario."""
        return {
            "name": "bottleneck",
            "rate": kbit(RATE_KBPS),
            "delay": ms(self.delay_ms),
            "queue": f"{self.queue_packets} packets",
            "background": [poisson(500)],
        }

    @property
    def empty_delay_ms(self) -> float:
        """Time of a full packet over the empty link."""
        return self.delay_ms + FULL_PACKET_BITS / RATE_KBPS

    @property
    def full_queue_ms(self) -> float:
        """Wait of a packet in a full queue."""
        return self.queue_packets * FULL_PACKET_BITS / RATE_KBPS


def bottlenecks(quick: bool = False) -> list[Bottleneck]:
    """Returns all queues with all delays, or three of them."""
    if quick:
        return [Bottleneck(10, 20.0), Bottleneck(42, 20.0), Bottleneck(84, 5.0)]
    return [Bottleneck(queue, delay) for queue in QUEUES_PACKETS for delay in DELAYS_MS]


def _shared(name: str, link: Table, run: Table, flows: Sequence[Table], contest: Contest | None = None) -> Setting:
    """Returns a setting in which every path uses this link only."""
    paths = [path for flow in flows for path in flow["paths"]]
    table = {
        "run": run,
        "association": {"recv_buffer": _BUFFER},
        "link": [link],
        "path": [{"name": path, "via": [link["name"]]} for path in paths],
        "flow": list(flows),
    }
    own = next(flow["paths"] for flow in flows if flow["name"] == SUBJECT)
    return Setting(name, table, tuple(own), contest)


def beside(bottleneck: Bottleneck, scheme: str, count: int, duration_s: float) -> Setting:
    """Returns the subject with two paths beside `count` flows of one path."""
    names = [f"other-{number}" for number in range(1, count + 1)]
    flows = [subject(["left", "right"]), *({"name": name, "paths": [name], "scheme": scheme} for name in names)]
    run = run_table(duration_s + WARMUP_S, warmup=f"{WARMUP_S:g} s")
    contest = Contest(("left", "right"), tuple(names))
    return _shared(f"{bottleneck.name}-beside-{count}-{scheme}", bottleneck.table, run, flows, contest)


def two_alike(bottleneck: Bottleneck, duration_s: float) -> Setting:
    """Returns two flows of the same scheme with two paths each, whose first 30 s do not count."""
    second = {"name": "second", "paths": ["left-2", "right-2"]}
    run = run_table(duration_s + 30, warmup="30 s")
    return _shared(f"{bottleneck.name}-two-alike", bottleneck.table, run, [subject(["left", "right"]), second])


def alone(bottleneck: Bottleneck, duration_s: float) -> Setting:
    """Returns the subject without other flows."""
    run = run_table(duration_s)
    return _shared(f"{bottleneck.name}-alone", bottleneck.table, run, [subject(["left", "right"])])


FREE_PATH = "free"


def one_link_taken(scheme: str, duration_s: float) -> Setting:
    """Returns two links of 2 Mbit/s, one of them shared with a flow of one path."""

    def link(name: str) -> Table:
        end = {"rate": kbit(2000), "delay": "45 ms", "queue": "50 packets", "background": [poisson(40)]}
        return {"name": name, **end}

    paths = [("taken", "link-1"), (FREE_PATH, "link-2"), ("other", "link-1")]
    table = {
        "run": run_table(duration_s + WARMUP_S, warmup=f"{WARMUP_S:g} s"),
        "association": {"recv_buffer": "256 KiB"},
        "link": [link("link-1"), link("link-2")],
        "path": [{"name": name, "via": [via]} for name, via in paths],
        "flow": [
            subject(["taken", FREE_PATH]),
            {"name": "other", "paths": ["other"], "scheme": scheme},
        ],
    }
    return Setting(f"one-link-taken-by-{scheme}", table, ("taken", FREE_PATH), Contest(("taken",), ("other",)))


POLICED_KBPS = 1500.0


def policed(duration_s: float) -> Setting:
    """Returns one link of 10 Mbit/s whose policer admits 1.5 Mbit/s."""
    link = {
        "name": "path-1",
        "rate": kbit(RATE_KBPS),
        "delay": "20 ms",
        "queue": "50 packets",
        "policer": {"rate": kbit(POLICED_KBPS), "burst": "30 kB"},
    }
    table = {
        "run": run_table(duration_s),
        "association": {"recv_buffer": "256 KiB"},
        "path": [link],
        "flow": [subject(["path-1"])],
    }
    return Setting("policer-1.5-of-10", table, ("path-1",))
