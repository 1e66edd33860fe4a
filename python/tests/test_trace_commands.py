"""Commands `anabranch trace plot` and `anabranch trace import`."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from anabranch.command import main as command
from anabranch.errors import AnabranchError, FigureError
from anabranch.figures import RateTrace, new_figure, plot_rate_distribution, plot_rates


@pytest.fixture
def drive(tmp_path):
    """Returns a table of two operators in steps of half a second; `b` is out from 4 to 6 s."""
    rows = [f"{100 + step / 2},{8 if step < 10 else 4},{0 if 8 <= step < 12 else 2}" for step in range(20)]
    file = tmp_path / "drive.csv"
    file.write_text("\n".join(["time,a,b", *rows, ""]))
    return file


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs the command in an empty folder, and returns status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            status = command(["trace", *map(str, arguments)])
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_figure_of_two_columns_is_written_as_svg_and_png(run, drive, tmp_path):
    status, out, err = run("plot", drive, "--column", "a", "--column", "b", "--out", "d.svg", "d.png")
    assert (status, out, err) == (0, "d.svg\nd.png\n", "")
    assert re.search(r'<svg [^>]*width="515\.52pt"', (tmp_path / "d.svg").read_text())
    with Image.open(tmp_path / "d.png") as picture:
        assert picture.width == 2148
    first = (tmp_path / "d.svg").read_bytes()
    run("plot", drive, "--column", "a", "--column", "b", "--out", "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == first


def test_axes_have_the_rates_outages_and_quantiles_of_the_table(drive):
    traces = [RateTrace.read(drive, column=name) for name in "ab"]
    left, right = new_figure("page").subplots(1, 2)
    plot_rates(traces, ax=left)
    plot_rate_distribution(traces, ax=right)
    first, second = left.get_lines()
    assert first.get_xdata().tolist() == np.arange(0, 10.5, 0.5).tolist()
    assert first.get_ydata().tolist() == [8.0] * 10 + [4.0] * 11
    assert second.get_label() == "b"
    (bars,) = left.collections
    assert [part[:, 0].tolist() for part in bars.get_segments()] == [[4.0, 6.0]]
    (quantiles, _) = right.get_lines()
    assert quantiles.get_ydata()[[0, 100, 300, 400]].tolist() == [4.0, 4.0, 8.0, 8.0]


def test_part_of_a_trace_keeps_its_clock(drive):
    axes = plot_rates([RateTrace.read(drive, column="a")], between=(4.2, 5.1), ax=new_figure().subplots())
    (line,) = axes.get_lines()
    assert line.get_xdata().tolist() == [4.0, 4.5, 5.0, 5.5]
    assert line.get_ydata().tolist() == [8.0, 8.0, 4.0, 4.0]
    with pytest.raises(FigureError, match="the traces are from 0 to 10 s"):
        plot_rates([RateTrace.read(drive, column="a")], between=(50, 60), ax=axes)


def test_steps_are_means_and_units_are_converted(drive):
    trace = RateTrace.read(drive, column="a", step_s=10, unit="kbit/s")
    assert trace.mbps.tolist() == [0.006]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "lasts no time"),
        ("0,0\n1,0\n", "rate is zero throughout"),
        ("0,1\n1,x\n", "line 2"),
        (None, "cannot be read"),
    ],
)
def test_trace_without_rates_is_an_error_that_names_the_file(run, tmp_path, content, fault):
    if content is not None:
        (tmp_path / "empty.csv").write_text(content)
    status, out, err = run("plot", "empty.csv")
    assert (status, out) == (1, "")
    assert err.startswith("empty.csv: ")
    assert fault in err
    assert not (tmp_path / "trace.svg").exists()


def test_wrong_options_of_plot_name_their_remedy(run, drive):
    for options, fault in (
        (["--out", "a.pdf"], ".svg or .png"),
        (["--column", "a", "--column", "a"], "same name: a, a"),
        (["--column", "a", "--between", "2,1"], "before the second"),
        (["--step", "0s"], "not between"),
        (["--outage", "slow"], "not a rate"),
    ):
        status, out, err = run("plot", drive, *options)
        assert (status, out) == (2, "")
        assert fault in err
    with pytest.raises(FigureError, match="no trace"):
        plot_rates([])
    with pytest.raises(AnabranchError, match="no column"):
        RateTrace.read(drive, column="c")


def _parquet(file, **columns):
    pq.write_table(pa.table(columns), file)
    return file


def test_imported_columns_are_a_table_that_trace_reads(run, tmp_path):
    start = datetime.datetime(2025, 1, 9, 10, 24, 26, 500_000, datetime.timezone.utc)
    times = [(start + datetime.timedelta(seconds=second)).isoformat() for second in range(3)]
    columns = {"@timestamp": times, "down, bps": [1e6, None, 2.5e6], "out": [False, True, False]}
    file = _parquet(tmp_path / "dish.parquet", **columns)
    options = ["--time", "@timestamp", "--column", "down, bps", "--column", "out"]
    assert run("import", file, *options, "--out", "dish.csv") == (0, "", "")
    assert (tmp_path / "dish.csv").read_text() == "seconds,down__bps,out\n0,1000000,0\n1,,1\n2,2500000,0\n"
    rates = RateTrace.read(tmp_path / "dish.csv", step_s=1, column="down__bps", unit="bit/s")
    assert rates.mbps.tolist() == [1.0, 1.0, 2.5]


@pytest.mark.parametrize("times", [[5.0, 5.5], [5, 6], [datetime.datetime(2025, 1, 1), datetime.datetime(2025, 1, 2)]])
def test_imported_times_count_from_the_first_row(run, tmp_path, times):
    file = _parquet(tmp_path / "a.parquet", t=times, v=[1e-7, 1.0])
    assert run("import", file, "--time", "t", "--column", "v", "--out", "a.csv") == (0, "", "")
    second = {float: "0.5", int: "1"}.get(type(times[0]), "86400")
    assert (tmp_path / "a.csv").read_text() == f"seconds,v\n0,0.0000001\n{second},1\n"


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"t": [0, 1], "v": ["fast", "slow"]}, "column `v`, row 1: 'fast' is no number"),
        ({"t": [0, 1], "v": [1.0, -1.0]}, "row 2"),
        ({"t": ["yesterday"], "v": [1]}, "no times"),
        ({"t": [0, None], "v": [1, 1]}, "rows without a time"),
        ({"t": pa.array([], pa.float64()), "v": pa.array([], pa.float64())}, "has no rows"),
        ({"t": [0, 1], "w": [1, 1]}, "no column `v`; its columns are t, w"),
    ],
)
def test_column_that_is_no_series_is_refused_by_name(run, tmp_path, columns, fault):
    _parquet(tmp_path / "bad.parquet", **columns)
    status, out, err = run("import", "bad.parquet", "--time", "t", "--column", "v", "--out", "bad.csv")
    assert (status, out) == (1, "")
    assert err.startswith("bad.parquet: ")
    assert fault in err
    assert not (tmp_path / "bad.csv").exists()


def test_file_that_is_no_parquet_is_refused(run, drive):
    status, _, err = run("import", drive, "--time", "t", "--column", "v", "--out", "bad.csv")
    assert status == 1
    assert "no Parquet file" in err
