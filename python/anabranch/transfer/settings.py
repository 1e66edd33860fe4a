"""Settings of associations, as the native module reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What `connect` and `listen` have in common. The native module checks the values."""

    scheme: str
    streams: int
    send_buffer_bytes: int | None
    recv_buffer_bytes: int | None
    peer_silence_s: float
    failover_ms: float | None
    largest_message_bytes: int
    keys: str | os.PathLike[str] | None
    insecure: bool
