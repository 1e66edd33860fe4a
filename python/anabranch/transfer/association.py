"""An association: messages on several streams, over several paths."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from anabranch.transfer.checking import real_or_none, whole, whole_or_none, whole_up_to
from anabranch.transfer.errors import (
    AssociationClosedError,
    AssociationLostError,
    AssociationRestartedError,
    MessageSizeError,
)
from anabranch.transfer.reassembly import Reassembly
from anabranch.transfer.snapshots import Event, Message, PathSnapshot, Statistics

_LARGEST_CONTEXT = 2**64 - 1

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from anabranch import _native
    from anabranch.transfer.waker import Waker

T = TypeVar("T")


class Association:
    """Messages to and from a peer. `connect` opens one, and `Listener.accept` gives those that peers open.

    `async with association:` shuts it down gracefully at its end: everything accepted is delivered, and what the peer
    still sent is discarded. After an exception, cancellation included, it aborts the association, and the peer is told.
    An association that is dropped without either is aborted. If it was lost, the end of the block raises
    `AssociationLostError` unless another call has done so before.

    Every method may be cancelled at any time, as `asyncio.wait_for` and `asyncio.timeout` do. A message is either taken
    by the call that returns it or is still there; a message is sent if and only if `send` returned. One task may send
    while others receive. An association belongs to the event loop that it was made in.

    Errors are those of `anabranch.transfer.errors`.
    """

    __slots__ = ("__weakref__", "_loss_is_known", "_native", "_reassembly", "_waker")

    def __init__(self, native: _native.Association, waker: Waker, largest_message_bytes: int) -> None:
        """Use `connect` or `listen` instead."""
        self._native = native
        self._waker = waker
        self._reassembly = Reassembly(largest_message_bytes)
        self._loss_is_known = False

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<anabranch.transfer.Association with {self.peer}, {state}>"

    @property
    def peer(self) -> str:
        """The peer as `connect` was given it; if the peer opened the association, the address of its primary path."""
        return self._native.peer

    @property
    def peer_key(self) -> str | None:
        """The public key that the peer has proved to hold, as `anabranch keys` writes it; `None` with `insecure`."""
        return self._native.peer_key

    @property
    def streams(self) -> int:
        """How many streams messages may be sent on: as many as both sides have. They are numbered from 0."""
        return self._native.streams

    @property
    def is_open(self) -> bool:
        """Whether messages are taken: it is neither closing nor over."""
        return self._native.is_open

    @property
    def supports_partial_reliability(self) -> bool:
        """Whether the peer takes FORWARD-TSN (RFC 3758), so that messages may be sent with a limit."""
        return self._native.supports_partial_reliability

    async def send(
        self,
        payload: Buffer,
        *,
        stream: int = 0,
        ordered: bool = True,
        ppid: int = 0,
        max_retransmissions: int | None = None,
        lifetime_s: float | None = None,
        priority: int | None = None,
        context: int = 0,
    ) -> None:
        """Hands a message of at least one byte over, and waits while the send buffer is full.

        When it returns the message is accepted: it is delivered, unless the association ends without a graceful
        shutdown. Messages of one stream arrive in the order in which they were sent, if both are `ordered`. `ppid` is
        carried as it is (RFC 9260 section 3.3.1).

        `bytes` are sent from where they are; of any other object that has a buffer a copy is made first, so that it may
        be changed as soon as this returns.

        A message with a limit may be given up (RFC 7496), whole: once a part of it is lost after so many
        `max_retransmissions`, which may be 0; after `lifetime_s` seconds; or, with a `priority`, when the send buffer
        has no room for a message without one or with a smaller number. The first two can stand together. An `Event` of
        kind `abandoned` tells its `context`.

        Raises `ArgumentError` for an empty message, a stream that does not exist, a limit beside a priority, or a limit
        if the peer does not take FORWARD-TSN, `AssociationClosedError` after a shutdown began on either side, and
        `AssociationLostError`.

            await association.send(b"sensor 7: 21.5", stream=3)
            await association.send(b"frame", stream=1, lifetime_s=0.2, context=4711)
        """
        data = payload if isinstance(payload, bytes) else bytes(memoryview(payload))
        limit = (
            whole_or_none("max_retransmissions", max_retransmissions),
            real_or_none("lifetime_s", lifetime_s),
            whole_or_none("priority", priority),
        )
        stream, ppid = whole("stream", stream), whole("ppid", ppid)
        context = whole_up_to("context", context, _LARGEST_CONTEXT)
        await self._outcome(self._native.send(data, stream, ordered, ppid, limit, context))

    async def recv(self) -> Message | None:
        """The next message of any stream, or `None` once the peer has shut down and everything was received.

        While nobody receives, the peer's sender comes to a halt as the receive buffer fills. Raises
        `AssociationLostError` after the last message of an association that was not shut down gracefully, so that a
        partial transfer is not taken for a complete one; `AssociationRestartedError` once, if the peer restarted;
        `AssociationClosedError` if this side has ended it; `MessageSizeError`.
        """
        while True:
            try:
                part = await self._outcome(self._native.recv())
                message = None if part is None else self._reassembly.add(part)
            except AssociationRestartedError:
                self._reassembly.clear()
                raise
            except MessageSizeError as error:
                self.abort()
                raise MessageSizeError(f"{self.peer}: {error}") from None
            if part is None or message is not None:
                return message

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages until the peer has shut down."""
        return self

    async def __anext__(self) -> Message:
        message = await self.recv()
        if message is None:
            raise StopAsyncIteration
        return message

    async def shutdown(self) -> None:
        """Shuts the association down gracefully, and waits until both sides have agreed.

        Everything accepted is delivered first. The peer's messages have to be received meanwhile, for example by
        another task: while they fill the receive buffer, a peer that has more to send cannot agree. What has arrived
        can still be received afterwards. If this is cancelled the shutdown goes on.

        Raises `AssociationLostError` if it did not shut down gracefully.
        """
        await self._outcome(self._native.shutdown())

    def abort(self) -> None:
        """Ends the association at once and tells the peer. What was not delivered is lost."""
        self._native.abort()

    async def closed(self) -> None:
        """Waits until the association is over, and does nothing toward it.

        Raises `AssociationLostError` if it did not shut down gracefully, and `AssociationClosedError` if it was aborted
        here.
        """
        await self._outcome(self._native.closed())

    async def paths(self) -> list[PathSnapshot]:
        """The paths as they are now, or as they were when the association ended."""
        return [PathSnapshot(**path) for path in await self._outcome(self._native.paths())]

    async def statistics(self) -> Statistics:
        """The counters as they are now, or as they were when the association ended."""
        return Statistics(**await self._outcome(self._native.statistics()))

    def events(self) -> AsyncIterator[Event]:
        """What happens to the association from this call on, until it is over.

        async for event in association.events():
            if event.kind == "path-state":
                print(event.path, event.state)
        """
        return Events(self._native.events(), self._waker)

    async def add_path(self, local: str, remote: str) -> int:
        """Adds a path from an IP address of this machine to one of the peer's (`ADDRESS:PORT`), and gives its id.

        It carries data once the peer has answered on it. On the side that connected, a local address that is not in use
        yet is bound. Raises `ArgumentError` if there can be no such path, `AssociationClosedError`.
        """
        return await self._outcome(self._native.add_path(local, remote))

    async def remove_path(self, path: int) -> None:
        """Takes the path with this id out of service. What was in flight on it goes over others.

        Raises `ArgumentError` if there is no such path, or no other one, and `AssociationClosedError`.
        """
        await self._outcome(self._native.remove_path(whole("path", path)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loss_was_known = self._loss_is_known
        try:
            await self._outcome(self._native.leave(error is None))
        except AssociationClosedError:
            # It was aborted here, and on purpose.
            pass
        except AssociationLostError:
            if error is None and not loss_was_known:
                raise

    async def _outcome(self, operation: _native.Operation[T]) -> T:
        try:
            return await self._waker.outcome(operation)
        except AssociationLostError:
            self._loss_is_known = True
            raise


class Events:
    """The events of an association, for `async for`."""

    __slots__ = ("_native", "_waker")

    def __init__(self, native: _native.Events, waker: Waker) -> None:
        self._native = native
        self._waker = waker

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        event = await self._waker.outcome(self._native.next())
        if event is None:
            raise StopAsyncIteration
        return Event(**event)
