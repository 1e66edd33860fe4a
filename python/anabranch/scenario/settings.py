"""`[run]`, `[association]` and `[scheme.NAME]`: how often, with what, and by which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from anabranch.scenario.table import Table

Profile = Literal["rfc9260", "ns2", "net"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSettings(Table):
    """`[run]`: how long, how often and with which schemes."""

    duration: str | None = None
    """When the run ends, such as `"60 s"`; with `stop`, when it is given up."""
    stop: Literal["transfer"] | None = None
    """End when every flow that has an end has been delivered."""
    schemes: Sequence[str] | None = None
    """Names or expressions such as `"cmt(trigger=4)"`; `cmt` alone if not given."""
    seeds: int | Sequence[int] | None = None
    """A number of seeds, which are then 1 to that number, or a list of them; 1 if not given."""
    profile: Profile | None = None
    """The rules around the schemes; `rfc9260` if not given."""
    start: str | None = None
    """When flows start that do not say so themselves, and from when on goodput is counted; `"0 s"` if not given."""
    warmup: str | None = None
    """Time after `start` that goodput leaves out; `"0 s"` if not given."""
    delays: bool | None = None
    """Whether the one-way delays of packets with DATA are measured; not if not given."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Association(Table):
    """`[association]`: what holds for every association of a scenario."""

    recv_buffer: str | None = None
    """The receiver's buffer; `"64 KiB"` if not given."""
    send_buffer: str | None = None
    """`"unlimited"` (if not given) or a size."""
    streams: int | None = None
    """Streams that bulk and file flows spread their messages over; 1 if not given."""
    ordered: bool | None = None
    """Whether messages are delivered in order within their stream; so they are if not given."""
    message: str | None = None
    """User data in a message of a bulk or file flow; the most that fits one packet if not given."""
    mtu: str | None = None
    """The largest packet in wire bytes; `"1500 B"` if not given."""
    encapsulation: Literal["none", "udp"] | None = None
    """What SCTP packets are carried in; IP itself if not given."""
    protection: Literal["none", "dtls"] | None = None
    """How packets are protected; not at all if not given."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scheme(Table):
    """`[scheme.NAME]`: a name for a scheme expression.

    >>> Scheme(name="eager", is_="cmt(trigger=2)", about="retransmits early")
    Scheme(name='eager', is_='cmt(trigger=2)', about='retransmits early')
    """

    KEYS: ClassVar[Mapping[str, str]] = {"is_": "is"}

    name: str
    """What it is called, which no other scheme or component is."""
    is_: str
    """What it stands for; the key is `is`, which Python keeps for itself."""
    about: str | None = None
    """What it is for."""
