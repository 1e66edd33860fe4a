"""Figures of results, compared with statistics."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from sample_results import LOSS, frame, losses, points, transfers, two_flows, without_chance

from anabranch.errors import FigureError, StatisticsError
from anabranch.figures import (
    look_of,
    new_figure,
    plot_bars,
    plot_metric,
    plot_regression,
    plot_transfer_time,
    styled_axes,
)
from anabranch.statistics import paired_difference, regressions, summary

TWO = points({0.0: {"cmt": [10.0, 20.0], "sctp": [5.0, 5.0]}, 0.05: {"cmt": [8.0, 12.0], "sctp": [4.0, 4.0]}})


@pytest.fixture
def ax():
    with styled_axes() as axes:
        yield axes


def line_of(axes, name):
    return next(line for line in axes.get_lines() if line.get_label().startswith(name))


def bars_of(axes):
    """Returns the bars of each scheme."""
    return [container for container in axes.containers if isinstance(container, BarContainer)]


def note(axes):
    return axes.get_legend().get_title().get_text()


def names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_line_goes_through_the_means_and_its_band_is_the_interval(ax):
    assert plot_metric(losses(), ax=ax) is ax
    means = summary(losses())
    for place, scheme in enumerate(losses().schemes):
        rows = means[means["scheme"] == scheme]
        line = line_of(ax, scheme)
        assert line.get_xdata().tolist() == [0.0, 2.0, 5.0, 10.0]
        assert line.get_ydata().tolist() == pytest.approx(rows["mean"].tolist())
        assert line.get_color() == look_of(scheme).color
        band = ax.collections[place].get_paths()[0].vertices
        assert band[:, 1].max() == pytest.approx(rows["high"].max())
        assert band[:, 1].min() == pytest.approx(rows["low"].min())


def test_axes_have_units_and_the_legend_has_n_and_confidence(ax):
    plot_metric(losses(), ax=ax, title="Two paths")
    assert ax.get_xlabel() == "loss on path-2 (%)"
    assert ax.get_ylabel() == "goodput (kbit/s)"
    assert ax.get_title(loc="left") == "Two paths"
    assert note(ax) == "mean, band: 95 % t-interval, n = 5"
    assert names(ax) == ["sctp", "cmt", "cmt-pf"]


def test_the_legend_says_which_interval_it_is(ax):
    plot_metric(losses(), interval="normal", confidence=0.9, ax=ax)
    assert note(ax) == "mean, band: 90 % normal interval, n = 5"


def test_numbers_of_seeds_that_differ_are_both_named(ax):
    runs = points({0.0: {"cmt": [1.0, 2.0, 3.0]}, 0.1: {"cmt": [1.0, 2.0]}})
    plot_metric(runs, ax=ax)
    assert note(ax) == "mean, band: 95 % t-interval, n = 2 to 3"


def test_identical_runs_have_no_band_and_are_called_deterministic(ax):
    plot_metric(TWO, ax=ax)
    assert names(ax) == ["cmt", "sctp (deterministic)"]
    assert note(ax) == "mean, band: 95 % t-interval, n = 2\nno band: all runs the same, n = 2"
    assert [len(band.get_paths()) for band in ax.collections] == [1, 0]


def test_a_single_seed_has_no_band_and_is_called_n_of_one(ax):
    plot_metric(TWO[TWO["seed"] == 1], ax=ax)
    assert names(ax) == ["cmt (n = 1)", "sctp (n = 1)"]
    assert note(ax) == "no band: a single run, n = 1"
    assert all(not band.get_paths() for band in ax.collections)


def test_a_point_alone_with_an_interval_has_a_whisker(ax):
    runs = points({0.0: {"cmt": [5.0, 5.0]}, 0.1: {"cmt": [1.0, 3.0]}, 0.2: {"cmt": [5.0, 5.0]}})
    plot_metric(runs, ax=ax)
    whiskers = ax.containers[0].lines[2][0].get_segments()
    half = summary(runs)["half_width"][1]
    assert len(whiskers) == 1
    assert whiskers[0][:, 1].tolist() == pytest.approx([2 - half, 2 + half])


def test_missing_values_are_counted_in_the_legend(ax):
    runs = points({0.0: {"cmt": [1.0, 2.0, math.nan]}, 0.1: {"cmt": [1.0, 2.0, 4.0]}})
    plot_metric(runs, ax=ax)
    assert note(ax).endswith("1 run without a value left out")


def test_schemes_are_drawn_in_the_order_asked_for(ax):
    plot_metric(losses(), schemes=["cmt-pf", "sctp"], ax=ax)
    assert names(ax) == ["cmt-pf", "sctp"]


def test_swept_values_are_drawn_in_the_order_of_their_numbers(ax):
    runs = points({"1 s": {"cmt": [3.0]}, "20 ms": {"cmt": [1.0]}, "300 ms": {"cmt": [2.0]}}, "path.path-1.delay")
    plot_metric(runs, ax=ax)
    assert line_of(ax, "cmt").get_xdata().tolist() == [0.02, 0.3, 1.0]
    assert line_of(ax, "cmt").get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert ax.get_xlabel() == "one-way delay on path-1 (s)"


def test_metrics_in_bytes_are_drawn_in_kibibytes(ax):
    plot_metric(losses(), "peak_reorder_bytes", ax=ax)
    assert ax.get_ylabel() == "most held by a receiver (KiB)"
    expected = summary(losses(), "peak_reorder_bytes").query("scheme == 'cmt'")["mean"] / 1024
    assert line_of(ax, "cmt").get_ydata().tolist() == pytest.approx(expected.tolist())


def test_the_axis_begins_at_zero_unless_asked(ax):
    plot_metric(losses(), ax=ax)
    assert ax.get_ylim()[0] == 0
    with styled_axes() as other:
        plot_metric(points({0.0: {"cmt": [1000.0]}, 0.1: {"cmt": [990.0]}}), y_from_zero=False, ax=other)
        assert other.get_ylim()[0] > 900


def test_another_swept_key_has_to_be_chosen(ax):
    runs = pd.concat([TWO.assign(**{"path.path-2.delay": delay}) for delay in ("20 ms", "80 ms")])
    with pytest.raises(FigureError, match=r"x= has to name.*`path\.path-2\.loss`, `path\.path-2\.delay`"):
        plot_metric(runs, ax=ax)
    with pytest.raises(FigureError, match=r"`path\.path-2\.delay` has several values \(`20 ms`, `80 ms`\).*at="):
        plot_metric(runs, x=LOSS, ax=ax)
    plot_metric(runs, at={"path.path-2.delay": "80 ms"}, ax=ax)
    assert note(ax).startswith("mean, band: 95 % t-interval, n = 2")


def test_keys_that_were_swept_side_by_side_need_no_choice(ax):
    runs = TWO.assign(**{"path.path-1.loss": TWO[LOSS] * 2})
    plot_metric(runs, x=LOSS, ax=ax)
    assert ax.get_xlabel() == "loss on path-2 (%)"


def test_text_values_have_no_axis(ax):
    words = points({"ns2": {"cmt": [1.0]}, "rfc9260": {"cmt": [2.0]}}, "run.profile")
    with pytest.raises(FigureError, match=r"not numbers \(`ns2`, `rfc9260`\).*`bars`"):
        plot_metric(words, ax=ax)
    plot_bars(words, ax=ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["ns2", "rfc9260"]


@pytest.mark.parametrize("plot", [plot_metric, plot_bars, plot_regression])
def test_unknown_name_is_refused_with_valid_ones(plot, ax):
    with pytest.raises(FigureError, match="`db-cmt`; choose one of `sctp`, `cmt`, `cmt-pf`"):
        plot(losses(), schemes=["db-cmt"], ax=ax)
    with pytest.raises(FigureError, match=r"`path\.path-9\.loss` was not swept; swept are `path\.path-2\.loss`"):
        plot(losses(), x="path.path-9.loss", ax=ax)
    with pytest.raises(FigureError, match=r"`run\.duration` was not swept"):
        plot(losses(), at={"run.duration": "1 s"}, ax=ax)
    with pytest.raises(FigureError, match=r"no `path\.path-2\.loss` of 0\.3; choose one of `0\.0`, `0\.02`"):
        plot(losses(), at={LOSS: 0.3}, ax=ax)
    with pytest.raises(StatisticsError, match="`goodput`; did you mean `goodput_kbps`"):
        plot(losses(), "goodput", ax=ax)
    with pytest.raises(FigureError, match="not dict"):
        plot({}, ax=ax)
    with pytest.raises(FigureError, match="no runs"):
        plot(TWO.head(0), ax=ax)
    with pytest.raises(FigureError, match="no column `scheme`; it has `a`"):
        plot(pd.DataFrame({"a": [1]}), ax=ax)
    with pytest.raises(FigureError, match="not int"):
        plot(losses(), ax=5)


def test_a_metric_without_any_value_has_no_figure(ax):
    with pytest.raises(FigureError, match="no run has a value of `jain_index`"):
        plot_metric(losses(), "jain_index", ax=ax)


def test_results_that_swept_nothing_have_no_axis(ax):
    with pytest.raises(FigureError, match="no key was swept"):
        plot_metric(without_chance(), ax=ax)


def test_bars_stand_side_by_side_with_their_intervals(ax):
    assert plot_bars(losses(), ax=ax) is ax
    means = summary(losses())
    for scheme, bars in zip(losses().schemes, bars_of(ax), strict=True):
        rows = means[means["scheme"] == scheme]
        assert [bar.get_height() for bar in bars] == pytest.approx(rows["mean"].tolist())
        assert {to_hex(bar.get_facecolor()) for bar in bars} == {look_of(scheme).color}
        assert {bar.get_hatch() for bar in bars} == {look_of(scheme).hatch or None}
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bars in bars_of(ax) for bar in bars)
    assert all(end < begin for (_, end), (begin, _) in pairwise(edges))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "2", "5", "10"]
    assert note(ax) == "mean, whisker: 95 % t-interval, n = 5"
    assert ax.get_ylim()[0] == 0


def test_bars_need_no_swept_key(ax):
    plot_bars(without_chance(), ax=ax)
    assert names(ax) == ["cmt (deterministic)", "cmt-pf (deterministic)"]
    assert note(ax) == "no whisker: all runs the same, n = 3"
    assert ax.get_xticks().tolist() == []


def test_gains_are_paired_differences_in_per_cent(ax):
    plot_bars(losses(), baseline="sctp", ax=ax)
    gains = paired_difference(losses(), "sctp", relative=True)
    heights = [bar.get_height() for bar in bars_of(ax)[0]]
    assert heights == pytest.approx((gains[gains["scheme"] == "cmt"]["mean"] * 100).tolist())
    assert names(ax) == ["cmt", "cmt-pf"]
    assert ax.get_ylabel() == "goodput over sctp (%)"
    assert note(ax) == "mean of pairs, whisker: 95 % t-interval, n = 5"


def test_differences_can_be_in_the_unit_of_the_metric(ax):
    plot_bars(losses(), "peak_reorder_bytes", baseline="cmt", relative=False, schemes="sctp", ax=ax)
    differences = paired_difference(losses(), "cmt", "peak_reorder_bytes").query("scheme == 'sctp'")
    heights = [bar.get_height() for bar in bars_of(ax)[0]]
    assert heights == pytest.approx((differences["mean"] / 1024).tolist())
    assert ax.get_ylabel() == "most held by a receiver minus that of cmt (KiB)"


def test_pairs_with_equal_differences_are_marked_deterministic(ax):
    plot_bars(without_chance(), baseline="cmt", ax=ax)
    assert note(ax) == "no whisker: all pairs the same, n = 3"


def test_one_of_several_flows_has_to_be_chosen(ax):
    with pytest.raises(FigureError, match=r"for each flow \(`multipath`, `single-path`\).*at={'flow'"):
        plot_bars(two_flows(), table="flows", ax=ax)
    plot_bars(two_flows(), table="flows", at={"flow": "single-path"}, ax=ax)
    expected = two_flows().to_pandas("flows").query("flow == 'single-path'")["goodput_kbps"].mean()
    assert bars_of(ax)[0][0].get_height() == pytest.approx(expected)


def test_transfer_times_are_drawn_over_the_size_of_the_file(ax):
    plot_transfer_time(transfers(), ax=ax)
    assert line_of(ax, "cmt").get_xdata().tolist() == [0.1, 0.4, 1.0]
    expected = summary(transfers(), "transfer_s").query("scheme == 'cmt'")["mean"].tolist()
    assert line_of(ax, "cmt").get_ydata().tolist() == pytest.approx(expected)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("file size (MB)", "transfer time (s)")


def test_transfer_times_can_be_drawn_from_a_frame_of_flows(ax):
    plot_transfer_time(transfers().to_pandas("flows"), ax=ax)
    assert names(ax) == ["sctp", "cmt"]


def test_transfers_that_were_not_finished_are_counted(ax):
    flows = transfers().to_pandas("flows")
    flows.loc[flows["seed"] == 2, "transfer_s"] = math.nan
    plot_transfer_time(flows, ax=ax)
    assert note(ax) == "mean, band: 95 % t-interval, n = 3\n6 runs without a value left out"


def test_transfer_times_need_a_size(ax):
    with pytest.raises(FigureError, match=r"size= has to name.*`path\.path-2\.loss`"):
        plot_transfer_time(losses(), ax=ax)


def test_regressions_are_drawn_with_their_points_band_and_figures(ax):
    plot_regression(losses(), schemes=["cmt", "cmt-pf"], ax=ax)
    lines = regressions(losses())
    line = line_of(ax, "cmt: ")
    ends = lines["cmt"].predict([0.0, 10.0])
    assert line.get_xdata()[[0, -1]].tolist() == [0.0, 10.0]
    assert line.get_ydata()[[0, -1]].tolist() == pytest.approx(ends["mean"].tolist())
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(ends["high"].max())
    assert names(ax)[0] == f"cmt: R² = {lines['cmt'].r_squared:.2f}, p = {lines['cmt'].p_value:.3f}"
    assert note(ax) == "line and 95 % band of its mean, n = 4 means over seeds"
    markers = [line for line in ax.get_lines() if line.get_linestyle() == "None"]
    assert markers[0].get_ydata().tolist() == pytest.approx(summary(losses()).query("scheme == 'cmt'")["mean"].tolist())


def test_regressions_can_go_through_every_run(ax):
    plot_regression(losses(), schemes="cmt", points="runs", ax=ax)
    assert note(ax).endswith("n = 20 runs")
    markers = next(line for line in ax.get_lines() if line.get_linestyle() == "None")
    assert len(markers.get_xdata()) == 20


def test_regressions_accept_all_runs_of_keys_swept_side_by_side(ax):
    runs = losses().to_pandas()
    plot_regression(runs.assign(**{"path.path-1.loss": runs[LOSS] * 2}), x=LOSS, schemes="cmt", points="runs", ax=ax)
    assert note(ax).endswith("n = 20 runs")


def test_a_scheme_that_does_not_depend_on_the_key_has_a_flat_line(ax):
    plot_regression(losses(), ax=ax)
    assert names(ax)[0] == "sctp: the same everywhere"
    assert np.ptp(line_of(ax, "sctp").get_ydata()) < 1e-6


def test_very_small_p_values_are_not_printed_as_zero(ax):
    wiggles = enumerate((0, 1, -1, 2, 0, 1))
    runs = points({percent / 100: {"cmt": [1000 - 100 * percent + wiggle]} for percent, wiggle in wiggles})
    plot_regression(runs, ax=ax)
    assert names(ax) == ["cmt: R² = 1.00, p < 0.001"]


def test_given_axes_are_drawn_on_without_pyplot():
    figure = new_figure("page")
    left, right = figure.subplots(1, 2)
    plot_metric(losses(), ax=left)
    plot_bars(losses(), ax=right)
    assert left.get_lines()
    assert right.patches
    assert pyplot.get_fignums() == []


def test_without_axes_a_new_pyplot_figure_is_made_which_notebooks_show():
    axes = plot_metric(losses())
    try:
        assert pyplot.get_fignums() == [axes.figure.number]
        assert pyplot.gcf() is axes.figure
    finally:
        pyplot.close(axes.figure)


def test_failed_figure_is_closed():
    with pytest.raises(FigureError):
        plot_metric(losses(), x="path.path-9.loss")
    assert pyplot.get_fignums() == []


def test_legend_is_below_axes_with_a_layout_and_inside_without():
    with styled_axes() as roomy:
        plot_metric(losses(), ax=roomy)
        roomy.figure.draw_without_rendering()
        legend, axes = roomy.get_legend().get_window_extent(), roomy.get_window_extent()
        labels = roomy.xaxis.get_tightbbox()
        assert legend.y1 <= labels.y0 <= axes.y0
        assert legend.y0 >= 0
        assert 0 <= legend.x0 <= legend.x1 <= roomy.figure.bbox.width
    figure = pyplot.figure()
    try:
        tight = figure.add_subplot()
        plot_metric(losses(), ax=tight)
        figure.draw_without_rendering()
        assert tight.get_legend().get_window_extent().y0 > tight.get_window_extent().y0
    finally:
        pyplot.close(figure)


def test_nothing_overlaps_or_is_cut_off_with_ten_schemes(ax):
    schemes = [
        "sctp",
        "cmt",
        "cmt-pf",
        "a-cmt",
        "db-cmt",
        "cmt-qa",
        "mptcp-lia",
        "bonded",
        "cmt(trigger=4,floor=4)",
        "x",
    ]
    runs = points({0.0: {s: [1.0, 2.0] for s in schemes}, 0.1: {s: [1.0, 3.0] for s in schemes}})
    plot_metric(runs, ax=ax)
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= ax.figure.bbox.width
    assert legend.y0 >= 0
    assert legend.y1 <= ax.xaxis.get_tightbbox().y0
    texts = [text.get_window_extent() for text in ax.get_legend().get_texts()]
    assert not any(one.overlaps(other) for place, one in enumerate(texts) for other in texts[place + 1 :])
    # The figure has grown by the height of the legend, so that the axes are as high as with few schemes.
    assert ax.figure.get_figheight() > new_figure().get_figheight()
    with styled_axes() as few:
        plot_metric(runs, schemes=schemes[:2], ax=few)
        few.figure.draw_without_rendering()
        assert few.figure.get_figheight() == new_figure().get_figheight()
        assert ax.get_window_extent().height == pytest.approx(few.get_window_extent().height, rel=0.15)


def test_frames_of_schemes_as_categories_are_drawn_alike(ax):
    plot_metric(TWO.assign(scheme=TWO["scheme"].astype("category")), ax=ax)
    assert names(ax) == ["cmt", "sctp (deterministic)"]
    assert frame({"cmt": [1.0]}).shape == (1, 3)
