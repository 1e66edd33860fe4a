"""The slots that a class in Python can fill."""

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
    """What fills a slot. Each association works on a deep copy of the object that was given.

    A class that descends from several slots fills all of them with one object.
    """

    base: ClassVar[str] = "cmt"
    """The scheme whose other slots stay as they are: a name or an expression."""
    name: str | None = None
    """What results call the scheme; if not given, the class with the object's public attributes."""
    version: str | None = None
    """Makes runs cacheable that depend on more than can be read: another text stands for another behaviour.

    In the class it answers for what its methods call and read. One that `__init__` sets answers for the object's
    attributes too.
    """
    random: Random
    """The randomness of the association, which the run's seed fixes. It is there once the run has begun."""

    def on_event(self, event: PolicyEvent, view: View) -> None:
        """Takes in an event of the association. A class that does not override it is not told of any."""


class Scheduler(Policy):
    """Chooses a path for each packet of new data."""

    def pick(self, ask: SendAsk, view: View) -> PathFacts | int | Wait | Copies | Bind | Decision | None:
        """Where the packet goes: a path or its id; `None` waits until a window has room.

        A path that cannot send now is a mistake: core overrules it and counts it in `overruled_picks`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pick`")


class CongestionControl(Policy):
    """Lets windows grow, reduces and paces them, inside the accounting of RFC 9260 that all schemes share.

    A class overrides any of `grow`, `cut` and `pace`. What it leaves out is the standard's, which paces nothing.
    """

    def grow(self, acked: Acknowledged, view: View) -> Window | Decision | None:
        """The path's window after acknowledgements have let it grow; `None` leaves it as it is.

        It is asked where the standard lets a window grow: the window was in full use, and bytes that count in
        congestion avoidance have been added to its `partial_bytes_acked`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `grow`")

    def cut(self, loss: PathLoss, view: View) -> Window | Decision:
        """The path's window after a loss: once per window for fast retransmit, and at every T3 expiry."""
        raise NotImplementedError(f"{type(self).__name__} has no method `cut`")

    def pace(self, ask: PaceAsk, view: View) -> Pacing | Decision | None:
        """What limits the path beside its window from now on; `None` is no limit.

        It is asked when the association is up, after each SACK that acknowledged something on the path, and after
        round-trip samples, losses and changes of the path's state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pace`")


class Retransmit(Policy):
    """Chooses the path of each packet of lost chunks, from its first chunk."""

    def route(self, chunk: LostChunk, view: View) -> PathFacts | int | Wait | Decision | None:
        """Where the chunk goes: a path or its id; `None` waits until a window has room."""
        raise NotImplementedError(f"{type(self).__name__} has no method `route`")
