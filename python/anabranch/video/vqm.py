"""VQM, a video quality metric in the domain of the discrete cosine transform. Lower is better, 0 is identical.

The model is that of F. Xiao, "DCT-based Video Quality Evaluation", final project for EE392J, Stanford University,
winter 2000, which simplifies A. B. Watson's DVQ (Proc. SPIE 3299, 1998). MSU's tool, which CMT-QA's authors used, names
it as the source of its VQM. For each frame:

1. Luma is divided into blocks of 8 by 8, each of which is transformed (orthonormal DCT-II).
2. Coefficients are converted to local contrast: each is divided by the block's DC, times (DC / 1024) ** 0.65; 1024 is
   the DC of a block of the mean grey, 128.
3. Local contrast is converted to just noticeable differences by a matrix of spatial contrast sensitivity, which is the
   inverse of MPEG's default quantisation matrix for intra blocks.
4. The two frames are subtracted. VQM is 1000 times the mean of the absolute differences, plus 0.005 times 1000 times
   the largest of them.

This module follows the abstract and descriptions of the model. For video the model increases the sensitivities
to a power that depends on the frame rate. The power is not known here, so the static matrix serves for all frames. Like
PSNR and SSIM here, it uses luma only. So values compare schemes, and may differ from those of another tool.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.fft import dctn

from anabranch.video.raw import Samples

BLOCK = 8
# DC of a block whose samples all are 128, the mean of 8 bits.
MEAN_GREY_DC = 1024.0
# Exponent of contrast sensitivity over the mean luminance.
LUMINANCE_EXPONENT = 0.65
# Factor of mean and maximum that brings common values near 1.
STANDARDISATION = 1000.0
# Weight of the largest difference beside the mean.
MAXIMUM_WEIGHT = 0.005

# ISO/IEC 11172-2, 2.4.3.2: the default matrix for intra blocks.
_INTRA_QUANTISATION = (
    (8, 16, 19, 22, 26, 27, 29, 34),
    (16, 16, 22, 24, 27, 29, 34, 37),
    (19, 22, 26, 27, 29, 34, 34, 38),
    (22, 22, 26, 27, 29, 34, 37, 40),
    (22, 26, 27, 29, 32, 35, 40, 48),
    (26, 27, 29, 32, 35, 40, 48, 58),
    (26, 27, 29, 34, 38, 46, 56, 69),
    (27, 29, 35, 38, 46, 56, 69, 83),
)
SENSITIVITY = 1.0 / np.array(_INTRA_QUANTISATION, dtype=np.float64)

# Number of samples that are transformed at once. More are no faster, and take memory.
_BATCH_SAMPLES = 1 << 19

Noticeable = npt.NDArray[np.float64]


def frame_vqm(reference: Samples, shown: Samples) -> Noticeable:
    """Returns VQM of each frame, of luma as (frame, row, column). Sides that 8 does not divide are padded."""
    batch = max(_BATCH_SAMPLES // (reference.shape[1] * reference.shape[2]), 1)
    parts = [
        pooled(noticeable(reference[at : at + batch]), noticeable(shown[at : at + batch]))
        for at in range(0, len(reference), batch)
    ]
    return np.concatenate(parts)


def pooled(reference: Noticeable, shown: Noticeable) -> Noticeable:
    """Returns VQM of frames from their coefficients."""
    differences = np.abs(reference - shown)
    values: Noticeable = differences.mean(axis=1) + MAXIMUM_WEIGHT * differences.max(axis=1)
    return STANDARDISATION * values


def noticeable(luma: Samples) -> Noticeable:
    """Returns all coefficients in units of just noticeable differences, a row for each frame."""
    coefficients: Noticeable = dctn(_blocks(luma), axes=(-2, -1), norm="ortho", overwrite_x=True)
    # DC is 0 only if all samples are 0, and then all coefficients are 0.
    dc = np.maximum(coefficients[:, :1, :1], 1.0)
    coefficients *= (dc / MEAN_GREY_DC) ** LUMINANCE_EXPONENT / dc
    coefficients *= SENSITIVITY
    return coefficients.reshape(len(luma), -1)


def _blocks(luma: Samples) -> Noticeable:
    frames, height, width = luma.shape
    missing = ((0, 0), (0, -height % BLOCK), (0, -width % BLOCK))
    padded = np.pad(luma, missing, mode="edge") if any(after for _, after in missing) else luma
    rows, columns = padded.shape[1] // BLOCK, padded.shape[2] // BLOCK
    tiles = padded.reshape(frames, rows, BLOCK, columns, BLOCK).swapaxes(2, 3)
    return tiles.reshape(-1, BLOCK, BLOCK).astype(np.float64)
