"""Command `anabranch plot`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from sample_results import LOSS, losses, traced, transfers

from anabranch.command import main as command
from anabranch.figures.catalogue import FIGURES


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "losses"
    losses().write(folder)
    return folder


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces") / "cmt-pf-seed1"
    shutil.copytree(traced().series.folder, folder)
    return folder


@pytest.fixture
def plot(capsys, monkeypatch, tmp_path):
    """Runs the command in an empty folder, and returns status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            status = command(["plot", *map(str, arguments)])
        except SystemExit as stop:
            status = stop.code
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.input == "results"])
def test_every_figure_of_results_can_be_written(plot, results, tmp_path, name):
    if name == "transfer-time":
        results = tmp_path / "transfers"
        transfers().write(results)
    status, out, err = plot(results, "--figure", name)
    assert (status, out, err) == (0, f"{name}.svg\n", "")
    assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.input == "trace"])
def test_every_figure_of_a_trace_can_be_written(plot, trace, tmp_path, name):
    status, out, err = plot(trace, "--figure", name, "--between", "1,2")
    assert (status, out, err) == (0, f"{name}.svg\n", "")
    assert (tmp_path / f"{name}.svg").stat().st_size > 5000


def test_several_files_can_be_written_at_once(plot, results, tmp_path):
    status, out, _ = plot(results, "--figure", "bars", "--out", "a/one.svg", "two.png")
    assert (status, out) == (0, "a/one.svg\ntwo.png\n")
    assert (tmp_path / "a" / "one.svg").exists()
    assert (tmp_path / "two.png").exists()


def test_options_reach_the_figure(plot, results, tmp_path):
    options = ("--metric", "timeouts", "--schemes", "cmt-pf,cmt", "--confidence", "0.9", "--interval", "normal")
    assert plot(results, "--figure", "metric", *options, "--title", "T3", "--x", LOSS, "--out", "one.svg")[0] == 0
    assert plot(results, "--figure", "metric", *options, "--title", "T3", "--out", "two.svg")[0] == 0
    assert plot(results, "--figure", "metric", "--out", "other.svg")[0] == 0
    one, two, other = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two", "other"))
    assert one == two != other


def test_a_value_of_a_swept_key_can_be_chosen_as_text(plot, results):
    assert plot(results, "--figure", "bars", "--at", f"{LOSS}=0.05", "--baseline", "sctp")[0] == 0
    status, _, err = plot(results, "--figure", "bars", "--at", f"{LOSS}=0.3")
    assert status == 2
    assert f"{results}: no `{LOSS}` of 0.3; choose one of `0.0`, `0.02`" in err


def test_list_has_applicable_figures_and_available_values(plot, results, trace):
    status, out, err = plot(results, "--list")
    assert (status, err) == (0, "")
    assert "metric " in out
    assert "cwnd" not in out
    assert f"not without more: size= has to name the key of the file's size; swept are `{LOSS}`" in out
    assert "metrics: goodput_kbps, " in out
    assert "share" in out
    assert "jain_index" not in out
    assert "schemes: sctp, cmt, cmt-pf" in out
    assert f"swept: {LOSS} (0.0, 0.02, 0.05, 0.1)" in out
    status, out, _ = plot(trace, "--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[:4]] == ["cwnd", "throughput", "tsn", "out-of-order"]
    assert "paths: path-1, path-2" in out
    assert "seconds: 0 to 5" in out


def test_the_folder_above_a_single_trace_will_do(plot, trace):
    assert plot(trace.parent, "--figure", "cwnd")[0] == 0


def test_a_figure_that_does_not_fit_is_answered_with_those_that_do(plot, results, trace):
    status, _, err = plot(results, "--figure", "cwnd")
    assert status == 2
    assert "`cwnd` is drawn from traces of a run, and these are results of a sweep: metric, bars, regression" in err
    status, _, err = plot(trace, "--figure", "bars")
    assert status == 2
    assert "cwnd, throughput, tsn, out-of-order" in err
    status, _, err = plot(results, "--figure", "pie")
    assert status == 2
    assert "unknown figure `pie`; choose one of metric, bars" in err


def test_options_of_other_figures_are_refused(plot, results, trace):
    status, _, err = plot(results, "--figure", "metric", "--baseline", "cmt")
    assert status == 2
    assert "--baseline is not for `metric` but for bars" in err
    status, _, err = plot(trace, "--figure", "cwnd", "--every", "2")
    assert status == 2
    assert "--every is not for `cwnd` but for throughput" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--figure"),
        (("--figure", "metric", "--list"), "not allowed with"),
        (("--figure", "metric", "--at", "0.05"), "expected KEY=VALUE"),
        (("--figure", "tsn", "--between", "10"), "expected two times such as 10s,11s"),
        (("--figure", "metric", "--confidence", "most"), "invalid float"),
    ],
)
def test_a_wrong_command_line_is_status_two(plot, results, arguments, message):
    status, out, err = plot(results, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_unknown_metric_scheme_or_ending_exits_2_and_writes_nothing(plot, results, tmp_path):
    for arguments, message in (
        (("--metric", "goodput"), f"{results}: unknown metric `goodput`; did you mean `goodput_kbps`"),
        (("--schemes", "db-cmt"), f"{results}: no runs of `db-cmt`"),
        (("--confidence", "95"), "expected a number between 0 and 1"),
        (("--out", "good.svg", "bad.gif"), "bad.gif: figures are written as .svg or .png"),
    ):
        status, out, err = plot(results, "--figure", "metric", *arguments)
        assert (status, out) == (2, "")
        assert message in err
    assert list(tmp_path.iterdir()) == []


def test_folder_without_results_or_traces_exits_1(plot, tmp_path):
    (tmp_path / "empty").mkdir()
    status, _, err = plot("empty", "--list")
    assert status == 1
    assert "empty: neither results nor traces" in err
    status, _, err = plot("nowhere", "--figure", "bars")
    assert status == 1
    assert "nowhere: no such folder" in err


def test_results_that_are_damaged_are_status_one_and_named(plot, results, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(results, broken)
    (broken / "runs.parquet").write_bytes(b"PAR1 no more")
    status, _, err = plot("broken", "--figure", "bars")
    assert status == 1
    assert "runs.parquet" in err


def test_a_file_that_cannot_be_written_is_status_one_and_named(plot, results, tmp_path):
    (tmp_path / "taken.svg").mkdir()
    status, _, err = plot(results, "--figure", "bars", "--out", "taken.svg")
    assert status == 1
    assert "taken.svg" in err


def test_results_of_a_stopped_sweep_are_drawn_and_called_incomplete(plot, results, tmp_path):
    partial = tmp_path / "partial"
    shutil.copytree(results, partial)
    manifest = json.loads((partial / "manifest.json").read_text())
    (partial / "manifest.json").write_text(json.dumps({**manifest, "missing": 7}))
    status, out, err = plot("partial", "--figure", "bars")
    assert (status, out) == (0, "bars.svg\n")
    assert "7 runs missing of the sweep" in err


def test_an_interrupted_trace_is_drawn_and_called_incomplete(plot, trace, tmp_path):
    shutil.copytree(trace, tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    status, out, err = plot("cut", "--figure", "throughput")
    assert (status, out) == (0, "throughput.svg\n")
    assert "cut: the run did not end" in err


def test_help_has_examples_and_loads_nothing_heavy(plot):
    status, out, _ = plot("--help")
    assert status == 0
    assert "anabranch plot out/losses --figure metric" in out
    code = (
        "import sys; from anabranch.command import plot\n"
        "try: plot.main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'matplotlib', 'pandas', 'pyarrow', 'scipy', 'statsmodels'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
