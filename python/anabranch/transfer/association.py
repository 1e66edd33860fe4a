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
    """Association that sends messages to a peer and receives messages from it.

    `connect` opens one, and `Listener.accept` returns those that peers open.

    At its end `async with association:` shuts the association down gracefully: every accepted message is delivered, and
    messages that the peer still sends are discarded. After an exception, including cancellation, it aborts the
    association, and the peer receives an ABORT. An association that is dropped without either is aborted. If the
    association was lost, the end of the block raises `AssociationLostError` unless an earlier call has raised it.

    Every method may be cancelled at any time, as `asyncio.wait_for` and `asyncio.timeout` do. A call that is cancelled
    takes no message, and `send` has sent a message if and only if it returned. One task may send while others receive.
    An association belongs to the event loop that it was made in.

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
        """The peer as given to `connect`. If the peer opened the association, the address of its primary path."""
        return self._native.peer

    @property
    def peer_key(self) -> str | None:
        """Public key that the peer has proved to own, as `anabranch keys` writes it. `None` with `insecure`."""
        return self._native.peer_key

    @property
    def streams(self) -> int:
        """Number of streams that messages may be sent on: the smaller of both sides' numbers. Ids begin at 0."""
        return self._native.streams

    @property
    def is_open(self) -> bool:
        """`True` while messages are accepted: the association is neither shutting down nor closed."""
        return self._native.is_open

    @property
    def supports_partial_reliability(self) -> bool:
        """`True` if the peer supports FORWARD-TSN (RFC 3758), so that messages may be sent with a limit."""
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
        """Sends a message of at least one byte, and waits while the send buffer is full.

        When this returns, the message is accepted: it is delivered unless the association ends without a graceful
        shutdown. Messages of one stream arrive in the order in which they were sent if they are `ordered`. `ppid` is
        carried unchanged (RFC 9260 section 3.3.1).

        `bytes` are sent without a copy. Any other object with a buffer is copied first, so that the caller may change
        it as soon as this returns.

        A message with a limit may be abandoned (RFC 7496), always as a whole. It is abandoned when a part of it is lost
        after `max_retransmissions` retransmissions (0 is allowed), or after `lifetime_s` seconds; both limits may be
        given together. A message with a `priority` is abandoned when the send buffer has no room for a message without
        a priority or with a smaller number. An `Event` of kind `abandoned` reports its `context`.

        Raises `ArgumentError` for an empty message, a stream that does not exist, a limit beside a priority, or a limit
        if the peer does not support FORWARD-TSN. Raises `AssociationClosedError` after either side has begun a
        shutdown, and `AssociationLostError`.

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
        """Returns the next message of any stream, or `None` once the peer has shut down and everything was received.

        While the application does not receive, the receive buffer fills and its window stops the peer's sender. Raises
        `AssociationLostError` after the last message of an association that was not shut down gracefully, so that a
        partial transfer is not taken for a complete one. Raises `AssociationRestartedError` once if the peer restarted,
        `AssociationClosedError` if this side has ended the association, and `MessageSizeError`.
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
        """Iterates over the messages until the peer has shut down."""
        return self

    async def __anext__(self) -> Message:
        message = await self.recv()
        if message is None:
            raise StopAsyncIteration
        return message

    async def shutdown(self) -> None:
        """Shuts the association down gracefully, and waits until both sides have completed the shutdown.

        Everything accepted is delivered first. The application has to receive the peer's messages meanwhile, for
        example in another task: while they fill the receive buffer, a peer that has more to send cannot complete the
        shutdown. Messages that have arrived can still be received afterwards. If this call is cancelled, the shutdown
        continues.

        Raises `AssociationLostError` if the association did not shut down gracefully.
        """
        await self._outcome(self._native.shutdown())

    def abort(self) -> None:
        """Aborts the association at once, with an ABORT to the peer. Undelivered messages are lost."""
        self._native.abort()

    async def closed(self) -> None:
        """Waits until the association has ended, without ending it.

        Raises `AssociationLostError` if it did not shut down gracefully, and `AssociationClosedError` if this side
        aborted it.
        """
        await self._outcome(self._native.closed())

    async def paths(self) -> list[PathSnapshot]:
        """Returns the current paths, or those at the end of the association."""
        return [PathSnapshot(**path) for path in await self._outcome(self._native.paths())]

    async def statistics(self) -> Statistics:
        """Returns the current counters, or those at the end of the association."""
        return Statistics(**await self._outcome(self._native.statistics()))

    def events(self) -> AsyncIterator[Event]:
        """Iterates over the events of the association from this call until it ends.

        async for event in association.events():
            if event.kind == "path-state":
                print(event.path, event.state)
        """
        return Events(self._native.events(), self._waker)

    async def add_path(self, local: str, remote: str) -> int:
        """Adds a path from an IP address of this machine to one of the peer's (`ADDRESS:PORT`), and returns its id.

        The path carries data once the peer has confirmed it. On the side that connected, a local address that is not in
        use yet is bound. Raises `ArgumentError` if there can be no such path, and `AssociationClosedError`.
        """
        return await self._outcome(self._native.add_path(local, remote))

    async def remove_path(self, path: int) -> None:
        """Removes the path with this id. Chunks in flight on it are retransmitted on other paths.

        Raises `ArgumentError` if there is no such path or it is the only one, and `AssociationClosedError`.
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
            # This side aborted it on purpose.
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
    """Asynchronous iterator over the events of an association."""

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
