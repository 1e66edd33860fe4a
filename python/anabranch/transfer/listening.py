"""`listen`, which accepts associations from peers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from anabranch import _native
from anabranch.transfer.association import Association
from anabranch.transfer.checking import whole
from anabranch.transfer.errors import AssociationClosedError
from anabranch.transfer.opening import DEFAULT_PORT, LARGEST_MESSAGE_BYTES, Opening
from anabranch.transfer.settings import Settings
from anabranch.transfer.snapshots import EndpointStatistics
from anabranch.transfer.waker import Waker

if TYPE_CHECKING:
    from typing_extensions import Self


class Listener:
    """Listener that accepts associations from peers. `listen` makes one.

    Leaving `async with` closes it: it refuses further peers, and aborts associations that wait to be accepted. Accepted
    associations continue.
    """

    __slots__ = ("__weakref__", "_largest_message_bytes", "_native", "_waker")

    def __init__(self, native: _native.Listener, waker: Waker, largest_message_bytes: int) -> None:
        """Use `listen` instead."""
        self._native = native
        self._waker = waker
        self._largest_message_bytes = largest_message_bytes

    def __repr__(self) -> str:
        return f"<anabranch.transfer.Listener on {', '.join(self.addresses)}>"

    @property
    def addresses(self) -> list[str]:
        """Addresses that it listens on, as `ADDRESS:PORT`, with the assigned port in place of port 0."""
        return self._native.addresses

    async def accept(self) -> Association:
        """Waits for the next association that a peer opens, and returns it.

        A call that is cancelled takes no association. Raises `AssociationClosedError` once the listener was stopped and
        none is left.
        """
        native = await self._waker.outcome(self._native.accept())
        if native is None:
            raise AssociationClosedError(
                f"{', '.join(self.addresses)}: the listener was stopped and no longer accepts; listen again"
            )
        return Association(native, self._waker, self._largest_message_bytes)

    def __aiter__(self) -> AsyncIterator[Association]:
        """Iterates over the associations until the listener is stopped."""
        return self

    async def __anext__(self) -> Association:
        native = await self._waker.outcome(self._native.accept())
        if native is None:
            raise StopAsyncIteration
        return Association(native, self._waker, self._largest_message_bytes)

    def stop(self) -> None:
        """Refuses further peers. Associations that wait can still be accepted; iteration ends after them."""
        self._native.stop()

    async def close(self) -> None:
        """Refuses further peers, and aborts associations that wait.

        The sockets are closed when this returns, or with the last accepted association.
        """
        await self._waker.outcome(self._native.close())

    async def statistics(self) -> EndpointStatistics:
        """Returns the counters of the sockets and of all accepted associations; zeros once the listener is closed."""
        return EndpointStatistics(**await self._waker.outcome(self._native.statistics()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def listen(
    addresses: str | Iterable[str] | None = None,
    *,
    scheme: str = "braid",
    sctp_port: int = DEFAULT_PORT,
    backlog: int = 128,
    streams: int = 16,
    send_buffer_bytes: int | None = None,
    recv_buffer_bytes: int | None = None,
    largest_message_bytes: int = LARGEST_MESSAGE_BYTES,
    peer_silence_s: float = 60.0,
    failover_ms: float | None = None,
    accept_from: str | Iterable[str] | None = None,
    keys: str | os.PathLike[str] | None = None,
    insecure: bool = False,
) -> Opening[Listener]:
    """Listens on addresses of this machine for peers that open associations.

    `addresses` are `ADDRESS` or `ADDRESS:PORT` (`[ADDRESS]:PORT` for IPv6) with the UDP port, 9899 by default. Port 0
    selects a free port, the same for all addresses if there is one. `0.0.0.0` and `[::]` stand for every usable address
    of their IP version. By default it listens on every address that `anabranch paths` calls usable, or on loopback if
    there is none, and follows the interfaces as they come and go. `backlog` associations may wait to be accepted;
    further ones are aborted.

    `accept_from` are addresses or networks, such as `192.0.2.0/24`, that peers may open associations from. By default
    every peer may. Packets from elsewhere get no answer. Further addresses of an accepted peer need not be named. The
    filter does not authenticate peers.

    Associations are encrypted. Only peers whose keys are in the `authorized_keys` of `keys`, a folder as for `connect`,
    are accepted. Keys that are added or removed take effect within two seconds. If `insecure` is set, packets are not
    protected, and `accept_from` alone decides which peers may connect.

    The other arguments are those of `connect`, and apply to all accepted associations.

    When it is entered or awaited, raises `ListenError`, for example if another program uses the port, `ArgumentError`,
    and `anabranch.errors.SchemeError`.

        async with anabranch.listen(["192.0.2.1", "198.51.100.1"]) as listener:
            async for association in listener:
                asyncio.create_task(serve(association))
    """

    async def open_it() -> Listener:
        wanted = [addresses] if isinstance(addresses, str) else list(addresses or [])
        settings = Settings(
            scheme=scheme,
            streams=streams,
            send_buffer_bytes=send_buffer_bytes,
            recv_buffer_bytes=recv_buffer_bytes,
            peer_silence_s=peer_silence_s,
            failover_ms=failover_ms,
            largest_message_bytes=largest_message_bytes,
            keys=keys,
            insecure=insecure,
        )
        sources = [accept_from] if isinstance(accept_from, str) else accept_from
        networks = None if sources is None else list(sources)
        waker = Waker.of_running_loop()
        port, waiting = whole("sctp_port", sctp_port), whole("backlog", backlog)
        native = _native.listen(wanted, settings, port, waiting, networks)
        return Listener(native, waker, settings.largest_message_bytes)

    return Opening(open_it)
