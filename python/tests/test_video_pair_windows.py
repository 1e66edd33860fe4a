"""Metrics of pairs of frames, which have to equal those of whole clips."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from anabranch.video import CodedClip
from anabranch.video.format import QCIF
from anabranch.video.metrics import METRICS, Quality, quality
from anabranch.video.pair_windows import PairMetrics, _passes, _stretches, _Window
from anabranch.video.raw import RawFrames
from anabranch.video.rebuild import rebuild


def random_run(frames: int, seed: int) -> list[int | None]:
    """Returns the frames that a viewer sees if stretches of frames are lost, sometimes the first ones."""
    chance = random.Random(seed)
    shown: list[int | None] = []
    last: int | None = None
    bad = seed % 2 == 0
    for frame in range(frames):
        if chance.random() < 0.2:
            bad = not bad
        last = last if bad else frame
        shown.append(last)
    return shown


@pytest.fixture(scope="module")
def decoded(decoded_clip: Path) -> RawFrames:
    return RawFrames.open(decoded_clip, QCIF)


def equal(one: Quality, other: Quality) -> bool:
    return all(np.array_equal(one.frames[metric], other.frames[metric]) for metric in METRICS)


def test_figures_are_those_of_whole_clips_frame_by_frame(
    coded_clip: CodedClip, decoded: RawFrames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [random_run(56, seed) for seed in range(6)]
    runs += [[0] * 56, [None] * 55 + [55], list(range(56))]
    monkeypatch.setattr("anabranch.video.pair_windows._MAX_PASS_FRAMES", 25)
    pairs = PairMetrics(coded_clip.source, decoded)
    pairs.compute(runs)
    assert pairs.pairs_to_compute(runs) == 0
    for number, run in enumerate(runs):
        whole = quality(coded_clip.source, rebuild(decoded, run, tmp_path / f"{number}.yuv"))
        assert equal(pairs.quality(run), whole), f"run {number}"


def test_a_pair_is_computed_once(coded_clip: CodedClip, decoded: RawFrames, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = PairMetrics(coded_clip.source, decoded)
    run = random_run(56, 4)
    assert pairs.pairs_to_compute([run, run]) == sum(frame != due for due, frame in enumerate(run))
    first = pairs.quality(run)

    def computed(*_: object) -> None:
        raise AssertionError("it was computed again")

    monkeypatch.setattr("anabranch.video.pair_windows.quality", computed)
    assert equal(pairs.quality(run), first)


def test_progress_ends_with_all_frames(
    coded_clip: CodedClip, decoded: RawFrames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.video.pair_windows._MAX_PASS_FRAMES", 20)
    told: list[tuple[int, int]] = []
    runs = [[0] * 56, random_run(56, 1)]
    PairMetrics(coded_clip.source, decoded).compute(runs, lambda done, total: told.append((done, total)), workers=1)
    assert len(told) > 1
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_cached_pairs_apply_to_the_same_clips_only(coded_clip: CodedClip, decoded: RawFrames, tmp_path: Path) -> None:
    run = random_run(56, 2)
    pairs = PairMetrics(coded_clip.source, decoded)
    expected = pairs.quality(run)
    pairs.save(tmp_path / "pairs.npz", "these clips")
    other = PairMetrics(coded_clip.source, decoded)
    other.load(tmp_path / "pairs.npz", "other clips")
    assert other.pairs_to_compute([run]) > 0
    other.load(tmp_path / "pairs.npz", "these clips")
    assert other.pairs_to_compute([run]) == 0
    assert equal(other.quality(run), expected)


def test_a_damaged_file_of_pairs_is_as_none(coded_clip: CodedClip, decoded: RawFrames, tmp_path: Path) -> None:
    pairs = PairMetrics(coded_clip.source, decoded)
    pairs.load(tmp_path / "none.npz", "key")
    run = random_run(56, 2)
    pairs.quality(run)
    pairs.save(tmp_path / "pairs.npz", "key")
    whole = (tmp_path / "pairs.npz").read_bytes()
    for damaged in (b"", b"PK\x03\x04", whole[:200], whole[: len(whole) // 2]):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        other = PairMetrics.__new__(PairMetrics)
        other._known = {}
        other.load(tmp_path / "damaged.npz", "key")
        assert other._known == {}


def test_stretches_have_frames_that_follow_one_another() -> None:
    found = list(_stretches([(1, 0), (2, 0), (5, 4), (6, 4), (7, 4), (9, 8)], most_frames=2))
    assert found == [[(1, 0), (2, 0)], [(5, 4), (6, 4)], [(7, 4)], [(9, 8)]]
    assert list(_stretches([], 2)) == []


def test_a_window_is_never_divided() -> None:
    windows = [_Window([0] * frames, [0] * frames, []) for frames in (3, 3, 9, 1, 1)]
    assert [[len(window.due) for window in each] for each in _passes(windows, 6)] == [[3, 3], [9], [1, 1]]
