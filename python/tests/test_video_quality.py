"""PSNR, SSIM, VMAF and VQM against independent computations, and in cases with a known value."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.ndimage import gaussian_filter

from anabranch.errors import VideoError
from anabranch.video import CodedClip, ReadOptions, vqm
from anabranch.video.clips import make_clip
from anabranch.video.format import QCIF, FrameFormat
from anabranch.video.metrics import IDENTICAL_PSNR_DB, METRICS, quality
from anabranch.video.raw import RawFrames, Samples, write_frames

Values = npt.NDArray[np.float64]


def psnr_db(reference: Samples, shown: Samples) -> Values:
    error = ((reference.astype(np.float64) - shown) ** 2).mean(axis=(1, 2))
    return 10 * np.log10(255**2 / np.maximum(error, 1e-12))


def ssim(reference: Samples, shown: Samples) -> Values:
    """Computes Wang et al. (2004) with windows of 8 by 8, equal weights, a window at each fourth row and column."""

    def windows(luma: Samples) -> Values:
        seen = np.lib.stride_tricks.sliding_window_view(luma.astype(np.float64), (8, 8), axis=(1, 2))
        return seen[:, ::4, ::4].reshape(len(luma), -1, 64)

    x, y = windows(reference), windows(shown)
    mean_x, mean_y = x.mean(axis=2), y.mean(axis=2)
    covariance = ((x - mean_x[..., None]) * (y - mean_y[..., None])).sum(axis=2) / 63
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    luminance = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    structure = (2 * covariance + c2) / (x.var(axis=2, ddof=1) + y.var(axis=2, ddof=1) + c2)
    return (luminance * structure).mean(axis=1)


def uniform(grey: int, count: int = 1, height: int = 16, width: int = 24) -> Samples:
    return np.full((count, height, width), grey, np.uint8)


def blurred(luma: Samples, sigma: float) -> Samples:
    return np.stack([gaussian_filter(frame.astype(np.float64), sigma) for frame in luma]).round().astype(np.uint8)


def written(path: Path, frame: FrameFormat, luma: Samples) -> RawFrames:
    """Writes a clip with this luma, and grey chroma."""
    chroma = bytes([128]) * (frame.frame_bytes - frame.luma_bytes)
    return write_frames(path, frame, (plane.tobytes() + chroma for plane in luma), str(path))


@pytest.fixture(scope="module")
def shown(coded_clip: CodedClip, decoded_clip: Path, tmp_path_factory: pytest.TempPathFactory) -> RawFrames:
    """Decoded clip with a frame that is repeated, and one that is identical to its source."""
    samples = RawFrames.open(decoded_clip, QCIF).samples().copy()
    samples[20:26] = samples[19]
    samples[40] = coded_clip.source.samples()[40]
    path = tmp_path_factory.mktemp("shown") / "shown.yuv"
    return write_frames(path, QCIF, (row.tobytes() for row in samples), "shown")


def test_psnr_and_ssim_agree_with_computations_of_our_own(coded_clip: CodedClip, shown: RawFrames) -> None:
    found = quality(coded_clip.source, shown)
    reference, luma = coded_clip.source.luma(), shown.luma()
    others = [frame for frame in range(56) if frame != 40]
    assert np.abs(found.frames["psnr_db"] - psnr_db(reference, luma))[others].max() < 0.01
    assert np.abs(found.frames["ssim"] - ssim(reference, luma)).max() < 1e-4


@pytest.mark.parametrize(("size", "noise"), [((64, 48), 3), ((130, 66), 20), ((352, 288), 60)])
def test_psnr_and_ssim_agree_on_other_clips(tmp_path: Path, size: tuple[int, int], noise: int) -> None:
    reference = make_clip("synthetic", tmp_path / "reference.yuv", ReadOptions(frames=4, size=size))
    random = np.random.default_rng(noise)
    luma = reference.luma().astype(np.int64)
    noisy = (luma + random.integers(-noise, noise + 1, luma.shape)).clip(0, 255).astype(np.uint8)
    found = quality(reference, written(tmp_path / "noisy.yuv", reference.format, noisy))
    assert np.abs(found.frames["psnr_db"] - psnr_db(reference.luma(), noisy)).max() < 0.01
    assert np.abs(found.frames["ssim"] - ssim(reference.luma(), noisy)).max() < 1e-4


def test_all_metrics_are_of_each_frame_and_as_mean(coded_clip: CodedClip, shown: RawFrames) -> None:
    found = quality(coded_clip.source, shown)
    for metric in METRICS:
        assert len(found.frames[metric]) == 56
        assert found.mean(metric) == pytest.approx(found.frames[metric].mean())
        better = np.argmin if metric == "vqm" else np.argmax
        assert better(found.frames[metric]) == 40
    still, moving = slice(22, 26), slice(27, 39)
    assert found.frames["vmaf"][still].max() < found.frames["vmaf"][moving].min()


def test_identical_frames_have_the_largest_psnr_that_there_is(coded_clip: CodedClip, shown: RawFrames) -> None:
    found = quality(coded_clip.source, shown)
    assert found.frames["psnr_db"][40] == IDENTICAL_PSNR_DB == 100
    assert found.frames["ssim"][40] == 1
    assert found.frames["vqm"][40] == 0
    assert math.isfinite(found.mean("psnr_db"))


def test_clips_that_are_not_aligned_are_refused(coded_clip: CodedClip, tmp_path: Path) -> None:
    shorter = written(tmp_path / "short.yuv", QCIF, coded_clip.source.luma()[:10])
    with pytest.raises(VideoError, match=r"10 frames of 176x144 cannot be compared with 56 of 176x144"):
        quality(coded_clip.source, shorter)


def test_the_smallest_clip_has_all_metrics(tmp_path: Path) -> None:
    smallest = make_clip("synthetic", tmp_path / "clip.yuv", ReadOptions(frames=2, size=(32, 32), rate=Fraction(1)))
    assert quality(smallest, smallest).mean("vmaf") > 90


def test_vqm_of_identical_frames_is_zero() -> None:
    luma = np.random.default_rng(1).integers(0, 256, (3, 16, 24)).astype(np.uint8)
    assert vqm.frame_vqm(luma, luma).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("first", "second"), [(128, 130), (50, 200), (0, 255), (255, 0), (0, 1)])
def test_vqm_of_two_uniform_frames_follows_from_their_dc(first: int, second: int) -> None:
    def noticeable(grey: int) -> float:
        return (8 * grey / 1024) ** 0.65 / 8

    # One of 64 coefficients differs.
    difference = abs(noticeable(first) - noticeable(second))
    expected = 1000 * difference / 64 + 0.005 * 1000 * difference
    assert vqm.frame_vqm(uniform(first), uniform(second)) == pytest.approx(expected)


@pytest.mark.parametrize(("row", "column", "step"), [(0, 1, 16), (1, 0, 16), (3, 3, 27), (7, 7, 83)])
def test_vqm_of_one_spatial_frequency_follows_from_its_amplitude(row: int, column: int, step: int) -> None:
    def cosine(frequency: int) -> Values:
        return np.cos((2 * np.arange(8) + 1) * frequency * np.pi / 16)

    wave = np.outer(cosine(row), cosine(column))
    block = (128 + 120 * wave).round().astype(np.uint8)
    exact = block.astype(np.float64) - 128
    scale = [math.sqrt(1 / 8) if frequency == 0 else 0.5 for frequency in (row, column)]
    coefficient = float((exact * wave).sum() * scale[0] * scale[1])
    contrast = coefficient / 1024 / step
    found = vqm.frame_vqm(uniform(128, height=8, width=8), block[None])
    # Rounding to whole samples spreads a little to the other coefficients.
    assert found == pytest.approx(1000 * contrast / 64 + 5 * contrast, rel=0.05)


def slow_vqm(reference: Samples, shown: Samples) -> float:
    """Computes the definition, term by term, for one frame."""
    steps = """
        8 16 19 22 26 27 29 34  16 16 22 24 27 29 34 37  19 22 26 27 29 34 34 38  22 22 26 27 29 34 37 40
        22 26 27 29 32 35 40 48  26 27 29 32 35 40 48 58  26 27 29 34 38 46 56 69  27 29 35 38 46 56 69 83"""
    quantisation = np.array([int(step) for step in steps.split()]).reshape(8, 8)

    def noticeable(block: Samples) -> Values:
        found = np.zeros((8, 8))
        place = (2 * np.arange(8) + 1) * np.pi / 16
        for row in range(8):
            for column in range(8):
                wave = np.outer(np.cos(row * place), np.cos(column * place))
                scale = (0.5 if row else math.sqrt(1 / 8)) * (0.5 if column else math.sqrt(1 / 8))
                found[row, column] = scale * (block * wave).sum()
        return found / found[0, 0] * (found[0, 0] / 1024) ** 0.65 / quantisation

    height, width = reference.shape
    corners = [(top, left) for top in range(0, height, 8) for left in range(0, width, 8)]
    blocks = [(reference[y : y + 8, x : x + 8], shown[y : y + 8, x : x + 8]) for y, x in corners]
    differences = np.abs([noticeable(first) - noticeable(second) for first, second in blocks])
    return float(1000 * differences.mean() + 0.005 * 1000 * differences.max())


def test_vqm_is_that_of_the_definition_term_by_term() -> None:
    random = np.random.default_rng(3)
    reference = random.integers(1, 256, (2, 16, 24)).astype(np.uint8)
    shown = random.integers(1, 256, (2, 16, 24)).astype(np.uint8)
    expected = [slow_vqm(first, second) for first, second in zip(reference, shown, strict=True)]
    assert vqm.frame_vqm(reference, shown) == pytest.approx(expected, rel=1e-9)
    # Each frequency alone, so that the largest difference hides none.
    base = np.outer(np.arange(8), np.arange(8)).astype(np.uint8) + 100
    for row in range(8):
        for column in range(8):
            wave = np.outer(*(np.cos((2 * np.arange(8) + 1) * each * np.pi / 16) for each in (row, column)))
            other = (base + 60 * wave).astype(np.uint8)
            assert vqm.frame_vqm(base[None], other[None])[0] == pytest.approx(slow_vqm(base, other), rel=1e-9)


def test_a_difference_in_one_block_of_many_shows_in_the_maximum() -> None:
    reference = uniform(128, height=64, width=64)
    spot = reference.copy()
    spot[0, :8, :8] = 130
    difference = ((8 * 130 / 1024) ** 0.65 - 1) / 8
    assert vqm.frame_vqm(reference, spot) == pytest.approx(1000 * difference / 64 / 64 + 5 * difference)


def test_vqm_weighs_coarse_differences_more_than_fine_ones() -> None:
    columns = np.arange(64)
    coarse = uniform(128, height=64, width=64) + (10 * (columns // 8 % 2)).astype(np.uint8)
    fine = uniform(128, height=64, width=64) + (10 * (columns % 2)).astype(np.uint8)
    reference = uniform(133, height=64, width=64)
    assert vqm.frame_vqm(reference, coarse)[0] > vqm.frame_vqm(reference, fine)[0]


def test_vqm_grows_with_blur_and_with_noise(coded_clip: CodedClip) -> None:
    luma = np.asarray(coded_clip.source.luma()[:5])
    by_blur = [vqm.frame_vqm(luma, blurred(luma, sigma)).mean() for sigma in (0.0, 0.4, 0.7, 1, 2, 4)]
    assert by_blur == sorted(by_blur)
    assert by_blur[0] == 0 < by_blur[1]
    noise = np.random.default_rng(1).normal(0, 1, luma.shape)
    by_noise = [
        vqm.frame_vqm(luma, (luma + each * noise).clip(0, 255).astype(np.uint8)).mean() for each in (1, 3, 9, 27)
    ]
    assert by_noise == sorted(by_noise)


def test_vqm_does_not_depend_on_how_frames_are_batched(coded_clip: CodedClip, monkeypatch: pytest.MonkeyPatch) -> None:
    reference, other = coded_clip.source.luma(), np.asarray(coded_clip.source.luma())[::-1]
    whole = vqm.frame_vqm(reference, other)
    monkeypatch.setattr(vqm, "_BATCH_SAMPLES", 1)
    assert vqm.frame_vqm(reference, other) == pytest.approx(whole, rel=1e-12)


def test_sides_that_are_no_multiple_of_eight_are_continued_by_their_edge() -> None:
    assert vqm.frame_vqm(uniform(50, 1, 34, 38), uniform(60, 1, 34, 38)) == pytest.approx(
        vqm.frame_vqm(uniform(50), uniform(60))
    )
