"""Maximum goodput that links and receive buffer admit to an ordered stream with retransmissions.

Goodput counts user data and chunk headers, 1468 bytes in a packet of 1500. The bound is the smallest of three:

* Capacity: the paths' rates without cross traffic.
* The receive buffer of N packets without losses. A packet on path i occupies it for h_i, from its sending to the
  arrival of its acknowledgement: the path's delay, the time to send it, and the smallest delay back of any path. Rates
  x_i below the paths' own with Σ x_i h_i ≤ N have the largest sum if paths with the smallest h_i are filled first.
* The receive buffer with losses, even if the sender detected every loss after one round trip. A packet that is sent K
  times occupies the buffer for K round trips and blocks later packets. With A_k the time at which packet k is released
  in order, A_k = max(A_(k-1), A_(k-N) + K_k), whose rate is found by simulation. K - 1 is geometric. First
  transmissions may use one path and retransmissions another, and the best pair counts.

The bound does not hold for schemes that send redundancy before a loss, or more than the receiver's window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from studies.bounds.points import ACCESS_MS, FULL_PACKET_BITS, LimitPoint, PointPath

CHUNK_BYTES = 1468
PACKET_BYTES = 1500
USER_BYTES = 1452

GOODPUT_TO_BOUND = CHUNK_BYTES / USER_BYTES
"""Goodput under profile `rfc9260` counts user bytes, bounds count chunks."""

_SACK_MS = 0.05
"""Minimum time of a SACK through access links and bottleneck."""

_PACKETS = 1_000_000
_SEED = 20_260


@dataclass(frozen=True, slots=True)
class Bound:
    """Rates in kbit/s: the capacity of the links, the bound, and the bound of each path alone."""

    capacity_kbps: float
    kbps: float
    alone_kbps: tuple[float, ...]


def bound_of(point: LimitPoint) -> Bound:
    """Returns the bounds of a point."""
    places = point.buffer_bytes // CHUNK_BYTES
    back_ms = min(path.delay_ms for path in point.paths)
    return Bound(
        capacity_kbps=sum(_goodput_kbps(path) for path in point.paths),
        kbps=_bound_kbps(point.paths, places, back_ms),
        alone_kbps=tuple(_bound_kbps((path,), places, path.delay_ms) for path in point.paths),
    )


def _bound_kbps(paths: tuple[PointPath, ...], places: int, back_ms: float) -> float:
    lossless = _lossless_kbps(paths, places, back_ms)
    with_losses = 0.0
    # The quickest and the least lossy first: they need no simulation if they reach the bound without losses.
    for first in sorted(paths, key=lambda path: (path.loss, _held_ms(path, back_ms))):
        for again in sorted(paths, key=lambda path: path.loss):
            if with_losses >= lossless:
                break
            rate = _window_rate(places, first.loss, again.loss)
            with_losses = max(with_losses, rate * CHUNK_BYTES * 8 / _held_ms(first, back_ms))
    return min(lossless, with_losses)


def _lossless_kbps(paths: tuple[PointPath, ...], places: int, back_ms: float) -> float:
    """Returns the bound of capacity and buffer without losses."""
    left = float(places)
    reached_kbps = 0.0
    for path in sorted(paths, key=lambda path: _held_ms(path, back_ms)):
        held_ms = _held_ms(path, back_ms)
        rate = min(_goodput_kbps(path), left / held_ms * CHUNK_BYTES * 8)
        reached_kbps += rate
        left -= rate / (CHUNK_BYTES * 8) * held_ms
    return reached_kbps


def _goodput_kbps(path: PointPath) -> float:
    return path.free_kbps * CHUNK_BYTES / PACKET_BYTES


def _held_ms(path: PointPath, back_ms: float) -> float:
    return path.delay_ms + back_ms + FULL_PACKET_BITS / path.rate_kbps + ACCESS_MS + _SACK_MS


@cache
def _window_rate(places: int, first_loss: float, again_loss: float) -> float:
    """Returns the packets that a buffer with this number of places releases in order in a round trip."""
    if places < 1:
        return 0.0
    if first_loss == 0:
        return float(places)
    random = np.random.Generator(np.random.PCG64(_SEED))
    sent = np.ones(_PACKETS)
    lost = random.random(_PACKETS) < first_loss
    sent[lost] += random.geometric(1 - again_loss, int(lost.sum()))
    whole = _PACKETS // places * places
    window = np.zeros(places)
    # A window at a time: each packet waits for the one a window before it, and for the one before it.
    for held in sent[:whole].reshape(-1, places):
        window = np.maximum.accumulate(np.maximum(window + held, window[-1]))
    return whole / float(window[-1])
