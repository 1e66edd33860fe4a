"""Settings of associations, as the native module reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from anabranch.transfer.checking import real, real_or_none, whole, whole_or_none


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings common to `connect` and `listen`. The native module checks the values."""

    scheme: str
    streams: int
    send_buffer_bytes: int | None
    recv_buffer_bytes: int | None
    peer_silence_s: float
    failover_ms: float | None
    largest_message_bytes: int
    keys: str | os.PathLike[str] | None
    insecure: bool

    def __post_init__(self) -> None:
        """Converts numbers of other types, such as NumPy's, to Python's."""
        for name in ("streams", "largest_message_bytes"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        for name in ("send_buffer_bytes", "recv_buffer_bytes"):
            object.__setattr__(self, name, whole_or_none(name, getattr(self, name)))
        object.__setattr__(self, "peer_silence_s", real("peer_silence_s", self.peer_silence_s))
        object.__setattr__(self, "failover_ms", real_or_none("failover_ms", self.failover_ms))
