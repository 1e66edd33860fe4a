"""Tables of scenario files as dataclasses.

Generated from `crates/scenario` by `UPDATE_EXPECT=1 cargo test -p anabranch-scenario`. Values are as in a file: text
with units, numbers, and `None` or `()` for keys that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from anabranch.scenario.table import Table


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSettings(Table):
    """Duration, repetitions and schemes, `[run]`."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "duration": "s",
        "start": "s",
        "warmup": "s",
    }
    stop: Literal["transfer"] | None = None
    """End the run when every flow with an end has been delivered; the default time limit is seven simulated
    days. Default: at `duration`."""
    duration: str | None = None
    """End of the run, required without `stop`; with `stop`, time limit of the run."""
    schemes: Sequence[str] | None = None
    """Schemes to run, each a name or an expression such as `"cmt(rtx=rtx-asap)"`; `"all"` means all except
    those of the file. See Schemes. Default: `["cmt"]`."""
    seeds: int | Sequence[int] | None = None
    """Each scheme runs once with each seed; `20` means 1 to 20. Default: `1`."""
    profile: Literal["rfc9260", "ns2", "net"] | None = None
    """The rules around the schemes. See Profiles. Default: `"rfc9260"`."""
    start: str | None = None
    """Default start of flows, and start of the goodput measurement. Default: `"0 s"`."""
    warmup: str | None = None
    """Time after `start` that goodput excludes. See Figures of a run. Default: `"0 s"`."""
    delays: bool | None = None
    """Measure the one-way delays of packets with DATA. Default: `false`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AssociationSettings(Table):
    """Settings of every association of a scenario, `[association]`."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "recv_buffer": "KiB",
        "send_buffer": "KiB",
        "message": "B",
        "mtu": "B",
    }
    recv_buffer: str | None = None
    """The receiver's buffer. It counts user data in profiles `rfc9260` and `net`, and DATA chunks with
    their headers in `ns2`. Default: `"64 KiB"`."""
    send_buffer: str | None = None
    """User bytes that an association stores, sent or not, until they are acknowledged cumulatively.
    Default: `"unlimited"`."""
    streams: int | None = None
    """Streams of bulk and file flows, used in turn. Default: `1`."""
    ordered: bool | None = None
    """Ordered delivery within a stream. Default: `true`."""
    message: str | None = None
    """User data in a message of a bulk or file flow; larger ones are fragmented. Default: the most that
    fits one packet."""
    mtu: str | None = None
    """The largest packet in wire bytes, on every path. Default: `"1500 B"`."""
    encapsulation: Literal["none", "udp"] | None = None
    """`none`: IP protocol 132. `udp`: UDP port 9899 (RFC 6951), 8 more bytes per packet. Default: `"none"`."""
    protection: Literal["none", "dtls"] | None = None
    """Packet protection. `"dtls"` costs 28 bytes per packet, an INIT of 700 bytes, and one round trip
    before the first data with messages of 1.4, 1.5 and 0.2 kB, as TLS 1.3 with raw public keys; keys are
    updated after an hour or 100 GB. The simulator does not encrypt. Default: `"none"`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scheme(Table):
    """Name for a scheme expression, `[scheme.NAME]`."""

    name: str
    """Name, unique among schemes and components."""
    expression: str
    """Scheme expression that the name stands for. Required."""
    about: str | None = None
    """Description, shown in the report."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Handover(Table):
    """Handovers of a path."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "at": "s",
        "every": "s",
        "outage": "ms",
    }
    at: str
    """Start of the first handover, from the start of the run. Unless `moves` is `none`, every flow of the
    path starts earlier. Required."""
    every: str | None = None
    """Time between the starts of two handovers, more than `outage`. Default: one handover."""
    random: bool | None = None
    """Draw the time from a handover to the next one at random, with `every` as the mean. Default: `false`."""
    outage: str | None = None
    """Time for which the link is down in both directions. Default: `"50 ms"`."""
    moves: Literal["left", "right", "none"] | None = None
    """Host that has another address afterwards; `none` for a handover within one network. Default:
    `"left"`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reliability(Table):
    """Limit after which a message is abandoned: `max_retransmissions`, `lifetime` or both, or `priority`;
    for a video also limits by the type of frame."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "lifetime": "s",
    }
    max_retransmissions: int | None = None
    """Maximum number of retransmissions of a chunk; a message is abandoned when one of its chunks is lost
    after them. Default: no limit."""
    lifetime: str | None = None
    """Time after which a message is abandoned, counted from its hand-over. Default: no limit."""
    priority: int | None = None
    """A message is abandoned when the send buffer has no room for a more important one; messages with the
    largest numbers are abandoned first. Default: no limit."""
    I: Reliability | None = None  # noqa: E741
    """The limit of I frames, `video` only. Default: delivered."""
    P: Reliability | None = None
    """The limit of P frames, `video` only. Default: delivered."""
    B: Reliability | None = None
    """The limit of B frames, `video` only. Default: delivered."""


Reliability.INNER = dict.fromkeys(("I", "P", "B"), Reliability)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SmallMessages(Table):
    """Small messages that a bulk flow's association carries beside the bulk, on a separate stream."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "size": "B",
        "interval": "ms",
    }
    size: str
    """User data of a message, which starts with its number. Required."""
    interval: str
    """Time between the starts of two messages; a run sends at most 1,000,000 of them. Required."""
    ordered: bool | None = None
    """Ordered delivery. Default: `false`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Exchange(Table):
    """Requests and responses on one connection of a forward flow."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "request": "B",
        "response": "B",
        "interval": "ms",
    }
    interval: str
    """Time between the starts of two requests, whether or not the earlier one was answered. Required."""
    request: str | None = None
    """User data of a request, to the gateway. Default: `"1 B"`."""
    response: str | None = None
    """User data of a response. It begins when the request has arrived. Default: `"1 B"`."""
    priority: bool | None = None
    """Priority of the connection, as `forward --priority` gives it. Default: `false`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Datagrams(Table):
    """Datagrams of a program on a forward flow."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "size": "B",
        "interval": "ms",
    }
    size: str
    """User data of a datagram. Required."""
    interval: str
    """Time between two datagrams. Required."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Flow(Table):
    """One association and its traffic, `[[flow]]`."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "reliability": Reliability,
        "messages": SmallMessages,
        "requests": Exchange,
        "keystrokes": Exchange,
        "datagrams": Datagrams,
    }
    UNITS: ClassVar[Mapping[str, str]] = {
        "size": "MB",
        "interval": "ms",
        "deadline": "ms",
        "payload": "B",
        "start": "s",
        "read_rate": "Mbit/s",
    }
    name: str | None = None
    """The name, unique among the flows. Default: `"flow-1"`, …."""
    kind: Literal["bulk", "file", "messages", "video", "forward"] | None = None
    """Bulk data without an end, one file, messages at regular intervals, frames of a video, or programs
    through `anabranch forward`. Default: `"bulk"`."""
    path: str | None = None
    """`file` only. The file to send, relative to the folder of the scenario file."""
    size: str | None = None
    """`file`: size of generated data, which depends on the seed and the flow's name. `messages`: user data
    of a message (required)."""
    interval: str | None = None
    """`messages` only. Time between the starts of two messages. Required."""
    count: int | None = None
    """`messages` only. Number of messages. Default: until the end of the run."""
    trace: str | None = None
    """`video` only. The frame trace, a CSV file, relative to the folder of the scenario file. Default:
    required."""
    deadline: str | None = None
    """`video` only. Time from handing over a B frame to its playout. Required."""
    payload: str | None = None
    """`video` only. User data of a full packet; a packet has data of one frame. Default: what fits a packet
    of `association.mtu`."""
    ordered: bool | None = None
    """`messages` and `video` only. Ordered delivery within a stream. Default: `association.ordered`."""
    streams: int | None = None
    """`messages` and `video` only. Streams of messages or frames, used in turn. Default:
    `association.streams`."""
    reliability: Reliability | None = None
    """`messages` and `video` only. Limit after which a message is abandoned; such a flow has no end.
    Default: every message is delivered."""
    start: str | None = None
    """Time at which the left host opens the association. Default: `run.start`."""
    paths: Sequence[str] | None = None
    """The first is the primary path. Default: all."""
    scheme: str | None = None
    """Scheme of the flow: a name or an expression. Default: each of `run.schemes` in turn."""
    direction: Literal["forward", "reverse", "both"] | None = None
    """Sender: the left host, the right host, or each of them the same data. The left host always opens the
    association. Default: `"forward"`."""
    read_rate: str | None = None
    """Maximum rate at which the receiving application reads. Default: everything at once."""
    messages: SmallMessages | None = None
    """`bulk` only. Small messages beside the bulk."""
    downloads: int | None = None
    """`forward` only. Downloads without an end, each a connection from the right host. Default: 0."""
    requests: Exchange | None = None
    """`forward` only. Requests and responses on one connection."""
    keystrokes: Exchange | None = None
    """`forward` only. Keystrokes and their echoes on one connection."""
    datagrams: Datagrams | None = None
    """`forward` only. Datagrams to the right host."""
