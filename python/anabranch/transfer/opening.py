"""`connect`, which opens an association."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

from anabranch import _native
from anabranch.transfer.association import Association
from anabranch.transfer.checking import real, whole
from anabranch.transfer.errors import ArgumentError
from anabranch.transfer.settings import Settings
from anabranch.transfer.waker import Waker

T = TypeVar("T", bound=AbstractAsyncContextManager[Any])

DEFAULT_PORT = 9899
"""Default UDP port of SCTP over UDP (RFC 6951 section 4), and default SCTP port inside."""

LARGEST_MESSAGE_BYTES = 64 << 20


class Opening(Generic[T]):
    """Connection or listener to be opened: `async with` opens and closes it, `await` only opens it."""

    __slots__ = ("_open", "_opened")

    def __init__(self, open_it: Callable[[], Awaitable[T]]) -> None:
        self._open = open_it
        self._opened: T | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._open().__await__()

    async def __aenter__(self) -> T:
        self._opened = await self._open()
        await self._opened.__aenter__()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._opened is not None
        return await self._opened.__aexit__(kind, error, trace)


def connect(
    remote: str | Iterable[str | tuple[str, str]],
    *,
    local: str | Iterable[str] | None = None,
    scheme: str = "braid",
    sctp_port: int = DEFAULT_PORT,
    connect_timeout_s: float = 15.0,
    streams: int = 16,
    send_buffer_bytes: int | None = None,
    recv_buffer_bytes: int | None = None,
    largest_message_bytes: int = LARGEST_MESSAGE_BYTES,
    peer_silence_s: float = 60.0,
    failover_ms: float | None = None,
    keys: str | os.PathLike[str] | None = None,
    insecure: bool = False,
) -> Opening[Association]:
    """Opens an association with a peer over every available path, or over the named ones.

    `remote` is the peer: `HOST` or `HOST:PORT`, where `HOST` is a name or an address (`[ADDRESS]:PORT` for IPv6) and
    `PORT` its UDP port, 9899 by default. Several entries are addresses of the same peer, or of relays that lead to it.
    A single name stands for all of its addresses. If several names are given, each means its first address. Instead of
    names, `remote` may contain pairs `(local, remote)`, one for each path.

    `local` are IP addresses of this machine, or interfaces. By default paths begin at every address that `anabranch
    paths` calls usable and that has a route to the peer, and follow the interfaces as they come and go. The book's
    chapter "Paths" says how local addresses are paired with the peer's; the command line does the same. The first path
    is the primary one.

    `scheme` is one of those that `anabranch schemes` lists. `sctp_port` is the peer's, inside UDP. The buffers are
    sizes in bytes of user data. By default each begins with 2 MiB and grows up to 16 MiB as the paths carry more; a
    given size is fixed. `largest_message_bytes` bounds a message that `recv` reassembles because it is larger than the
    receive buffer. The association is lost when the peer sends nothing for `peer_silence_s` although something was due.
    A path gets no new data when it has acknowledged nothing for `failover_ms` (default: after its time-outs).

    The association is encrypted, and both sides authenticate. `keys` is a folder with this user's key and the keys of
    known hosts, as `anabranch keys` manages it; by default it is the folder that the commands use. The peer has to
    prove the key that it had before. If no key is known under the first name of `remote`, the peer's key is trusted and
    stored (`Association.peer_key` returns it). If `insecure` is set, packets are not protected and neither side
    authenticates; the peer must set it too.

    When it is entered or awaited, raises `ConnectTimeoutError` after `connect_timeout_s`, `ConnectRefusedError`,
    `ConnectError`, `ArgumentError`, and `anabranch.errors.SchemeError`.

        async with anabranch.connect("server.example", scheme="cmt") as association:
            await association.send(b"over every path")
            reply = await association.recv()

        association = await anabranch.connect(["192.0.2.1:9899", "198.51.100.1:9899"], local=["wlan0", "eth0"])
    """

    async def open_it() -> Association:
        remotes, locals_ = _ends(remote, local)
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
        waker = Waker.of_running_loop()
        port, timeout_s = whole("sctp_port", sctp_port), real("connect_timeout_s", connect_timeout_s)
        operation = _native.connect(remotes, locals_, settings, port, timeout_s)
        return Association(await waker.outcome(operation), waker, settings.largest_message_bytes)

    return Opening(open_it)


def _ends(
    remote: str | Iterable[str | tuple[str, str]], local: str | Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """Returns the peer's addresses, and those of this machine."""
    given = [remote] if isinstance(remote, str) else list(remote)
    names = [end for end in given if isinstance(end, str)]
    pairs = [end for end in given if not isinstance(end, str)]
    if not given:
        raise ArgumentError("remote: name at least one address of the peer, such as 192.0.2.1:9899")
    if not pairs:
        return names, [local] if isinstance(local, str) else list(local or [])
    if names or local is not None:
        raise ArgumentError("remote: give (local, remote) pairs for all paths and no local addresses, or none")
    if any(len(pair) != 2 for pair in pairs):
        raise ArgumentError("remote: a path is a pair of a local and a remote address")
    return [end for _, end in pairs], [start for start, _ in pairs]
