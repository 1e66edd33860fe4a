"""Bounds of what a file or a user may ask for, so that no clip takes all memory, disk or time."""

from __future__ import annotations

# The encoder's macroblocks are 16 by 16; libvmaf halves a frame four times and needs pixels at the end.
LEAST_SIDE_PIXELS = 32
# Larger than 4K in either direction is refused before the product is computed.
MOST_SIDE_PIXELS = 4096
MOST_FRAME_PIXELS = 1920 * 1088
# Of a user's file that is scaled as it is read.
MOST_SOURCE_PIXELS = 8192 * 4352
# About an hour at 30 frames a second.
MOST_FRAMES = 108_000
# Raw frames of one clip. An evaluation has three such files at a time.
MOST_RAW_BYTES = 1 << 32
MOST_RATE_PER_S = 1000
MOST_DEADLINE_MS = 3_600_000.0
# A coded frame is never much larger than the raw one.
MOST_BITSTREAM_BYTES = 1 << 30
MOST_PACKETS = 10_000_000
# A chunk of SCTP has a length of 16 bits.
MOST_PAYLOAD_BYTES = 65_000
# Runs of one evaluation.
MOST_RUNS = 256

# A call of ffmpeg that takes longer is stopped. VMAF, its slowest work, takes 0.03 s for a million pixels on one core;
# the limit leaves room for machines that are thirty times slower.
_START_LIMIT_S = 120.0
_LIMIT_S_PER_MEGAPIXEL = 1.0
# Reading a user's file, whose size is not known before.
READ_LIMIT_S = 1800.0


def time_limit_s(frame_pixels: int, frames: int) -> float:
    """How long ffmpeg may work on so many frames."""
    return _START_LIMIT_S + _LIMIT_S_PER_MEGAPIXEL * frame_pixels * frames / 1e6


# A clip of one frame an hour would keep a player for years.
MOST_DURATION_S = 86_400
