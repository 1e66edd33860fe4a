"""Slots that a class in Python can fill."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from anabranch._native import (
        Acknowledged,
        Bind,
        Copies,
        Decision,
        LostChunk,
        PaceAsk,
        Pacing,
        PathFacts,
        PathLoss,
        PolicyEvent,
        SendAsk,
        View,
        Wait,
        Window,
    )


class Policy:
    """Base class of policies that fill slots. Each association uses a deep copy of the given object.

    A class that descends from several slots fills all of them with one object.
    """

    base: ClassVar[str] = "cmt"
    """Scheme of the other slots: a name or an expression."""
    name: str | None = None
    """Name of the scheme in results (default: the class with the object's public attributes)."""
    version: str | None = None
    """Version that permits caching runs that depend on state that cannot be read. Change it whenever the behaviour
    changes.

    A version of the class stands for the globals and modules that its functions use. A version that `__init__` sets
    stands for the object's attributes too.
    """
    random: Random
    """Source of randomness of the association, seeded by the run's seed. It exists once the run has begun."""

    def on_event(self, event: PolicyEvent, view: View) -> None:
        """Receives an event of the association. A class that does not override this method receives no events."""


class Scheduler(Policy):
    """Chooses a path for each packet of new data."""

    def pick(self, ask: SendAsk, view: View) -> PathFacts | int | Wait | Copies | Bind | Decision | None:
        """Returns the path of the packet, or its id; `None` waits until a window has room.

        A path that cannot send now is an error: core overrules it and counts it in `overruled_picks`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pick`")


class CongestionControl(Policy):
    """Grows, reduces and paces windows, inside the accounting of RFC 9260 that all schemes share.

    A class overrides any of `grow`, `cut` and `pace`. Methods that are not overridden follow the standard, without
    pacing.
    """

    def grow(self, acked: Acknowledged, view: View) -> Window | Decision | None:
        """Returns the path's window after growth by acknowledgements; `None` leaves it unchanged.

        Called where the standard lets a window grow: the window was fully used, and bytes that count in congestion
        avoidance have been added to its `partial_bytes_acked`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `grow`")

    def cut(self, loss: PathLoss, view: View) -> Window | Decision:
        """Returns the path's window after a loss: once per window for fast retransmit, and at every T3 expiry."""
        raise NotImplementedError(f"{type(self).__name__} has no method `cut`")

    def pace(self, ask: PaceAsk, view: View) -> Pacing | Decision | None:
        """Returns the limit of the path beside its window from now on; `None` is no limit.

        Called when the association is established, after each SACK that acknowledged something on the path, and after
        round-trip samples, losses and changes of the path's state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pace`")


class Retransmit(Policy):
    """Chooses the path of each packet of lost chunks, from its first chunk."""

    def route(self, chunk: LostChunk, view: View) -> PathFacts | int | Wait | Decision | None:
        """Returns the path of the chunk, or its id; `None` waits until a window has room."""
        raise NotImplementedError(f"{type(self).__name__} has no method `route`")
