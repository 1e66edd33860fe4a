"""`[[path]]`, `[[link]]` and what is on a link: loss, cross traffic, events and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from anabranch.scenario.table import Table

LossModel = Literal["bernoulli", "gilbert-elliott", "trace"]
LossPlace = Literal["before-queue", "after-queue"]
OneDirection = Literal["forward", "reverse"]
Directions = Literal["forward", "reverse", "both"]
BackgroundKind = Literal["cbr", "poisson", "pareto"]
JitterModel = Literal["uniform", "normal"]
JitterOrder = Literal["kept", "free"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Loss(Table):
    """A process that loses packets on a link.

    `rate`, `p`, `r`, `loss_good` and `loss_bad` are probabilities: numbers from 0 to 1, or text such as `"1 %"`.
    """

    model: LossModel
    """Each packet for itself, a chain of a good and a bad state, or the packets in `lost`."""
    rate: float | str | None = None
    """`bernoulli`: that a packet is lost."""
    p: float | str | None = None
    """`gilbert-elliott`: to go from the good to the bad state, per packet."""
    r: float | str | None = None
    """`gilbert-elliott`: to go back; more than 0."""
    loss_good: float | str | None = None
    """`gilbert-elliott`: that a packet is lost in the good state; 0 if not given."""
    loss_bad: float | str | None = None
    """`gilbert-elliott`: that a packet is lost in the bad state; 1 if not given."""
    lost: Sequence[int] | None = None
    """`trace`: the packets of each flow that are lost, counted from 1."""
    where: LossPlace | None = None
    """Before a packet takes up queue and link (if not given), or after."""
    direction: Directions | None = None
    """The direction that loses packets; forward if not given. Not inside `Reverse`, whose direction is known."""


AnyLoss = float | str | Loss | Sequence[Loss]
"""A probability, a process, or several that are independent of each other."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Policer(Table):
    """A token bucket that drops packets above a rate before they reach the queue.

    >>> Policer(rate="1.5 Mbit/s", burst="16 KiB")
    Policer(rate='1.5 Mbit/s', burst='16 KiB')
    """

    UNITS: ClassVar[Mapping[str, str]] = {"rate": "Mbit/s", "burst": "KiB"}

    rate: str
    """What passes in the long run, such as `"1.5 Mbit/s"`."""
    burst: str
    """Wire bytes that pass at once after a pause, such as `"16 KiB"`; at least `Association.mtu`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Jitter(Table):
    """Delay that differs from packet to packet.

    >>> Jitter(model="normal", mean="5 ms", deviation="2 ms", order="free")
    Jitter(model='normal', mean='5 ms', deviation='2 ms', order='free')
    """

    model: JitterModel
    """All from zero to `most` equally likely, or a normal distribution cut off at zero and at twice the mean."""
    most: str | None = None
    """`uniform`: the largest delay, such as `"5 ms"`."""
    mean: str | None = None
    """`normal`: the mean."""
    deviation: str | None = None
    """`normal`: the standard deviation before the cut, at most the mean."""
    order: JitterOrder | None = None
    """`"kept"`: no packet overtakes another (if not given). `"free"`: packets overtake each other."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Aggregation(Table):
    """Packets wait in the queue for each other and are sent in batches.

    >>> Aggregation(period="5 ms", packets=32)
    Aggregation(period='5 ms', packets=32)
    """

    period: str
    """How long the first packet of a batch waits at most, such as `"5 ms"`."""
    packets: int | None = None
    """A batch of so many packets does not wait for the period; no limit if not given."""


IMPAIRMENTS: Mapping[str, type[Table]] = {"policer": Policer, "jitter": Jitter, "aggregation": Aggregation}
"""Tables of one direction of a link besides its losses."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reverse(Table):
    """The direction back of a link. `rate`, `delay` and `queue` not given are as forward, the others are none then."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {"loss": Loss, **IMPAIRMENTS}

    rate: str | None = None
    delay: str | None = None
    queue: str | None = None
    loss: AnyLoss | None = None
    policer: Policer | None = None
    jitter: str | Jitter | None = None
    aggregation: Aggregation | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Background(Table):
    """Cross traffic on one link."""

    kind: BackgroundKind
    """At a constant rate, with exponential gaps, or on and off for Pareto distributed times."""
    rate: str
    """Of one source, in bits on the wire, such as `"1 Mbit/s"`; for `pareto` while it is on."""
    packet: str
    """Wire bytes of a packet, such as `"500 B"`."""
    direction: OneDirection | None = None
    """Forward if not given."""
    start: str | None = None
    """100 ms if not given."""
    stop: str | None = None
    """With the run if not given."""
    count: int | None = None
    """Such sources, each with a random stream of its own; 1 if not given."""
    jitter: float | None = None
    """`cbr`: each gap is longer or shorter by up to this fraction; 0.5 if not given."""
    burst: str | None = None
    """`pareto`: mean time on; 500 ms if not given."""
    idle: str | None = None
    """`pareto`: mean time off; 500 ms if not given."""
    shape: float | None = None
    """`pareto`: shape of both distributions; 1.5 if not given."""
    fragment: str | None = None
    """`pareto`: packets are split into pieces of at most this many wire bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Event(Table):
    """A change of one link in the course of a run. What is not given stays as it is."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {"loss": Loss}

    at: str
    """When, such as `"30 s"`."""
    direction: OneDirection | None = None
    """The direction that changes; both if not given."""
    up: bool | None = None
    """Whether the link carries packets from then on."""
    rate: str | None = None
    delay: str | None = None
    loss: AnyLoss | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Link(Table):
    """A link that paths share, `[[link]]`."""

    KEYS: ClassVar[Mapping[str, str]] = {"events": "event"}
    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "loss": Loss,
        **IMPAIRMENTS,
        "reverse": Reverse,
        "background": Background,
        "events": Event,
    }

    name: str | None = None
    """`link-1` and so on if not given."""
    rate: str
    """The rate at which packets leave the queue, such as `"10 Mbit/s"`."""
    delay: str
    """One way, such as `"45 ms"`."""
    queue: str | None = None
    """What may wait, as `"50 packets"` (if not given), `"64 KiB"` or `"100 ms"`."""
    loss: AnyLoss | None = None
    """What is lost at random; nothing if not given."""
    policer: Policer | None = None
    """What is dropped because it is above a rate, forward."""
    jitter: str | Jitter | None = None
    """What the delay differs by, forward; `"5 ms"` is a uniform distribution up to that, with the order kept."""
    aggregation: Aggregation | None = None
    """How packets wait for each other, forward."""
    reverse: Reverse | None = None
    """The direction back, where it differs."""
    background: Sequence[Background] = ()
    """Cross traffic."""
    events: Sequence[Event] = ()
    """Changes in the course of a run."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Path(Table):
    """A path between the two hosts, `[[path]]`: the links in `via`, then a link of its own, or one of the two.

    >>> Path(rate="10 Mbit/s", delay="45 ms", loss=0.01)
    Path(rate='10 Mbit/s', delay='45 ms', loss=0.01)
    """

    KEYS: ClassVar[Mapping[str, str]] = {"events": "event"}
    INNER: ClassVar[Mapping[str, type[Table]]] = Link.INNER

    name: str | None = None
    """`path-1` and so on if not given."""
    via: Sequence[str] | None = None
    """Shared links, in the order in which data passes them."""
    rate: str | None = None
    """The rate at which packets leave the queue, such as `"10 Mbit/s"`; required without `via`."""
    delay: str | None = None
    """One way, such as `"45 ms"`; required with `rate`."""
    queue: str | None = None
    """What may wait, as `"50 packets"` (if not given), `"64 KiB"` or `"100 ms"`."""
    loss: AnyLoss | None = None
    """What is lost at random; nothing if not given."""
    policer: Policer | None = None
    """What is dropped because it is above a rate, forward."""
    jitter: str | Jitter | None = None
    """What the delay differs by, forward; `"5 ms"` is a uniform distribution up to that, with the order kept."""
    aggregation: Aggregation | None = None
    """How packets wait for each other, forward."""
    reverse: Reverse | None = None
    """The direction back, where it differs."""
    background: Sequence[Background] = ()
    """Cross traffic."""
    events: Sequence[Event] = ()
    """Changes in the course of a run."""
