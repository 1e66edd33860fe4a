"""Messages, paths, counters and events of an association."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PathState: TypeAlias = Literal["unconfirmed", "active", "potentially-failed", "inactive"]
"""The state of a path.

- `unconfirmed`: the peer has not confirmed the address yet (RFC 9260 section 5.4); no data.
- `active`: in use.
- `potentially-failed`: a time-out occurred, and the path is probed (RFC 7829); no data while another path is active.
- `inactive`: failed (RFC 9260 section 8.2).
"""

EventKind: TypeAlias = Literal[
    "path-state",
    "path-added",
    "path-removed",
    "path-rebound",
    "abandoned",
    "no-partial-reliability",
    "streams-reset",
    "streams-added",
    "stream-request-failed",
    "restarted",
    "shutdown-received",
    "closed",
    "aborted",
    "missed",
    "other",
]


@dataclass(frozen=True, slots=True)
class Message:
    """Received message.

    `ordered` is `True` if it was delivered in the order of its `stream`. `ppid` is the payload protocol identifier, as
    the peer set it.
    """

    payload: bytes
    stream: int = 0
    ordered: bool = True
    ppid: int = 0


@dataclass(frozen=True, slots=True)
class PathSnapshot:
    """State of a path at one moment.

    Events and `Association.remove_path` use the same `id`; it may be reused for another path once this one is removed.
    `local` is an IP address of this machine, `remote` one of the peer's with its UDP port. All bytes are those of DATA
    chunks. `outstanding_bytes` were sent and are neither acknowledged nor declared lost. `sent_bytes` counts every
    transmission. `srtt_ms` and `delivery_rate_kbps` are `None` until they are measured. `errors` counts consecutive
    errors.
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
    """Counters of an association since it was opened.

    `send_buffered_bytes` and `recv_buffered_bytes` are user bytes in the buffers now: accepted but not acknowledged,
    and received but not read. `rwnd_blocked_s` is the time in which data waited for the peer's receive window although
    a congestion window was open. The names are those of the figures of a run where both have them.
    `abandoned_by_retransmissions`, `abandoned_by_lifetime`, `abandoned_by_priority` and `abandoned_by_streams` (on a
    stream that the peer does not accept) count messages: first those of which nothing was sent, then all others.
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
    copies_sent: int
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
class EndpointStatistics:
    """Counters of a listener's sockets.

    Bytes are those of UDP payloads. `send_failures` are datagrams that the system refused. `send_overflows` are
    datagrams that were dropped because a socket was blocked for too long. `discarded` are received datagrams that
    belong to no association of this endpoint.
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
    """Event of an association.

    | `kind` | event | fields |
    | --- | --- | --- |
    | `path-state` | a path changed state | `path`, `state` |
    | `path-added` | a path was added and is not confirmed yet | `path` |
    | `path-removed` | a path was removed | `path` |
    | `path-rebound` | the peer's UDP port behind a path changed | `path`, and the previous port `was` |
    | `abandoned` | a message was abandoned, `sent` in part or not at all | `stream`, `context`, `reason`, `sent` |
    | `no-partial-reliability` | the peer does not support FORWARD-TSN | |
    | `streams-reset` | stream sequence numbers start at zero again | |
    | `streams-added` | there are more streams | |
    | `stream-request-failed` | the peer refused a change of streams | |
    | `restarted` | the peer restarted; queued and unread messages are lost | |
    | `shutdown-received` | the peer sends no more | |
    | `closed` | the association was shut down gracefully | |
    | `aborted` | the association ended otherwise | `reason` |
    | `missed` | this iterator was too slow and missed `missed` events | `missed` |
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
