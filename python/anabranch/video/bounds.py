"""Bounds of values from files and users, so that no clip takes all memory, disk or time."""

from __future__ import annotations

# Macroblocks of the encoder are 16 by 16. libvmaf halves a frame four times and needs pixels at the end.
MIN_SIDE_PIXELS = 32
# A side that is longer is refused before the product is computed.
MAX_SIDE_PIXELS = 4096
MAX_FRAME_PIXELS = 1920 * 1088
# Maximum size of frames of a user's file that is scaled while it is read.
MAX_SOURCE_PIXELS = 8192 * 4352
# About an hour at 30 frames a second.
MAX_FRAMES = 108_000
# Maximum size of the raw frames of one clip. An evaluation has three such files at a time.
MAX_RAW_BYTES = 1 << 32
MAX_RATE_PER_S = 1000
MAX_DEADLINE_MS = 3_600_000.0
# A coded frame is never much larger than the raw one.
MAX_BITSTREAM_BYTES = 1 << 30
MAX_PACKETS = 10_000_000
# The length of a DATA chunk has 16 bits.
MAX_PAYLOAD_BYTES = 65_000
# Maximum number of runs of one evaluation.
MAX_RUNS = 256

# A call of ffmpeg that takes longer is stopped. VMAF, its slowest filter, takes 0.03 s for a million pixels on one
# core. The limit allows for machines that are thirty times slower.
_START_LIMIT_S = 120.0
_LIMIT_S_PER_MEGAPIXEL = 1.0
# Bound for a user's file, whose number of frames is not known before it is read.
READ_LIMIT_S = 1800.0


def time_limit_s(frame_pixels: int, frames: int) -> float:
    """Returns the time limit of an ffmpeg call on this number of frames, in seconds."""
    return _START_LIMIT_S + _LIMIT_S_PER_MEGAPIXEL * frame_pixels * frames / 1e6


# A clip of one frame an hour would occupy a player for years.
MAX_DURATION_S = 86_400
