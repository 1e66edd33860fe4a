"""`[[flow]]`: an association, and what is sent over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from anabranch.scenario.link import Directions
from anabranch.scenario.table import Table

FlowKind = Literal["bulk", "file", "messages", "video"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reliability(Table):
    """When a message is given up. Give `max_retransmissions`, `lifetime` or both, or `priority`; for a video also
    limits by the type of frame.

    >>> Reliability(lifetime="200 ms")
    Reliability(lifetime='200 ms')
    >>> Reliability(I=Reliability(lifetime="400 ms"), B=Reliability(max_retransmissions=0))
    Reliability(I=Reliability(lifetime='400 ms'), B=Reliability(max_retransmissions=0))
    """

    max_retransmissions: int | None = None
    """When one of its chunks is lost after so many retransmissions."""
    lifetime: str | None = None
    """When so much time has passed since it was handed over."""
    priority: int | None = None
    """When the send buffer has no room for a message that matters more; the largest numbers are given up first."""
    I: Reliability | None = None  # noqa: E741
    """`video`: the limit of I frames."""
    P: Reliability | None = None
    """`video`: the limit of P frames."""
    B: Reliability | None = None
    """`video`: the limit of B frames."""


# A class cannot name itself while it is made.
Reliability.INNER = dict.fromkeys("IPB", Reliability)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MessagesBeside(Table):
    """Small messages that a bulk flow's association carries beside the bulk, on a stream of their own.

    >>> MessagesBeside(size="200 B", interval="20 ms")
    MessagesBeside(size='200 B', interval='20 ms')
    """

    size: str | None = None
    """User data of a message, 8 to 500 bytes; it has to be given."""
    interval: str | None = None
    """Between the starts of two messages, 1 ms to 1 h; it has to be given."""
    ordered: bool | None = None
    """Whether they are delivered in order; they are not if not given."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Flow(Table):
    """One association and what is sent over it, `[[flow]]`.

    >>> Flow(kind="file", size="8 MB").kind
    'file'
    """

    INNER: ClassVar[Mapping[str, type[Table]]] = {"reliability": Reliability, "messages": MessagesBeside}

    name: str | None = None
    """`flow-1` and so on if not given."""
    kind: FlowKind | None = None
    """As much as goes through (if not given), a file once, messages at regular times, or the frames of a video."""
    start: str | None = None
    """When the left host opens the association; `run.start` if not given."""
    paths: Sequence[str] | None = None
    """Names of paths, the primary one first; all if not given."""
    scheme: str | None = None
    """A scheme of its own; each of `run.schemes` in turn if not given."""
    direction: Directions | None = None
    """Who sends: the left host (if not given), the right host, or each of them the same."""
    reader: str | None = None
    """The rate at which the receiving application reads at most; everything at once if not given."""
    path: str | None = None
    """`file`: the file to send, relative to the scenario's folder."""
    size: str | None = None
    """`file`: made-up bytes to send. `messages`: user data of a message."""
    interval: str | None = None
    """`messages`: between the starts of two messages."""
    count: int | None = None
    """`messages`: how many; they go on to the end of the run if not given."""
    ordered: bool | None = None
    """`messages`, `video`: as in `Association`, if it differs."""
    streams: int | None = None
    """`messages`, `video`: as in `Association`, if it differs."""
    reliability: Reliability | None = None
    """`messages`, `video`: when they are given up; every message is delivered if not given."""
    messages: MessagesBeside | None = None
    """`bulk`: small messages beside the bulk; none if not given."""
    trace: str | None = None
    """`video`: the frame trace, relative to the scenario's folder; `Flow.of_clip` makes one."""
    deadline: str | None = None
    """`video`: from when a frame is handed over to when it is shown."""
    payload: str | None = None
    """`video`: user data of a full packet; what fits a packet of the association's MTU if not given."""

    @classmethod
    def of_clip(cls, clip: str, *, frames: int | None = None, **keys: Any) -> Flow:
        """The flow of a clip: `photographs`, `synthetic` or a file, of which the first `frames` are sent.

        It is encoded as `anabranch video encode` does it, and kept in the user's folder of caches. `keys` are those of
        a flow. Needs `pip install 'anabranch[video]'`. Raises `VideoError` if it cannot be read or encoded.
        """
        from anabranch.video.kept import kept_clip
        from anabranch.video.user_clip import Reading

        return cls(kind="video", trace=str(kept_clip(clip, Reading(frames=frames)).folder / "trace.csv"), **keys)
