"""Messages, paths, counters and events of an association."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PathState: TypeAlias = Literal["unconfirmed", "active", "potentially-failed", "inactive"]
"""The state of a path.

- `unconfirmed`: the peer has not proved yet that it is there (RFC 9260 section 5.4); no data.
- `active`: in use.
- `potentially-failed`: it missed a time-out and is being probed (RFC 7829); no data while another path is active.
- `inactive`: failed (RFC 9260 section 8.2).
"""

EventKind: TypeAlias = Literal[
    "path-state",
    "path-added",
    "path-removed",
    "path-rebound",
    "abandoned",
    "no-partial-reliability",
    "restarted",
    "shutdown-received",
    "closed",
    "aborted",
    "missed",
]


@dataclass(frozen=True, slots=True)
class Message:
    """A message that has arrived.

    `ordered` says whether it took part in the order of its `stream`. `ppid` is the payload protocol identifier, as the
    peer set it.
    """

    payload: bytes
    stream: int = 0
    ordered: bool = True
    ppid: int = 0


@dataclass(frozen=True, slots=True)
class PathSnapshot:
    """A path at a moment.

    `id` is the one that events and `Association.remove_path` know it by; it may be given to another path once this one
    is gone. `local` is an IP address of this machine, `remote` one of the peer's with its UDP port. All bytes are those
    of DATA chunks. `outstanding_bytes` were sent and are neither acknowledged nor declared lost. `sent_bytes` counts
    every transmission. `srtt_ms` and `delivery_rate_kbps` are `None` until they were measured. `errors` are those in
    a row.
    """

    id: int
    local: str
    remote: str
    state: PathState
    primary: bool
    srtt_ms: float | None
    rto_ms: float
    mtu_bytes: int
    cwnd_bytes: int
    outstanding_bytes: int
    sent_bytes: int
    lost_bytes: int
    delivered_bytes: int
    delivery_rate_kbps: float | None
    errors: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counters of an association, from its beginning.

    `send_buffered_bytes` and `recv_buffered_bytes` are user bytes in the buffers now: accepted and not acknowledged,
    and arrived and not read. `rwnd_blocked_s` is the time in which data waited although a congestion window was open,
    because the peer's receive window was closed. The names are those of the figures of a run where both have them.
    `abandoned_by_retransmissions`, `abandoned_by_lifetime`, `abandoned_by_priority` and `abandoned_by_streams` (on a
    stream that the peer does not take) count messages: those of which nothing had been sent, and others.
    """

    send_buffered_bytes: int
    recv_buffered_bytes: int
    delivered_bytes: int
    data_packets_sent: int
    chunks_sent: int
    chunks_received: int
    duplicates_received: int
    chunks_dropped: int
    retransmissions: int
    fast_retransmits: int
    timeouts: int
    heartbeat_timeouts: int
    duplicates_reported: int
    sacks_sent: int
    sacks_received: int
    window_probes: int
    tail_probes: int
    rwnd_blocked_s: float
    peak_recv_buffered_bytes: int
    abandoned_by_retransmissions: tuple[int, int]
    abandoned_by_lifetime: tuple[int, int]
    abandoned_by_priority: tuple[int, int]
    abandoned_by_streams: tuple[int, int]
    abandoned_chunks: int
    abandoned_bytes: int
    forward_tsns_sent: int
    forward_tsns_received: int


@dataclass(frozen=True, slots=True)
class HostStatistics:
    """The counters of a listener's sockets.

    Bytes are those of UDP payloads. `send_failures` are datagrams that the system refused, `send_overflows` those that
    were dropped because a socket was blocked for too long, and `discarded` those that came and were no packet of an
    association of this host.
    """

    associations: int
    datagrams_sent: int
    sent_bytes: int
    send_failures: int
    send_overflows: int
    datagrams_received: int
    received_bytes: int
    discarded: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an association.

    | `kind` | what happened | fields |
    | --- | --- | --- |
    | `path-state` | a path changed state | `path`, `state` |
    | `path-added` | there is a new path, still to be confirmed | `path` |
    | `path-removed` | a path is gone | `path` |
    | `path-rebound` | the peer's UDP port behind a path changed | `path`, and the one it `was` |
    | `abandoned` | a message was given up, `sent` in part or not at all | `stream`, `context`, `reason`, `sent` |
    | `no-partial-reliability` | the peer does not take FORWARD-TSN | |
    | `restarted` | the peer restarted; what was queued or unread is lost | |
    | `shutdown-received` | the peer sends no more | |
    | `closed` | the association was shut down gracefully | |
    | `aborted` | it ended otherwise | `reason` |
    | `missed` | this listener was too slow and missed so many events | `missed` |
    """

    kind: EventKind
    path: int | None = None
    was: int | None = None
    state: PathState | None = None
    reason: str | None = None
    stream: int | None = None
    context: int | None = None
    sent: bool | None = None
    missed: int = 0
