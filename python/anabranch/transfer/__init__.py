"""Associations over real UDP sockets, for asyncio.

`connect` opens an association with a peer, `listen` waits for peers:

    async with anabranch.listen(["127.0.0.1:9899", "127.0.0.2:9899"]) as listener:
        async with anabranch.connect(listener.addresses, local=["127.0.0.3", "127.0.0.4"]) as association:
            await association.send(b"over two paths")

Messages are encrypted, and both sides authenticate with the keys that `anabranch keys` manages.
"""

from __future__ import annotations

from anabranch.transfer.association import Association
from anabranch.transfer.errors import (
    ArgumentError,
    AssociationClosedError,
    AssociationLostError,
    AssociationRestartedError,
    ConnectError,
    ConnectRefusedError,
    ConnectTimeoutError,
    ListenError,
    LostReason,
    MessageSizeError,
    TransferError,
)
from anabranch.transfer.listening import Listener, listen
from anabranch.transfer.opening import DEFAULT_PORT, Opening, connect
from anabranch.transfer.snapshots import (
    EndpointStatistics,
    Event,
    EventKind,
    Message,
    PathSnapshot,
    PathState,
    Statistics,
)

__all__ = [
    "DEFAULT_PORT",
    "ArgumentError",
    "Association",
    "AssociationClosedError",
    "AssociationLostError",
    "AssociationRestartedError",
    "ConnectError",
    "ConnectRefusedError",
    "ConnectTimeoutError",
    "EndpointStatistics",
    "Event",
    "EventKind",
    "ListenError",
    "Listener",
    "LostReason",
    "Message",
    "MessageSizeError",
    "Opening",
    "PathSnapshot",
    "PathState",
    "Statistics",
    "TransferError",
    "connect",
    "listen",
]
