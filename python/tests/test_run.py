"""One run: its figures, its files, and errors of runs that cannot start."""

from __future__ import annotations

import dataclasses
import gc
import json
import re
import subprocess
import sys
from pathlib import Path as FilePath

import numpy
import pandas
import pytest

import anabranch as ab
from anabranch import _native
from anabranch.errors import RunError, ScenarioError, SchemeError, TraceError
from anabranch.scenario import Exchange, Flow, Path, RunSettings, Scenario, Scheme, SmallMessages
from anabranch.simulation import Run, run

ROOT = FilePath(__file__).parents[2]
METRICS = {
    "goodput_kbps",
    "duration_s",
    "retransmissions",
    "timeouts",
    "heartbeat_timeouts",
    "fast_retransmits",
    "spurious_retransmissions",
    "peak_reorder_bytes",
    "rwnd_blocked_s",
}


def two_paths(duration: str = "3 s", **more: object) -> Scenario:
    return Scenario(
        run=RunSettings(duration=duration, schemes=["cmt"]),
        paths=[Path(rate="10 Mbit/s", delay="20 ms", loss=0.01), Path(rate="2 Mbit/s", delay="40 ms")],
        **more,  # type: ignore[arg-type]
    )


def native_result(scenario: Scenario, scheme: str, seed: int) -> dict[str, object]:
    results: list[str] = []
    prepared = _native.Prepared(scenario.to_toml(), scheme, scenario.folder)
    _native.run_batch([(prepared, seed)], lambda _, text: results.append(text))
    read: dict[str, object] = json.loads(results[0])
    return read


# Figures


def test_a_run_made_twice_is_the_same() -> None:
    first, second = run(two_paths(), seed=7, digest=True), run(two_paths(), seed=7, digest=True)
    assert first == second
    assert first.digest is not None
    assert run(two_paths(), seed=8, digest=True) != first


def test_a_run_has_the_figures_of_the_native_result() -> None:
    result = native_result(two_paths(), "cmt", 3)
    made = run(two_paths(), "cmt", 3)
    assert set(made.metrics) == METRICS
    assert all(made.metrics[name] == result[name] for name in METRICS)
    assert (made.scheme, made.seed, made.profile, made.goodput_counts) == ("cmt", 3, "rfc9260", "delivered")
    for path, expected in zip(made.paths, result["paths"], strict=True):  # type: ignore[call-overload]
        assert dataclasses.asdict(path) == {"delay_ms": None, **expected}
    # No small messages, no limit, and no video.
    nothing = {"message_delays": None, "connections": (), "abandoned": None, "video": None}
    assert [dataclasses.asdict(flow) for flow in made.flows] == [{**nothing, **flow} for flow in result["flows"]]  # type: ignore[attr-defined]
    for path in made.paths:
        assert path.share == path.data_packets / sum(path.data_packets for path in made.paths)


def test_several_flows_have_a_jain_index() -> None:
    scenario = two_paths(flows=[Flow(paths=["path-1"], scheme="sctp"), Flow(paths=["path-2"])])
    made = run(scenario)
    assert 0 < made.metrics["jain_index"] <= 1
    assert [flow.scheme for flow in made.flows] == ["sctp", "cmt"]


def test_complete_transfer_is_intact_and_incomplete_one_fails() -> None:
    scenario = two_paths(flows=[Flow(kind="file", size="200 kB"), Flow(name="huge", kind="file", size="5 MB")])
    made = run(scenario)
    small, huge = made.flows
    assert (small.intact, small.failure) == (True, None)
    assert small.transfer_s is not None
    assert 0 < small.transfer_s < 3
    assert huge.intact is False
    assert made.failure == f"flow `huge`: not finished at the end of the run, {huge.delivered_bytes} B delivered"
    assert run(two_paths()).failure is None


def test_a_run_is_shown_as_tidy_tables() -> None:
    made = run(two_paths(flows=[Flow(), Flow(name="small", kind="file", size="1 kB")]))
    runs, paths, flows = made.to_pandas(), made.to_pandas("paths"), made.to_pandas("flows")
    assert list(runs.columns) == [
        *("scheme", "seed", "profile", "goodput_kbps", "duration_s", "retransmissions", "timeouts"),
        *("heartbeat_timeouts", "fast_retransmits", "spurious_retransmissions", "peak_reorder_bytes"),
        *("rwnd_blocked_s", "jain_index", "failure"),
    ]
    assert len(runs) == 1
    assert list(paths.columns) == ["scheme", "seed", "path", "data_packets", "bytes", "drops", "sent_packets", "share"]
    assert list(paths["path"]) == ["path-1", "path-2"]
    assert list(flows["flow"]) == ["flow-1", "small"]
    assert flows["intact"].tolist() == [None, True]
    with pytest.raises(ValueError, match="runs, paths and flows"):
        made.to_pandas("links")  # type: ignore[arg-type]


def test_delays_of_small_messages_are_columns_of_their_own() -> None:
    messages = SmallMessages(size="200 B", interval="20 ms")
    made = run(two_paths(flows=[Flow(messages=messages)]))
    flows = made.to_pandas("flows")
    expected = dataclasses.asdict(made.flows[0].message_delays)  # type: ignore[arg-type]
    assert expected["delivered"] > 0
    assert {name: flows[f"message_delays_{name}"][0] for name in expected} == expected
    assert "message_delays" not in flows.columns
    assert not any(isinstance(value, dict) for value in flows.iloc[0])


def test_programs_of_a_forward_flow_have_results_and_columns() -> None:
    keystrokes = Exchange(interval="100 ms", priority=True)
    made = run(two_paths(flows=[Flow(kind="forward", downloads=1, keystrokes=keystrokes)]))
    download, typed = made.flows[0].connections
    assert (download.name, typed.name) == ("download-1", "keystrokes")
    assert download.goodput_kbps > 0
    assert typed.p99_ms is not None
    flows = made.to_pandas("flows")
    assert flows["keystrokes_p99_ms"][0] == typed.p99_ms
    assert flows["download_1_goodput_kbps"][0] == download.goodput_kbps
    assert "connections" not in flows.columns


def test_a_notebook_shows_figures_and_names_without_letting_them_be_markup() -> None:
    made = dataclasses.replace(run(two_paths()), scheme="<script>")
    html = made._repr_html_()
    assert html.count("<table") == 3
    assert "goodput_kbps" in html
    assert "path-2" in html
    assert "<script>" not in html
    assert "None" not in html
    assert repr(run(two_paths())).startswith("Run(scheme='cmt', seed=1, goodput_kbps=")


# Schemes and seeds


def test_the_only_scheme_need_not_be_named() -> None:
    assert run(two_paths()).scheme == "cmt"
    assert run(two_paths().with_values({"run.schemes": ["sctp( trigger = 4 )"]})).scheme == "sctp(trigger=4)"


def test_of_several_schemes_one_has_to_be_named() -> None:
    with pytest.raises(SchemeError, match=r"has 3 schemes, and a run has one: .* one of: sctp, cmt, cmt-pf"):
        run(ROOT / "scenarios/two-path.toml")
    with pytest.raises(SchemeError, match="has 17 schemes"):
        run(two_paths().with_values({"run.schemes": ["all"]}))


def test_flows_with_own_schemes_need_no_scheme_argument() -> None:
    flows = [Flow(scheme="cmt"), Flow(scheme="sctp")]
    scenario = two_paths(flows=flows).with_values({"run.schemes": ["cmt", "cmt-pf"]})
    assert run(scenario).scheme == "cmt,sctp"


def test_a_scheme_that_the_scenario_defines_goes_by_its_name() -> None:
    scenario = two_paths(schemes=[Scheme(name="eager", expression="cmt(trigger=2)")])
    made = run(scenario, "eager")
    assert made.scheme == "eager"
    assert made.metrics == run(scenario, "cmt(trigger=2)").metrics


def test_a_wrong_scheme_is_named_with_the_nearest() -> None:
    with pytest.raises(SchemeError, match=r"`cmt-fp`.*did you mean `cmt-pf`"):
        run(two_paths(), "cmt-fp")


@pytest.mark.parametrize("seed", [-1, 2**63, 10**30])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(RunError, match=f"invalid seed {seed}"):
        run(two_paths(), seed=seed)


def test_seeds_are_whole_numbers_of_any_kind() -> None:
    assert run(two_paths("1 s"), seed=numpy.int64(5)).seed == 5  # type: ignore[arg-type]
    assert run(two_paths("1 s"), seed=2**63 - 1).seed == 2**63 - 1
    with pytest.raises(RunError, match=r"invalid seed 1\.5:"):
        run(two_paths("1 s"), seed=1.5)  # type: ignore[arg-type]


# Files


def test_a_scenario_in_another_folder_sends_the_file_beside_it(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Übung 日本"
    folder.mkdir()
    (folder / "Größe.bin").write_bytes(bytes(range(256)) * 100)
    file = folder / "send.toml"
    file.write_text(two_paths(flows=[Flow(kind="file", path="Größe.bin")]).to_toml(), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.read("Übung 日本/send.toml")
    monkeypatch.chdir("/")
    made = run(scenario)
    assert (made.flows[0].intact, made.flows[0].delivered_bytes) == (True, 25600)
    assert made.series.complete
    assert made == run(file)


def test_a_file_that_a_flow_sends_and_that_is_not_there_is_named(tmp_path: FilePath) -> None:
    scenario = two_paths(flows=[Flow(kind="file", path="missing.bin")], folder=tmp_path)
    with pytest.raises(RunError, match=re.escape(str(tmp_path / "missing.bin"))):
        run(scenario)


def test_a_scenario_that_is_not_there_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"no/such\.toml: cannot be read"):
        run("no/such.toml")


def test_traces_and_captures_go_where_they_are_asked_for(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run(two_paths(), "cmt(trigger=4)", 9, trace="traces", pcap=tmp_path / "captures")
    assert made.trace == tmp_path / "traces/cmt_trigger=4_-seed9"
    assert made.pcap == tmp_path / "captures/cmt_trigger=4_-seed9.pcapng"
    assert made.pcap.stat().st_size > 0
    monkeypatch.chdir("/")
    assert made.series.folder == made.trace
    assert made == run(two_paths(), "cmt(trigger=4)", 9)


def test_captures_keep_headers_unless_whole_packets_are_asked_for(tmp_path: FilePath) -> None:
    sizes = []
    for snaplen in (None, 256, 0):
        made = run(two_paths("2 s"), "cmt", pcap=tmp_path / str(snaplen), snaplen=snaplen)
        assert made.pcap is not None
        sizes.append(made.pcap.stat().st_size)
    assert sizes[0] == sizes[1] < sizes[2] / 2


@pytest.mark.parametrize(("snaplen", "said"), [(-1, "from 0 to"), (20, "64 bytes or more"), (True, "whole number")])
def test_invalid_snap_length_is_refused(snaplen: int, said: str, tmp_path: FilePath) -> None:
    with pytest.raises(RunError, match=f"`snaplen`: expected .*{said}"):
        run(two_paths("1 s"), "cmt", pcap=tmp_path, snaplen=snaplen)


def test_snap_length_without_capture_is_refused() -> None:
    with pytest.raises(RunError, match="`snaplen` has no effect without `pcap`"):
        run(two_paths("1 s"), "cmt", snaplen=256)


def test_folder_of_traces_is_found_for_any_scheme_name(tmp_path: FilePath) -> None:
    flows = [Flow(scheme="cmt(rtx=rtx-asap)+ecf"), Flow(scheme="sctp")]
    for scenario in (two_paths(flows=flows), two_paths(schemes=[Scheme(name="A_b-9", expression="cmt")])):
        scheme = None if scenario.flows else "A_b-9"
        made = run(scenario, scheme, trace=tmp_path)
        assert made.series.manifest["scheme"] == made.scheme


def test_a_trace_that_cannot_be_written_is_named(tmp_path: FilePath) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="cmt-seed1"):
        run(two_paths(), trace=tmp_path / "file")


# Series


def test_a_run_without_traces_is_made_again_for_its_series() -> None:
    made = run(two_paths())
    assert made.trace is None
    assert made.series is made.series
    assert len(made.series.retransmissions()) == made.metrics["retransmissions"]
    assert made.series.result is not None
    assert made.series.result["result"]["goodput_kbps"] == made.metrics["goodput_kbps"]


def test_flows_with_schemes_of_their_own_have_series_too() -> None:
    made = run(two_paths(flows=[Flow(scheme="cmt"), Flow(scheme="sctp")]))
    assert made.series.manifest["scheme"] == "cmt,sctp"


def test_a_temporary_folder_lives_as_long_as_run_or_series() -> None:
    made = run(two_paths("1 s"))
    series = made.series
    folder = series.folder
    del made
    gc.collect()
    assert len(series.packets()) > 0
    del series
    gc.collect()
    assert not folder.exists()
    assert not folder.parent.exists()


def test_temporary_folder_is_removed_at_exit() -> None:
    program = (
        f"import anabranch as ab\nprint(ab.run({str(ROOT / 'scenarios/one-path.toml')!r}).series.folder, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not FilePath(done.stdout.strip()).parent.exists()


def test_a_file_that_changed_since_the_run_is_noticed(tmp_path: FilePath) -> None:
    file = tmp_path / "sent.bin"
    file.write_bytes(b"a" * 5000)
    made = run(two_paths(flows=[Flow(kind="file", path="sent.bin")], folder=tmp_path))
    file.write_bytes(b"b" * 5000)
    with pytest.raises(RunError, match="has a file that a flow sends changed"):
        _ = made.series
    file.unlink()
    with pytest.raises(RunError, match=r"sent\.bin"):
        _ = made.series


def test_traces_that_were_removed_are_an_error_of_their_own(tmp_path: FilePath) -> None:
    made = run(two_paths("1 s"), trace=tmp_path)
    assert made.trace is not None
    (made.trace / "run.toml").unlink()
    with pytest.raises(TraceError):
        _ = made.series


# The package


def test_the_function_is_the_packages_however_its_module_was_loaded() -> None:
    program = (
        "import anabranch.simulation\n"
        "from anabranch.simulation import Run\n"
        "import anabranch as ab, sys\n"
        "assert callable(ab.run) and ab.Run is Run, ab.run\n"
        "heavy = {'pandas', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (ab.run, ab.Run) == (run, Run)
    assert isinstance(run(two_paths("1 s")).to_pandas(), pandas.DataFrame)
