"""Errors of associations over real sockets.

All of them derive from `anabranch.errors.TransferError`. Messages name the peer and the remedy.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from anabranch.errors import TransferError

__all__ = [
    "ArgumentError",
    "AssociationClosedError",
    "AssociationLostError",
    "AssociationRestartedError",
    "ConnectError",
    "ConnectRefusedError",
    "ConnectTimeoutError",
    "ListenError",
    "LostReason",
    "MessageSizeError",
    "TransferError",
]

LostReason: TypeAlias = Literal[
    "aborted-by-peer", "peer-unreachable", "protocol", "undelivered", "restarted", "endpoint-gone"
]
"""Reason for the loss of an association.

- `aborted-by-peer`: the peer aborted it, or its program crashed or was closed.
- `peer-unreachable`: the peer stopped answering on every path.
- `protocol`: the peer violated the protocol.
- `undelivered`: the peer shut down first, before it received all accepted messages.
- `restarted`: the peer restarted while this side was shutting down.
- `endpoint-gone`: the sockets were closed.
"""


class ArgumentError(TransferError, ValueError):
    """An invalid argument: an address, a port, a path, the size of a buffer, an empty message."""


class ListenError(TransferError):
    """The addresses cannot be listened on, for example because another program uses the port."""


class ConnectError(TransferError):
    """An association could not be opened."""


class ConnectTimeoutError(ConnectError):
    """The peer did not answer on any path within `connect_timeout_s`."""


class ConnectRefusedError(ConnectError):
    """The peer answered with a refusal, or its port is closed."""


class AssociationClosedError(TransferError):
    """This side has ended the association, or the peer is shutting it down: it accepts no more messages."""


class AssociationLostError(TransferError):
    """The association ended without a graceful shutdown. Messages that were not acknowledged may be lost."""

    def __init__(self, message: str, reason: LostReason) -> None:
        super().__init__(message, reason)
        self.reason: LostReason = reason

    def __str__(self) -> str:
        return str(self.args[0])


class AssociationRestartedError(TransferError):
    """The peer has restarted: queued and unread messages are lost, and the association is established again.

    Raised once, between the last message of the peer's previous incarnation and the first one of the new incarnation.
    """


class MessageSizeError(TransferError):
    """The peer sent a message of more than `largest_message_bytes`. The association is aborted."""
