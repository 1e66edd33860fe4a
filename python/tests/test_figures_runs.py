"""Figures of one run, compared with its traces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from sample_results import ROOT, losses, traced
from written_traces import packet_row, path_row, write_trace

from anabranch.errors import FigureError
from anabranch.figures import path_looks, plot_cwnd, plot_out_of_order, plot_throughput, plot_tsn, styled_axes
from anabranch.scenario import Scenario
from anabranch.series import read_trace
from anabranch.simulation import run

PLOTS = [plot_cwnd, plot_throughput, plot_tsn, plot_out_of_order]
LOOKS = path_looks(["path-1", "path-2"])


@pytest.fixture
def ax():
    with styled_axes("page") as axes:
        yield axes


@pytest.fixture(scope="module")
def both_ways():
    """Returns a run of two flows, of which the second sends both ways."""
    text = (ROOT / "scenarios" / "two-path.toml").read_text(encoding="utf-8")
    flows = '\n[[flow]]\nname = "down"\n\n[[flow]]\nname = "both"\ndirection = "both"\n'
    scenario = Scenario.parse(text + flows).with_values({"run.duration": "2 s"})
    return run(scenario, "cmt", 1)


def line_of(axes, name):
    return next(line for line in axes.get_lines() if line.get_label() == name)


def names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def at(line, time):
    """Returns the value of a line of steps at a time."""
    x, y = line.get_xdata(), line.get_ydata()
    return y[np.searchsorted(x, time, side="right") - 1]


def test_windows_are_drawn_as_the_trace_has_them(ax):
    assert plot_cwnd(traced(), ax=ax) is ax
    rows = traced().series.paths()
    for path in ("path-1", "path-2"):
        of_path = rows[rows["path"] == path]
        line = line_of(ax, path)
        assert line.get_drawstyle() == "steps-post"
        assert np.nanmax(line.get_ydata()) == of_path["cwnd_bytes"].max() / 1024
        assert at(line, 1.0) == of_path[of_path["time_s"] <= 1.0]["cwnd_bytes"].iloc[-1] / 1024
        assert to_hex(line.get_color()) == LOOKS[path].color
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "cwnd (KiB)")
    assert ax.get_legend().get_title().get_text() == "cmt-pf, seed 1"
    assert names(ax) == ["path-1", "path-2"]


def test_windows_continue_to_the_end_of_the_run(ax):
    plot_cwnd(traced(), ax=ax)
    assert all(line.get_xdata()[-1] == 5.0 for line in ax.get_lines())


def test_a_path_that_did_not_change_for_a_while_is_drawn_all_the_same(ax):
    # After its failure the window of the second path stays at one chunk.
    plot_cwnd(traced(), between=(3.2, 3.8), ax=ax)
    line = line_of(ax, "path-2")
    assert line.get_xdata()[[0, -1]].tolist() == [3.2, 3.8]
    assert set(line.get_ydata()) == {at(line, 3.5)} == {1468 / 1024}


def test_thresholds_are_drawn_once_they_are_known_and_do_not_set_the_scale(ax):
    plot_cwnd(traced(), ssthresh=True, ax=ax)
    assert names(ax) == ["path-1", "path-1, ssthresh", "path-2", "path-2, ssthresh"]
    threshold = line_of(ax, "path-1, ssthresh").get_ydata()
    assert np.nanmin(threshold) > 0
    largest = traced().series.paths()["cwnd_bytes"].max() / 1024
    assert ax.get_ylim() == (0, pytest.approx(1.08 * largest))


def test_a_long_run_is_drawn_with_few_points_of_which_no_peak_is_missing(ax):
    series = run(ROOT / "scenarios" / "outage.toml", "cmt", 1).series
    rows = series.paths()
    assert len(rows) > 20_000
    plot_cwnd(series, ax=ax)
    for path in ("path-1", "path-2"):
        line = line_of(ax, path)
        assert len(line.get_xdata()) <= 2000
        assert np.nanmax(line.get_ydata()) == rows[rows["path"] == path]["cwnd_bytes"].max() / 1024


def test_throughput_is_drawn_in_steps_with_the_sum_of_the_paths(ax):
    plot_throughput(traced(), every_s=0.5, ax=ax)
    rows = traced().series.throughput(0.5)
    assert names(ax) == ["path-1", "path-2", "all paths"]
    first = rows[rows["path"] == "path-1"]["throughput_kbps"].tolist()
    line = line_of(ax, "path-1")
    assert line.get_drawstyle() == "steps-post"
    assert line.get_ydata().tolist() == [*first, first[-1]]
    assert line.get_xdata()[-1] == 5.0
    together = rows.groupby("time_s")["throughput_kbps"].sum().tolist()
    assert line_of(ax, "all paths").get_ydata().tolist()[:-1] == pytest.approx(together)
    assert ax.get_legend().get_title().get_text() == "cmt-pf, seed 1, in steps of 0.5 s"
    assert ax.get_ylabel() == "throughput (kbit/s)"


@pytest.mark.parametrize("every_s", [0, -1, float("nan"), 1e-9])
def test_steps_that_are_none_are_refused(ax, every_s):
    with pytest.raises(FigureError, match="every_s is"):
        plot_throughput(traced(), every_s=every_s, ax=ax)


def test_the_sum_of_the_paths_can_be_left_out(ax):
    plot_throughput(traced(), total=False, ax=ax)
    assert names(ax) == ["path-1", "path-2"]


def test_tsns_are_drawn_from_the_first_with_marks_for_outcomes(ax):
    plot_tsn(traced(), between=(1.5, 2.5), ax=ax)
    rows = traced().series.tsn()
    inside = rows[rows["time_s"].between(1.5, 2.5)]
    drops = inside[~inside["event"].isin(["sent", "received"]) & (inside["path"] == "path-2")]
    assert not drops.empty
    assert names(ax) == [f"{path}, {what}" for path in LOOKS for what in ("sent", "received", "dropped")]
    drawn = line_of(ax, "path-2, dropped").get_ydata()
    first = rows["tsn"].iloc[0]
    assert (drawn.min(), drawn.max()) == (drops["tsn"].min() - first, drops["tsn"].max() - first)
    sent = set(inside[(inside["event"] == "sent") & (inside["path"] == "path-1")]["tsn"] - first)
    assert set(line_of(ax, "path-1, sent").get_ydata()) <= sent
    assert ax.get_ylabel() == "TSN (first = 0)"


def test_sent_chunks_are_hollow_and_received_ones_filled(ax):
    plot_tsn(traced(), between=(0.5, 1.0), ax=ax)
    assert line_of(ax, "path-1, sent").get_markerfacecolor() == "none"
    assert to_hex(line_of(ax, "path-1, received").get_markerfacecolor()) == LOOKS["path-1"].color


def test_offsets_are_drawn_with_their_peak(ax):
    plot_out_of_order(traced(), ax=ax)
    rows = traced().series.out_of_order()
    peak = rows["offset"].abs().max()
    assert ax.get_legend().get_title().get_text() == f"cmt-pf, seed 1, peak {peak}"
    assert max(abs(line_of(ax, path).get_ydata()).max() for path in ("path-1", "path-2")) == peak
    assert ax.get_ylabel() == "out-of-order offset (TSNs)"


@pytest.mark.parametrize("plot", PLOTS)
def test_traces_read_from_a_folder_are_drawn_like_the_run(plot, ax):
    plot(traced().series, ax=ax)
    with styled_axes("page") as other:
        plot(traced(), ax=other)
        assert names(ax) == names(other)


@pytest.mark.parametrize("plot", PLOTS)
def test_other_objects_are_refused(plot, ax):
    for source in (losses(), traced().series.paths(), "out/trace", None):
        with pytest.raises(FigureError, match="expected a Run or the result of read_trace"):
            plot(source, ax=ax)


@pytest.mark.parametrize("plot", PLOTS)
def test_one_of_several_flows_and_directions_has_to_be_chosen(plot, ax, both_ways):
    with pytest.raises(FigureError, match=r"several flows \(`both`, `down`\): choose one with flow="):
        plot(both_ways, ax=ax)
    with pytest.raises(FigureError, match=r"several directions \(`forward`, `reverse`\)"):
        plot(both_ways, flow="both", ax=ax)
    with pytest.raises(FigureError, match="flow `up`; it has `both`, `down`"):
        plot(both_ways, flow="up", ax=ax)
    with pytest.raises(FigureError, match="direction `reverse`; it has `forward`"):
        plot(both_ways, flow="down", direction="reverse", ax=ax)
    plot(both_ways, flow="both", direction="reverse", ax=ax)
    assert {"path-1", "path-2"} <= {name.split(",")[0] for name in names(ax)}


@pytest.mark.parametrize("plot", PLOTS)
def test_times_have_to_be_in_order_and_within_the_run(plot, ax):
    with pytest.raises(FigureError, match=r"between=\(3, 2\)"):
        plot(traced(), between=(3, 2), ax=ax)
    if plot is not plot_cwnd:
        with pytest.raises(FigureError, match="between 50 and 60 s: they are from"):
            plot(traced(), between=(50, 60), ax=ax)


def test_times_after_the_run_have_no_windows(ax):
    with pytest.raises(FigureError, match="between 50 and 60 s: the trace ends at 5 s"):
        plot_cwnd(traced(), between=(50, 60), ax=ax)


def test_paths_keep_their_looks_when_only_one_of_them_has_data(ax):
    single = run(
        Scenario.read(ROOT / "scenarios" / "two-path.toml").with_values({"run.duration": "1 s", "path.*.loss": 0}),
        "sctp",
    )
    plot_tsn(single, ax=ax)
    assert {to_hex(line.get_color()) for line in ax.get_lines()} == {LOOKS["path-1"].color}
    assert isinstance(single.series.tsn(), pd.DataFrame)


def test_traces_of_real_sockets_are_drawn_without_a_seed(tmp_path, ax):
    rows = [packet_row(0.1 * place, event, place) for place, event in enumerate(["sent", "sent", "sent"])]
    folder = write_trace(tmp_path / "host", paths=[path_row(0.0)], packets=rows, vantage="host")
    manifest = folder / "run.toml"
    manifest.write_text(manifest.read_text().replace("seed = 1\n", ""))
    plot_cwnd(read_trace(folder), ax=ax)
    assert ax.get_legend().get_title().get_text() == "cmt"
    with styled_axes("page") as other:
        plot_throughput(read_trace(folder), ax=other)
        assert max(line_of(other, "path-1").get_ydata()) == 24.0


def test_a_trace_without_data_has_no_figures(tmp_path, ax):
    folder = write_trace(tmp_path / "silent", paths=[path_row(0.0)])
    for plot in (plot_tsn, plot_out_of_order):
        with pytest.raises(FigureError, match=r"no chunks.* to draw"):
            plot(read_trace(folder), ax=ax)
