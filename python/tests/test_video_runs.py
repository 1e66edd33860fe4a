"""Videos in scenarios: figures of runs equal those of `anabranch video evaluate` on their arrivals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab
from anabranch import video
from anabranch.errors import RunError, VideoError
from anabranch.scenario.tables import Reliability
from anabranch.simulation import Run
from anabranch.video import CodedClip
from anabranch.video.clip_cache import VARIABLE, cached_clip
from anabranch.video.encoder import decode
from anabranch.video.metrics import SPATIAL_METRICS
from anabranch.video.pairs import BLACK, PairQuality, Pictures, shown_by_fates
from anabranch.video.user_clip import ReadOptions

DEADLINE_MS = 250


def scenario_of(trace: Path, loss: float = 0.08, deadline: str = f"{DEADLINE_MS} ms") -> ab.Scenario:
    """Returns the clip over two lossy paths, without retransmissions."""
    flow = ab.Flow(
        name="film",
        kind="video",
        trace=str(trace),
        deadline=deadline,
        reliability=Reliability(max_retransmissions=0),
    )
    return ab.Scenario(
        run=ab.RunSettings(duration="8 s", schemes=["cmt"]),
        paths=[ab.Path(rate="2 Mbit/s", delay="20 ms", loss=loss), ab.Path(rate="1 Mbit/s", delay="60 ms", loss=loss)],
        flows=[flow],
    )


@pytest.fixture(scope="module")
def made(coded_clip: CodedClip, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ab.run(scenario_of(coded_clip.folder / "trace.csv"), trace=tmp_path_factory.mktemp("traces"))


def test_a_run_and_an_evaluation_of_its_arrivals_agree(coded_clip: CodedClip, made: Run, tmp_path: Path) -> None:
    assert made.trace is not None
    arrivals = made.trace / "film-arrivals.csv"
    evaluation = video.evaluate(coded_clip, [video.RunArrivals("cmt", arrivals)], DEADLINE_MS)
    result = made.flows[0].video
    assert result is not None
    measures = evaluation.runs[0].measures
    assert 0 < measures.decodable_ratio < 1
    assert result["decodable_frame_ratio"] == measures.decodable_ratio
    assert (result["stalls"], result["longest_stall_s"]) == (
        measures.stalls,
        pytest.approx(measures.longest_stall_s, abs=1e-6),
    )
    for kind, counts in measures.fates.items():
        assert result["fates"][kind.value] == {fate.value: count for fate, count in counts.items()}
    assert measures.delays is not None
    # Arrivals are written to the nanosecond.
    assert result["delay"]["p95_ms"] == pytest.approx(measures.delays.percentiles_ms[95], abs=1e-5)
    shown = [BLACK if frame is None else frame for frame in evaluation.runs[0].shown]
    assert shown_by_fates(result["frame_fates"]).tolist() == shown


def test_quality_by_pairs_is_that_of_an_evaluation(coded_clip: CodedClip, made: Run, tmp_path: Path) -> None:
    assert made.trace is not None
    result = made.flows[0].video
    assert result is not None
    shown = shown_by_fates(result["frame_fates"])
    sent = Pictures(decode(coded_clip.folder / "stream.m4v", coded_clip.source, tmp_path / "decoded.yuv"))
    for against, reference in (("source", Pictures(coded_clip.source)), ("sent", sent)):
        runs = [video.RunArrivals("cmt", made.trace / "film-arrivals.csv")]
        (run,) = video.evaluate(coded_clip, runs, DEADLINE_MS, against=against).runs  # type: ignore[arg-type]
        assert run.quality is not None
        pairs = PairQuality(reference, sent)
        for metric in ("psnr_db", "ssim", "vqm"):
            assert pairs.mean(shown, metric) == pytest.approx(run.quality.mean(metric), rel=1e-12)


def test_the_columns_of_a_video_are_in_the_tables(made: Run) -> None:
    (row,) = made.to_pandas("flows").to_dict("records")
    lost_late = row["lost_frames"] + row["late_frames"]
    missing = sum(row[f"missing_{kind}_frames"] for kind in "ipb")
    dropped = sum(row[f"dropped_{kind}_frames"] for kind in "ipb")
    assert (missing, dropped) == (lost_late, lost_late + row["undecodable_frames"])
    assert row["frames"] == 56
    assert not {"video", "abandoned"} & row.keys()
    assert row["abandoned_messages"] > 0
    results = ab.run(made.scenario, seeds=2)
    flows = results.to_pandas("flows")
    assert flows["frame_fates"].iloc[0] == row["frame_fates"]
    assert flows["frame_delay_p95_ms"].iloc[0] == row["frame_delay_p95_ms"]


def test_a_trace_that_changes_is_another_run(coded_clip: CodedClip, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    lines = (coded_clip.folder / "trace.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    frames = []
    for count in (10, 19):
        trace.write_text("".join(lines[: 1 + count]), encoding="utf-8")
        results = ab.sweep(scenario_of(trace, loss=0), seeds=1, cache=tmp_path / "cache", progress=False)
        frames.append(results.to_pandas("flows")["frames"].iloc[0])
    assert frames == [10, 19]


def test_missing_trace_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no-such\.csv: .*`anabranch video encode CLIP --out FOLDER` makes a trace"):
        ab.run(scenario_of(tmp_path / "no-such.csv"))


def test_values_of_pairs_do_not_depend_on_how_threads_divide_them(
    coded_clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [shown_by_fates(text) for text in ("3g2l5g1t45g", "56g", "1l9g30l", "20g6u30g")]
    sent = Pictures(decode(coded_clip.folder / "stream.m4v", coded_clip.source, tmp_path / "decoded.yuv"))
    source = Pictures(coded_clip.source)

    def means() -> list[float]:
        pairs = PairQuality(source, sent)
        pairs.learn(runs)
        return [pairs.mean(shown, metric) for shown in runs for metric in SPATIAL_METRICS]

    whole = means()
    monkeypatch.setattr("anabranch.video.pairs._MIN_PAIRS", 1)
    monkeypatch.setattr("anabranch.video.pairs._BATCH_PAIRS", 7)
    assert means() == whole


def test_before_the_first_good_frame_the_screen_is_black(coded_clip: CodedClip, tmp_path: Path) -> None:
    shown = shown_by_fates("2l3g1t2u1g")
    assert shown.tolist() == [BLACK, BLACK, 2, 3, 4, 4, 4, 4, 8]
    decoded = Pictures(decode(coded_clip.folder / "stream.m4v", coded_clip.source, tmp_path / "decoded.yuv"))
    pairs = PairQuality(decoded, decoded)
    assert pairs.mean(shown[2:5] - 2, "psnr_db") == 100
    assert pairs.mean(shown, "psnr_db") < 100
    assert math.isnan(pairs.mean(shown[:2], "psnr_db"))
    assert math.isnan(pairs.mean(shown_by_fates(""), "vqm"))


@pytest.mark.parametrize("text", ["3x", "g", "-1g", "3g 2l", "99999999999g"])
def test_other_texts_are_no_fates(text: str) -> None:
    with pytest.raises(VideoError, match="frame fates are numbers of frames"):
        shown_by_fates(text)


def test_fates_of_more_frames_than_a_clip_may_have_are_refused() -> None:
    with pytest.raises(VideoError, match="a clip has 108000 at the most"):
        shown_by_fates("999999999g" * 100)


def test_more_frames_than_the_clip_has_are_refused(coded_clip: CodedClip) -> None:
    pictures = Pictures(coded_clip.source)
    with pytest.raises(VideoError, match="57 frames are shown of a clip of 56"):
        PairQuality(pictures, pictures).mean(np.arange(57), "ssim")


def test_a_clip_is_encoded_once_and_again_when_it_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    first = cached_clip("synthetic", ReadOptions(frames=10))
    stream = first.folder / "stream.m4v"
    written = stream.stat().st_mtime_ns
    assert cached_clip("synthetic", ReadOptions(frames=10)).folder == first.folder
    assert stream.stat().st_mtime_ns == written
    assert cached_clip("synthetic", ReadOptions(frames=19)).folder != first.folder
    stream.write_bytes(b"damaged")
    assert cached_clip("synthetic", ReadOptions(frames=10)).stream == first.stream
    assert sorted(entry.name[0] for entry in tmp_path.iterdir()).count(".") == 0


def test_a_flow_of_a_clip_has_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    flow = ab.Flow.of_clip("synthetic", frames=10, name="film", deadline="300 ms")
    assert (flow.kind, flow.name) == ("video", "film")
    scenario = ab.Scenario(
        run=ab.RunSettings(duration="2 s"), paths=[ab.Path(rate="2 Mbit/s", delay="20 ms")], flows=[flow]
    )
    result = ab.run(scenario, "sctp").flows[0].video
    assert result is not None
    assert result["frame_fates"] == "10g"
