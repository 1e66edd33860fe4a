"""Evaluation of runs: without loss, with total loss, and output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from video_support import arrivals_of, random_arrivals

from anabranch import video
from anabranch.errors import VideoError
from anabranch.video import CodedClip, Evaluation, RunArrivals, ffmpeg
from anabranch.video.evaluation import steps
from anabranch.video.fates import Fate
from anabranch.video.format import QCIF
from anabranch.video.metrics import METRICS, quality
from anabranch.video.outcome import NOTHING_DECODABLE, as_text, summary, write_outcome
from anabranch.video.raw import RawFrames
from anabranch.video.stills import Column, frames_that_differ, rgb, write_stills

DEADLINE_MS = 150.0


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        make()
    return str(refused.value)


@pytest.fixture(scope="module")
def arrivals(coded_clip: CodedClip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of arrivals: without loss, with increasing loss, and without arrivals."""
    folder = tmp_path_factory.mktemp("arrivals")
    frames, packets = coded_clip.frames, coded_clip.packets
    for name, loss in (("none", 0.0), ("some", 0.03), ("more", 0.1), ("most", 0.4), ("all", 1.0)):
        video.write_arrivals(folder / f"{name}.csv", random_arrivals(frames, packets, loss, seed=7))
    video.write_arrivals(folder / "late.csv", {key: at + 1000 for key, at in arrivals_of(frames, packets).items()})
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def evaluation(coded_clip: CodedClip, arrivals: Path, pictures: Path) -> Evaluation:
    runs = [RunArrivals(name, arrivals / f"{name}.csv") for name in ("none", "some", "more", "most", "all", "late")]
    return video.evaluate(coded_clip, runs, DEADLINE_MS, pictures=pictures)


def test_without_loss_a_run_has_exactly_the_quality_of_coding(
    coded_clip: CodedClip, decoded_clip: Path, evaluation: Evaluation
) -> None:
    run = evaluation.runs[0]
    decoded = quality(coded_clip.source, RawFrames.open(decoded_clip, QCIF))
    assert run.quality is not None
    for metric in METRICS:
        assert np.array_equal(run.quality.frames[metric], decoded.frames[metric])
    assert run.measures.decodable_ratio == 1


def test_quality_falls_as_loss_grows(evaluation: Evaluation) -> None:
    judged = [run.quality for run in evaluation.runs[:4]]
    means = {metric: [each.mean(metric) for each in judged if each is not None] for metric in METRICS}
    assert means["vqm"] == sorted(means["vqm"])
    for metric in ("psnr_db", "ssim", "vmaf"):
        assert means[metric] == sorted(means[metric], reverse=True)
    assert len(set(means["psnr_db"])) == 4


@pytest.mark.parametrize(("index", "fate"), [(4, Fate.LOST), (5, Fate.LATE)])
def test_no_decodable_frame_is_reported_without_quality(evaluation: Evaluation, index: int, fate: Fate) -> None:
    run = evaluation.runs[index]
    assert run.quality is None
    assert run.measures.count(fate) == 56
    figures = summary(evaluation)["runs"][run.label]
    assert figures["note"] == NOTHING_DECODABLE
    assert [figures[metric] for metric in METRICS] == [None] * 4
    assert figures["decodable_frame_ratio"] == 0


def test_decodable_frames_have_coding_quality_others_repeat_the_last(
    coded_clip: CodedClip, decoded_clip: Path, evaluation: Evaluation
) -> None:
    run = evaluation.runs[2]
    assert run.quality is not None
    decoded, source = RawFrames.open(decoded_clip, QCIF).luma(), coded_clip.source.luma()
    good = [each.frame.display for each in run.deliveries if each.fate is Fate.GOOD]
    psnr = run.quality.frames["psnr_db"]
    assert np.array_equal(psnr[good], evaluation.coding.frames["psnr_db"][good])
    place = next(frame for frame, shown in enumerate(run.shown) if shown not in (None, frame))
    error = np.mean((source[place].astype(float) - decoded[run.shown[place] or 0]) ** 2)
    assert psnr[place] == pytest.approx(10 * np.log10(255**2 / error), abs=1e-4)


def test_against_the_clip_as_sent_no_loss_is_no_difference(coded_clip: CodedClip, arrivals: Path) -> None:
    found = video.evaluate(coded_clip, [RunArrivals("none", arrivals / "none.csv")], DEADLINE_MS, against="sent")
    assert (found.coding.mean("psnr_db"), found.coding.mean("ssim"), found.coding.mean("vqm")) == (100, 1, 0)


def test_a_longer_deadline_makes_late_frames_good(coded_clip: CodedClip, arrivals: Path) -> None:
    found = video.evaluate(coded_clip, [RunArrivals("late", arrivals / "late.csv")], 1020.0)
    assert found.runs[0].measures.decodable_ratio == 1


def test_steps_are_counted(coded_clip: CodedClip, arrivals: Path) -> None:
    runs = [RunArrivals("a", arrivals / "none.csv"), RunArrivals("b", arrivals / "all.csv")]
    calls: list[int] = []
    video.evaluate(coded_clip, runs, DEADLINE_MS, step=lambda: calls.append(1))
    assert len(calls) == steps(runs) == 3


def test_the_table_of_frames_has_a_row_for_each_frame_of_each_run(evaluation: Evaluation, tmp_path: Path) -> None:
    write_outcome(evaluation, tmp_path)
    table = pq.read_table(tmp_path / "frames.parquet").to_pydict()
    assert len(table["run"]) == 6 * 56
    assert table["display"][:56] == list(range(56))
    assert set(table["fate"][:56]) == {"good"}
    assert set(table["fate"][4 * 56 : 5 * 56]) == {"lost"}
    assert table["psnr_db"][4 * 56] is None
    assert table["shown"][:56] == list(range(56))
    assert table["vmaf"][:56] == evaluation.coding.frames["vmaf"].tolist()


def test_the_summary_names_encoder_bitstream_and_counts(evaluation: Evaluation, tmp_path: Path) -> None:
    write_outcome(evaluation, tmp_path)
    read = json.loads((tmp_path / "summary.json").read_text())
    assert read["clip"]["bitstream_sha256"] == evaluation.clip.manifest["bitstream_sha256"]
    assert read["clip"]["encoder"].startswith("ffmpeg version ")
    assert read["deadline_ms"] == DEADLINE_MS
    more = read["runs"]["more"]
    assert sum(sum(fates.values()) for fates in more["frames"].values()) == 56
    assert sum(more["dropped"].values()) == round(56 * (1 - more["decodable_frame_ratio"]))
    assert more["delay"]["p50_ms"] == pytest.approx(20)


def test_the_printed_table_has_a_row_for_the_clip_as_sent_and_for_each_run(evaluation: Evaluation) -> None:
    lines = as_text(evaluation).splitlines()
    rows = [line.split() for line in lines[2:10]]
    assert [row[0] for row in rows] == ["run", "sent", "none", "some", "more", "most", "all", "late"]
    assert rows[1][1:] == rows[2][1:]
    assert rows[6][1:5] == ["-"] * 4
    assert len({len(line) for line in lines[2:10]}) == 1


def test_each_run_with_a_picture_has_a_clip_that_plays(evaluation: Evaluation, pictures: Path) -> None:
    assert sorted(file.stem for file in pictures.glob("*.mp4")) == ["more", "most", "none", "sent", "some"]
    for file in pictures.glob("*.mp4"):
        command = [ffmpeg.executable(), "-hide_banner", "-i", str(file), "-vf", "showinfo", "-f", "null", "-"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stderr
        assert said.count("pts_time:") == 56
        assert "Video: h264" in said
        assert "yuv420p" in said


def test_stills_are_side_by_side(evaluation: Evaluation, pictures: Path) -> None:
    with Image.open(pictures / "stills.png") as image:
        assert image.size == (7 * (2 * 176 + 4), 16 + 2 * (2 * 144 + 4 + 16))


def test_a_still_shows_the_frame_that_was_shown(decoded_clip: Path, tmp_path: Path) -> None:
    decoded = RawFrames.open(decoded_clip, QCIF)
    columns = [Column("sent", list(range(56))), Column("run", [None, *([0] * 55)])]
    write_stills(tmp_path / "a.png", decoded, columns, [0, 50])
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image)
    wide, high, label = 2 * 176, 2 * 144, 16
    right, below = wide + 4, label + high + 4 + label
    first = rgb(decoded.samples()[0], QCIF).repeat(2, axis=0).repeat(2, axis=1)
    assert np.array_equal(pixels[label : label + high, :wide], first)
    assert not pixels[label : label + high, right : right + wide].any()
    assert np.array_equal(pixels[below : below + high, right : right + wide], first)
    assert not np.array_equal(pixels[below : below + high, :wide], first)


@pytest.mark.parametrize(
    ("sample", "colour"),
    [((235, 128, 128), (255, 255, 255)), ((16, 128, 128), (0, 0, 0)), ((82, 90, 240), (255, 1, 0))],
)
def test_colours_are_those_of_bt_601(sample: tuple[int, int, int], colour: tuple[int, int, int]) -> None:
    luma, blue, red = sample
    planes = [np.full(QCIF.luma_bytes, luma), np.full(QCIF.luma_bytes // 4, blue), np.full(QCIF.luma_bytes // 4, red)]
    found = rgb(np.concatenate(planes).astype(np.uint8), QCIF)
    assert np.abs(found[0, 0].astype(int) - colour).max() <= 1


def test_stills_are_of_frames_in_which_runs_differ_some_distance_apart() -> None:
    first, second = np.full(100, 35.0), np.full(100, 35.0)
    second[[20, 21, 22, 80]] = [25, 24, 26, 30]
    assert frames_that_differ([first, second], rows=1) == [21]
    assert frames_that_differ([first, second]) == [21, 80]
    # The worst frame of a single run.
    assert 21 in frames_that_differ([second], rows=1)


@pytest.mark.parametrize("label", ["", "a/b", "../up", ".hidden", "sent", "a b", "\x1b[0m", "x" * 65])
def test_a_label_that_no_file_can_have_is_refused(coded_clip: CodedClip, arrivals: Path, label: str) -> None:
    said = refusal(lambda: video.evaluate(coded_clip, [RunArrivals(label, arrivals / "none.csv")], DEADLINE_MS))
    assert "is not a label: name the run, as in --arrivals cmt=FILE" in said
    assert said.isprintable()


def test_runs_are_distinguished_and_bounded(
    coded_clip: CodedClip, arrivals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [RunArrivals("cmt", arrivals / "none.csv"), RunArrivals("cmt", arrivals / "some.csv")]
    assert "there are two runs `cmt`" in refusal(lambda: video.evaluate(coded_clip, twice, DEADLINE_MS))
    assert "0 runs: give 1 to" in refusal(lambda: video.evaluate(coded_clip, [], DEADLINE_MS))
    monkeypatch.setattr("anabranch.video.evaluation.MAX_RUNS", 1)
    assert "2 runs: give 1 to 1" in refusal(lambda: video.evaluate(coded_clip, twice, DEADLINE_MS))


def test_error_in_the_last_file_is_found_before_computing(
    coded_clip: CodedClip, arrivals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_: object, **__: object) -> None:
        raise AssertionError("quality was computed")

    monkeypatch.setattr("anabranch.video.evaluation.decode", computed)
    runs = [RunArrivals("a", arrivals / "none.csv"), RunArrivals("b", tmp_path / "none.csv")]
    assert refusal(lambda: video.evaluate(coded_clip, runs, DEADLINE_MS)).startswith(f"{tmp_path / 'none.csv'}: ")
