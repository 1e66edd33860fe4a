"""Measures of the papers, compared with independent computations."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from papers_planted import PLANTED

from anabranch import _native
from anabranch.errors import ExperimentError
from anabranch.experiments.cost import Cost
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.measures.of_runs import Runs, utilisation_percent
from anabranch.experiments.model import Measure
from anabranch.experiments.plan import Curve, Extract, Scope, Setting, settings_of
from anabranch.experiments.scenarios import resolved
from anabranch.experiments.study import read_study
from anabranch.experiments.sweeps import Collected, SweepOptions, collect
from anabranch.experiments.tracing import Task, extracted, take
from anabranch.series import Series, read_trace
from anabranch.video import CodedClip


def setting_of(experiment: str, scope: Scope = Scope()) -> Setting:  # noqa: B008 - it is frozen
    return settings_of(read_study(PLANTED).experiment(experiment), scope)[0]


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    return collect(setting_of("loss"), SweepOptions(tmp_path_factory.mktemp("cache"), progress=False), Cost())


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Series, dict[str, Any]]:
    """Traced run with its figures."""
    folder = tmp_path_factory.mktemp("trace")
    text = resolved(PLANTED / "scenarios" / "two-path.toml", {"path.path-2.loss": 0.05})
    finished: list[dict[str, Any]] = []
    prepared = _native.Prepared(text, "cmt")
    _native.run_batch([(prepared, 1)], lambda _, found: finished.append(json.loads(found)), trace=folder)
    return read_trace(folder), finished[0]


def run_of(loss: Collected, scheme: str, point: int, seed: int) -> dict[str, Any]:
    """Returns the same run, made separately."""
    setting = loss.setting
    text = resolved(setting.experiment.scenario, setting.settings_at((point,), seed))
    finished: list[dict[str, Any]] = []
    prepared = _native.Prepared(text, setting.schemes[scheme])
    _native.run_batch([(prepared, seed)], lambda _, found: finished.append(json.loads(found)))
    return finished[0]


def quality_of(trace: Path) -> list[float]:
    """Returns the PSNR of two runs with this trace instead of the paper's."""
    runs = pd.DataFrame({"flow": "video", "frame_fates": ["4g", "2g2l"]}, index=["a", "b"])
    place = ((0,), 1)
    tables = {"flow": [{"name": "video", "trace": str(trace)}]}
    found = MEASURES["video_psnr_db"].of_runs
    assert found is not None
    made = Runs(runs, runs, runs, {"a": place, "b": place}, lambda _: tables)
    return [float(value) for value in found(made, Measure("video_psnr_db", flow="video"))]


def test_video_quality_is_computed_from_the_clip_named_by_the_trace(
    coded_clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch.video.clip_cache.cached_clip", lambda name: coded_clip)
    trace = shutil.copy(coded_clip.folder / "trace.csv", tmp_path / "of-tests.csv")
    whole, frozen = quality_of(Path(trace))
    assert 30 < frozen < whole < 50


def test_quality_of_a_trace_that_the_encoder_does_not_make_has_no_value(
    coded_clip: CodedClip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("anabranch.video.clip_cache.cached_clip", lambda name: coded_clip)
    trace = tmp_path / "synthetic.csv"
    trace.write_text("number,type,size_bytes,time_ms,display\n0,I,9,0.0,0\n", encoding="utf-8")
    assert all(math.isnan(value) for value in quality_of(trace))
    said = capsys.readouterr().err
    assert said.startswith("PSNR, SSIM and VQM are omitted: ")
    assert "is not what" in said
    assert "pip install 'imageio-ffmpeg" in said


def test_each_value_is_that_of_the_run_with_its_scheme_value_and_seed(loss: Collected) -> None:
    grid = loss.grid(Measure("goodput_kbps"))
    assert grid.values.shape == (3, 3, 4)
    for scheme, point, seed in (("CMT", 0, 1), ("CMT-PF", 2, 3), ("SCTP", 1, 4)):
        at = {"plr2": (grid.axes[0].values[point],)}
        assert grid.sample(scheme, at)[seed - 1] == run_of(loss, scheme, point, seed)["goodput_kbps"]


@pytest.mark.parametrize(
    ("measure", "figure"),
    [
        (Measure("timeouts"), lambda run: run["timeouts"]),
        (Measure("retransmissions"), lambda run: run["retransmissions"]),
        (Measure("retransmissions_mean_per_path"), lambda run: run["retransmissions"] / 2),
        (
            Measure("retransmissions_per_delivered_chunk"),
            lambda run: run["retransmissions"] / (run["flows"][0]["delivered_bytes"] / 1452),
        ),
        (Measure("timeouts_per_mb"), lambda run: run["timeouts"] / (run["flows"][0]["delivered_bytes"] / 1e6)),
        (
            Measure("utilisation_percent"),
            lambda run: 100 * sum(path["bytes"] for path in run["paths"]) * 8 / run["duration_s"] / 4e6,
        ),
        (
            Measure("path_throughput_kbps", path="path-2"),
            lambda run: run["paths"][1]["bytes"] * 8 / 1000 / run["duration_s"],
        ),
        (
            Measure("path_share_percent", path="path-2"),
            lambda run: 100 * run["paths"][1]["data_packets"] / sum(path["data_packets"] for path in run["paths"]),
        ),
        (Measure("flow_goodput_kbps", flow="flow-1"), lambda run: run["goodput_kbps"]),
        (Measure("recv_buffer_packets"), lambda run: 65536 / 1500),
    ],
)
def test_measures_of_runs_follow_their_definitions(loss: Collected, measure: Measure, figure: Any) -> None:
    found = loss.grid(measure).sample("CMT", {"plr2": (0.2,)})[1]
    assert found == pytest.approx(figure(run_of(loss, "CMT", 2, 2)))


def test_utilisation_needs_the_rate_of_each_path(loss: Collected) -> None:
    runs = replace(loss.tables, scenario=lambda place: {"path": [{"name": "lte"}]})
    with pytest.raises(ExperimentError, match=r"path `lte` has no rate.*use `path_throughput_kbps`"):
        utilisation_percent(runs, Measure("utilisation_percent"))


def test_a_file_that_is_not_delivered_has_no_transfer_time(tmp_path: Path) -> None:
    full = collect(setting_of("file"), SweepOptions(tmp_path, progress=False), Cost())
    times = full.grid(Measure("transfer_s")).sample("CMT", {"size": ("100 kB",)})
    assert (times > 100e3 * 8 / 4e6).all()
    setting = setting_of("file")
    short = Setting(
        setting.experiment,
        None,
        setting.axes,
        setting.schemes,
        setting.seeds,
        {**setting.overrides, "run.duration": "200 ms"},
        {},
        False,
    )
    cut = collect(short, SweepOptions(tmp_path, progress=False), Cost())
    assert np.isnan(cut.grid(Measure("transfer_s")).sample("CMT", {"size": ("100 kB",)})).all()
    assert len(cut.failures) == cut.keys.size


def test_values_that_are_drawn_depend_on_key_and_seed_only(tmp_path: Path) -> None:
    setting = setting_of("drawn")
    first, again = setting.drawn(1), setting_of("drawn", Scope(quick=True)).drawn(1)
    assert first == again
    assert first != setting.drawn(2)
    assert 0 <= float(str(first["path.path-1.loss"])) <= 0.02
    collected = collect(setting, SweepOptions(tmp_path, progress=False), Cost())
    goodput = collected.grid(Measure("goodput_kbps"))
    alone = run_of(collected, "SCTP", 1, 3)
    assert goodput.sample("SCTP", {"rbuf": ("64 KB",)})[2] == alone["goodput_kbps"]
    assert (collected.grid(Measure("recv_buffer_packets")).values[:, 0] == 32768 / 1500).all()


def value(series: Series, name: str, **parameters: Any) -> float:
    of_trace = MEASURES[name].of_trace
    assert of_trace is not None
    return of_trace(series, Measure(name, **parameters))


def test_the_first_window_is_that_of_the_standard(trace: tuple[Series, dict[str, Any]]) -> None:
    series, _ = trace
    assert value(series, "cwnd_initial_bytes", path="path-1") == series.paths()["cwnd_bytes"].iloc[0]


def test_the_mean_window_weighs_each_value_by_the_time_for_which_it_held(
    trace: tuple[Series, dict[str, Any]],
) -> None:
    series, _ = trace
    sampled = series.sampled(every_s=0.0005)
    expected = sampled[sampled["path"] == "path-2"]["cwnd_bytes"].mean()
    assert value(series, "cwnd_mean_bytes", path="path-2") == pytest.approx(expected, rel=0.01)
    inside = sampled[(sampled["path"] == "path-2") & sampled["time_s"].between(2, 3)]["cwnd_bytes"].mean()
    assert value(series, "cwnd_mean_bytes", path="path-2", window_s=(2, 3)) == pytest.approx(inside, rel=0.01)


class Planted:
    """Series with planted rows."""

    def __init__(self, end_s: float = 10.0, **frames: pd.DataFrame) -> None:
        self.end_s = end_s
        self._frames = frames

    def paths(self, flow: str | None = None) -> pd.DataFrame:
        return self._frames["paths"]

    def tsn(self) -> pd.DataFrame:
        return self._frames["tsn"]

    def packets(self) -> pd.DataFrame:
        return self._frames["packets"]

    def out_of_order(self) -> pd.DataFrame:
        return self._frames["offsets"]


def planted(name: str, series: Planted, **parameters: Any) -> float:
    of_trace = MEASURES[name].of_trace
    assert of_trace is not None
    return of_trace(series, Measure(name, **parameters))  # type: ignore[arg-type]


def test_a_window_that_changes_once_has_the_mean_of_both_by_their_times() -> None:
    rows = pd.DataFrame({"time_s": [0.0, 4.0], "path": ["path-1"] * 2, "cwnd_bytes": [1000, 2000]})
    series = Planted(paths=rows)
    assert planted("cwnd_mean_bytes", series, path="path-1") == pytest.approx(1600)
    assert planted("cwnd_mean_bytes", series, path="path-1", window_s=(2, 6)) == pytest.approx(1500)
    assert math.isnan(planted("cwnd_mean_bytes", series, path="path-2"))
    assert math.isnan(planted("cwnd_initial_bytes", series, path="path-2"))


def test_offsets_are_measured_from_10_to_20_s_without_a_window() -> None:
    offsets = pd.DataFrame({"time_s": [9.0, 10.0, 15.0, 20.0], "path": ["a", "a", "b", "b"], "offset": [99, 4, -8, 50]})
    series = Planted(offsets=offsets)
    assert planted("ooo_peak", series) == 4
    assert planted("ooo_mean_absolute", series) == 6
    assert planted("ooo_peak", series, window_s=(0, 30)) == 99
    assert planted("ooo_peak", series, window_s=(0, 30), path="b") == 50
    assert math.isnan(planted("ooo_peak", series, window_s=(30, 40)))


def test_tsns_are_counted_from_the_first_one_as_0() -> None:
    tsn = pd.DataFrame(
        {
            "time_s": [0.0, 1.0, 2.0, 3.0, 4.0],
            "path": ["a", "a", "b", "a", "a"],
            "event": ["sent", "received", "received", "received", "lost"],
            "tsn": [100, 100, 107, 104, 120],
        }
    )
    series = Planted(tsn=tsn)
    assert planted("highest_tsn_received", series, time_s=2.5) == 7
    assert planted("highest_tsn_received", series, time_s=1.0) == 0
    assert math.isnan(planted("highest_tsn_received", series, time_s=0.5))
    assert planted("path_tsn_slope", series, path="a") == pytest.approx(2)
    assert math.isnan(planted("path_tsn_slope", series, path="b"))


def test_throughput_of_a_window_counts_each_chunk_once() -> None:
    packets = pd.DataFrame(
        {
            "time_s": [0.5, 1.5, 1.6, 2.5],
            "flow": ["f"] * 4,
            "direction": ["forward"] * 4,
            "path": ["a", "a", "b", "b"],
            "event": ["received", "received", "received", "lost"],
            "tsn": [1, 2, 2, 3],
            "chunk_bytes": [1000] * 4,
        }
    )
    series = Planted(end_s=4.0, packets=packets)
    assert planted("throughput_kbps", series) == pytest.approx(2 * 8 / 4)
    assert planted("throughput_kbps", series, window_s=(1, 3)) == pytest.approx(8 / 2)
    assert planted("throughput_kbps", series, window_s=(1, 30)) == pytest.approx(8 / 3)
    assert planted("throughput_kbps", series, path="b") == 0
    assert math.isnan(planted("throughput_kbps", series, window_s=(5, 6)))


def test_throughput_of_the_whole_run_equals_the_result(trace: tuple[Series, dict[str, Any]]) -> None:
    series, run = trace
    found = value(series, "throughput_kbps", window_s=(0.1, 5.0))
    # Goodput of profile rfc9260 counts user data that was read; chunks have 16 bytes of header.
    assert found == pytest.approx(run["goodput_kbps"] * 1468 / 1452, rel=0.03)


EXTRACTS: tuple[Extract, ...] = (
    Measure("cwnd_mean_bytes", path="path-2"),
    Measure("cwnd_mean_bytes", path="path-1", window_s=(0.5, 2.0)),
    Measure("cwnd_initial_bytes", path="path-1"),
    Measure("ooo_peak", window_s=(0.5, 1.5)),
    Measure("ooo_mean_absolute", window_s=(0.5, 1.5), path="path-1"),
    Measure("ooo_peak"),
    Measure("highest_tsn_received", time_s=1.25),
    Measure("path_tsn_slope", path="path-2", window_s=(0.5, 1.75)),
    Measure("throughput_kbps", window_s=(0.5, 1.0)),
    Measure("throughput_kbps", window_s=(1.0, 100.0), path="path-1"),
    Measure("throughput_kbps"),
    Curve("cwnd", (0.5, 1.5)),
    Curve("cwnd"),
    Curve("throughput-time", None, 0.5),
    Curve("tsn", (0.5, 0.75)),
    Curve("out-of-order", (0.5, 1.5)),
)
"""Extracts of every kind."""


@pytest.mark.parametrize("extracts", [*((extract,) for extract in EXTRACTS), EXTRACTS[3:7], EXTRACTS[5:9], EXTRACTS])
def test_measure_of_a_part_of_a_trace_equals_that_of_the_whole(
    trace: tuple[Series, dict[str, Any]], tmp_path: Path, extracts: tuple[Extract, ...]
) -> None:
    text = resolved(PLANTED / "scenarios" / "two-path.toml", {"path.path-2.loss": 0.05})
    task = Task(("cmt", (), 1), "", text, str(PLANTED), "cmt", 1, extracts, str(tmp_path))
    values, packets = take(task)
    series, figures = trace
    expected = [extracted(series, extract) for extract in extracts]
    # As JSON, NaN equals itself.
    assert json.dumps(values) == json.dumps(expected)
    assert 0 < packets <= sum(path["sent_packets"] for path in figures["paths"])
    assert not any(tmp_path.iterdir())


def test_every_measure_has_definition_and_source() -> None:
    for name, definition in MEASURES.items():
        assert name == definition.name
        assert definition.label
        assert definition.unit
        assert definition.about.endswith(".")
        assert definition.source
        assert (definition.of_runs is None) != (definition.of_trace is None)
