"""Traces of a run, and quantities derived from them."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path as FilePath

import numpy
import pandas
import pytest
from written_traces import decision_row, packet_row, path_row, write_trace

import anabranch as ab
from anabranch.errors import TraceError
from anabranch.scenario import AssociationSettings, Flow, LinkEvent, Path, RunSettings, Scenario
from anabranch.series import Series, read_trace
from anabranch.series.tables import DECISIONS, PACKETS, PATHS, QUEUES, Layout
from anabranch.simulation import Run, run

KEYS = ["flow", "direction", "path"]


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run with losses, time-outs and a receive buffer that blocks."""
    scenario = Scenario(
        run=RunSettings(duration="12 s", schemes=["cmt"]),
        association=AssociationSettings(recv_buffer="32 KiB"),
        paths=[
            Path(rate="10 Mbit/s", delay="20 ms", loss=0.05),
            Path(rate="1 Mbit/s", delay="80 ms", loss=0.02, queue="10 packets", events=[LinkEvent(at="6 s", up=False)]),
        ],
    )
    return run(scenario, trace=tmp_path_factory.mktemp("lossy"))


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run of two flows, one of which sends both ways."""
    scenario = Scenario(
        run=RunSettings(duration="3 s", schemes=["cmt"]),
        paths=[
            Path(name="NA", rate="5 Mbit/s", delay="10 ms", loss=0.01),
            Path(name="null", rate="2 Mbit/s", delay="9 ms"),
        ],
        flows=[Flow(name="two-way", direction="both"), Flow(name="back", direction="reverse", paths=["null"])],
    )
    return run(scenario, trace=tmp_path_factory.mktemp("both"))


def rows_of(file: FilePath) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


# Tables


@pytest.mark.parametrize(
    ("kind", "file", "layout"),
    [
        ("paths", "flow-1-paths.csv", PATHS),
        ("decisions", "flow-1-decisions.csv", DECISIONS),
        ("packets", "packets.csv", PACKETS),
        ("queues", "queues.csv", QUEUES),
    ],
)
def test_a_frame_has_the_columns_and_the_values_of_its_file(lossy: Run, kind: str, file: str, layout: Layout) -> None:
    frame = getattr(lossy.series, kind)()
    rows = rows_of(lossy.series.folder / file)
    assert list(rows[0]) == list(layout.columns)
    assert [name for name in frame.columns if name in rows[0]] == list(rows[0])
    assert set(frame.columns) - set(rows[0]) == ({"direction"} if kind in ("paths", "decisions") else set())
    assert len(frame) == len(rows)
    for name in rows[0]:
        texts = [row[name] for row in rows]
        if frame[name].dtype == "category":
            assert frame[name].astype(object).where(frame[name].notna(), "").tolist() == texts
        else:
            numbers = [float(text) if text else float("nan") for text in texts]
            assert numpy.array_equal(frame[name].to_numpy(dtype=float, na_value=numpy.nan), numbers, equal_nan=True)


def test_text_columns_are_categories_and_counts_are_integers(lossy: Run) -> None:
    paths, decisions, packets = lossy.series.paths(), lossy.series.decisions(), lossy.series.packets()
    assert paths["cwnd_bytes"].dtype == packets["tsn"].dtype == "int64"
    assert decisions["tsn"].dtype == "Int64"
    for frame, names in (
        (paths, ("flow", "path", "direction", "state")),
        (decisions, ("decision", "reason", "refused")),
    ):
        assert all(frame[name].dtype == "category" for name in names)
    assert list(paths["path"].cat.categories) == ["path-1", "path-2"]
    assert list(packets["direction"].cat.categories) == ["forward", "reverse"]


def test_bidirectional_flows_are_distinguished_by_direction(both_ways: Run) -> None:
    paths = both_ways.series.paths()
    senders = set(zip(paths["flow"], paths["direction"], strict=True))
    assert senders == {("two-way", "forward"), ("two-way", "reverse"), ("back", "reverse")}
    assert paths["time_s"].is_monotonic_increasing
    assert set(both_ways.series.paths("back")["flow"]) == {"back"}
    backward = both_ways.series.decisions("two-way", "reverse")
    assert len(backward) == len(rows_of(both_ways.series.folder / "two-way-reverse-decisions.csv"))
    assert list(backward.index[:2]) == [0, 1]


def test_paths_may_have_names_that_other_programs_take_for_nothing(both_ways: Run) -> None:
    assert set(both_ways.series.packets()["path"]) == {"NA", "null"}
    assert both_ways.series.paths()["path"].notna().all()
    assert set(both_ways.series.throughput()["path"]) == {"NA", "null"}


def test_a_flow_that_does_not_send_is_named_with_those_that_do(both_ways: Run) -> None:
    with pytest.raises(TraceError, match="no flow 'flow-9' sends data here; known: two-way, back"):
        both_ways.series.paths("flow-9")


def test_frames_are_read_once_and_changing_one_changes_no_other(tmp_path: FilePath) -> None:
    series = read_trace(write_trace(tmp_path / "run", packets=[packet_row(0.1, "sent", 1)]))
    first = series.packets()
    first["mine"] = 1
    first.loc[0, "tsn"] = -1
    (series.folder / "packets.csv").unlink()
    assert "mine" not in series.packets().columns
    assert series.packets()["tsn"].tolist() == series.tsn()["tsn"].tolist() == [1]


# Description of the run


def test_manifest_and_result_are_as_the_files_have_them(lossy: Run) -> None:
    series = lossy.series
    assert (series.manifest["scheme"], series.manifest["seed"]) == ("cmt", 1)
    assert series.manifest["sender"][0]["paths"] == ["path-1", "path-2"]
    assert series.result is not None
    assert series.result["ended_s"] == series.end_s == 12.0
    assert series.complete
    assert series.notes == []
    assert "scheme=cmt seed=1" in repr(series)
    assert "incomplete" not in repr(series)


def test_folder_of_one_run_is_read_as_that_run(lossy: Run) -> None:
    assert read_trace(lossy.series.folder.parent).folder == lossy.series.folder
    assert ab.read_trace is read_trace
    assert ab.Series is Series


# Derived quantities, compared with the counters of the run


def test_retransmissions_are_those_that_the_run_counted(lossy: Run, both_ways: Run) -> None:
    for made in (lossy, both_ways):
        again = made.series.retransmissions()
        assert len(again) == made.metrics["retransmissions"] > 0
        assert again["transmission"].min() == 2
    assert list(again.columns) == ["time_s", *KEYS, "tsn", "transmission"]


def test_timeouts_are_those_that_the_run_counted(lossy: Run) -> None:
    assert len(lossy.series.timeouts()) == lossy.metrics["timeouts"] > 0
    assert list(lossy.series.timeouts().columns) == ["time_s", *KEYS]


def test_blocked_intervals_last_as_long_as_the_run_counted(lossy: Run) -> None:
    transfer = dataclasses.replace(
        lossy.scenario,
        run=RunSettings(stop="transfer", duration="60 s"),
        flows=[Flow(kind="file", size="400 kB")],
        paths=[dataclasses.replace(path, events=()) for path in lossy.scenario.paths],
    )
    made = run(transfer, "cmt")
    blocked = made.series.blocked()
    assert list(blocked.columns) == ["start_s", "end_s", *KEYS]
    assert (blocked["end_s"] > blocked["start_s"]).all()
    assert (blocked["end_s"] - blocked["start_s"]).sum() == pytest.approx(made.metrics["rwnd_blocked_s"], abs=1e-9)
    assert made.metrics["rwnd_blocked_s"] > 1


def test_an_interval_that_the_run_cuts_off_ends_with_it(lossy: Run) -> None:
    blocked = lossy.series.blocked()
    spans, cut = blocked["end_s"] - blocked["start_s"], blocked["end_s"] == lossy.series.end_s
    assert cut.tolist() == [False] * (len(blocked) - 1) + [True]
    # The run itself counts such a period only up to the last event of the sender.
    assert spans[~cut].sum() < lossy.metrics["rwnd_blocked_s"] < spans.sum()


def test_drops_and_losses_have_their_causes(lossy: Run) -> None:
    drops, losses = lossy.series.drops(), lossy.series.losses()
    assert list(drops.columns) == ["time_s", *KEYS, "cause", "tsn"]
    assert len(drops) == sum(path.drops for path in lossy.paths)
    assert {"lost", "outage"} <= set(drops["cause"])
    assert list(losses.columns) == ["time_s", *KEYS, "tsn", "cause"]
    assert {"fast-retransmit", "timeout"} <= set(losses["cause"])
    wire = set(lossy.series.packets()["tsn"])
    assert set(losses["tsn"]) <= wire


def test_throughput_adds_up_to_what_arrived(lossy: Run, both_ways: Run) -> None:
    for made in (lossy, both_ways):
        packets = made.series.packets()
        arrived = packets[packets["event"] == "received"].groupby(KEYS, observed=True)["chunk_bytes"].sum()
        for every_s in (0.25, 1.0, 0.7, 100.0):
            frame = made.series.throughput(every_s)
            width_s = numpy.minimum(every_s, made.series.end_s - frame["time_s"])
            total = (
                (frame["throughput_kbps"] * width_s * 125).groupby([frame[key] for key in KEYS], observed=True).sum()
            )
            assert total[total > 0].to_dict() == pytest.approx(arrived.to_dict())
        assert list(frame.columns) == ["time_s", *KEYS, "throughput_kbps", "counted"]


def test_bins_begin_with_the_run_and_the_last_ends_with_it(lossy: Run) -> None:
    frame = lossy.series.throughput(every_s=5.0)
    assert frame[frame["path"] == "path-1"]["time_s"].tolist() == [0.0, 5.0, 10.0]
    assert frame[frame["path"] == "path-2"]["throughput_kbps"].iloc[-1] == 0.0


def test_an_arrival_on_the_edge_of_a_bin_is_counted_after_it(tmp_path: FilePath) -> None:
    # In floating point 0.3 / 0.1 is less than 3.
    rows = [packet_row(time_s, "received", tsn) for tsn, time_s in enumerate((0.1, 0.3, 0.6, 0.7, 1.0))]
    frame = read_trace(write_trace(tmp_path / "run", packets=rows)).throughput(0.1)
    first = frame[frame["path"] == "path-1"]
    assert first["throughput_kbps"].tolist() == pytest.approx([0, 80, 0, 80, 0, 0, 80, 80, 0, 80])
    assert frame[frame["path"] == "path-2"]["throughput_kbps"].tolist() == [0.0] * 10


def test_regular_samples_repeat_the_latest_row(lossy: Run) -> None:
    paths, regular = lossy.series.paths(), lossy.series.sampled(0.5)
    assert list(regular.columns) == list(paths.columns)
    for path, rows in regular.groupby("path", observed=True):
        own = paths[paths["path"] == path]
        assert rows["time_s"].tolist() == [step / 2 for step in range(25)]
        for row in rows.itertuples():
            latest = own[own["time_s"] <= row.time_s].iloc[-1]
            assert (row.cwnd_bytes, row.state) == (latest["cwnd_bytes"], latest["state"])


def test_a_path_has_no_regular_rows_before_its_first(tmp_path: FilePath) -> None:
    rows = [path_row(0.0, cwnd_bytes=1), path_row(0.25, cwnd_bytes=2), path_row(0.35, "path-2", cwnd_bytes=3)]
    regular = read_trace(write_trace(tmp_path / "run", paths=rows, ended_s=0.5)).sampled(0.25)
    shown = list(zip(regular["time_s"], regular["path"], regular["cwnd_bytes"], strict=True))
    assert shown == [(0.0, "path-1", 1), (0.25, "path-1", 2), (0.5, "path-1", 2), (0.5, "path-2", 3)]


@pytest.mark.parametrize("every_s", [0, -1.0, float("nan"), float("inf"), 1e-12, 1e-7])
def test_a_step_that_makes_no_grid_is_refused(lossy: Run, every_s: float) -> None:
    for make in (lossy.series.throughput, lossy.series.sampled):
        with pytest.raises(ValueError, match="every_s is"):
            make(every_s)


# TSNs


def test_tsns_continue_beyond_32_bits(tmp_path: FilePath) -> None:
    top = 2**32
    sent = [top - 2, top - 1, 0, 1, top - 2, 2]
    rows = [packet_row(index / 10, "sent", tsn) for index, tsn in enumerate(sent)]
    rows += [packet_row(0.9, "received", top - 1), packet_row(0.95, "received", 1), packet_row(0.97, "received", 0)]
    series = read_trace(write_trace(tmp_path / "run", packets=rows))
    tsn = series.tsn()
    assert list(tsn.columns) == ["time_s", *KEYS, "event", "tsn"]
    sent_on = tsn[tsn["event"] == "sent"]["tsn"].tolist()
    assert sent_on == [top - 2, top - 1, top, top + 1, top - 2, top + 2]
    assert series.retransmissions()["tsn"].tolist() == [top - 2]
    assert series.out_of_order()["offset"].tolist() == [2, -1]


def test_each_direction_counts_its_own_tsns(tmp_path: FilePath) -> None:
    rows = [
        packet_row(0.1, "sent", 2**32 - 1),
        packet_row(0.2, "sent", 5, direction="reverse"),
        packet_row(0.3, "sent", 0),
        packet_row(0.4, "sent", 6, direction="reverse"),
    ]
    series = read_trace(write_trace(tmp_path / "run", packets=rows))
    assert series.tsn()["tsn"].tolist() == [2**32 - 1, 5, 2**32, 6]
    assert len(series.retransmissions()) == 0


def test_offset_is_to_the_previously_received_chunk_over_any_path(tmp_path: FilePath) -> None:
    order = [(10, "path-1"), (12, "path-2"), (11, "path-1"), (13, "path-2"), (13, "path-1")]
    rows = [packet_row(index / 10, "received", tsn, path) for index, (tsn, path) in enumerate(order)]
    rows.insert(2, packet_row(0.15, "lost", 99))
    frame = read_trace(write_trace(tmp_path / "run", packets=rows)).out_of_order()
    assert list(frame.columns) == ["time_s", *KEYS, "tsn", "offset"]
    assert frame["tsn"].tolist() == [12, 11, 13, 13]
    assert frame["offset"].tolist() == [2, -1, 2, 0]
    assert frame["path"].tolist() == ["path-2", "path-1", "path-2", "path-1"]


def test_offsets_sum_to_the_distance_between_first_and_last(lossy: Run) -> None:
    tsn = lossy.series.tsn()
    arrived = tsn[tsn["event"] == "received"]["tsn"]
    offsets = lossy.series.out_of_order()["offset"]
    assert offsets.sum() == arrived.iloc[-1] - arrived.iloc[0]
    assert offsets.min() < 0 < 1 < offsets.max()


# Intervals


def test_blocking_is_split_where_the_hole_moves_and_ends_with_the_run(tmp_path: FilePath) -> None:
    rows = [
        decision_row(0.1, "blocked", "path-1"),
        decision_row(0.2, "schedule", "path-2", "7"),
        decision_row(0.3, "blocked", "path-2"),
        decision_row(0.4, "unblocked"),
        decision_row(0.5, "blocked"),
        decision_row(0.5, "unblocked"),
        decision_row(0.8, "blocked"),
    ]
    frame = read_trace(write_trace(tmp_path / "run", decisions=rows)).blocked()
    assert frame[["start_s", "end_s"]].to_numpy().tolist() == [[0.1, 0.3], [0.3, 0.4], [0.8, 1.0]]
    assert frame["path"].isna().tolist() == [False, False, True]
    assert frame["path"].tolist()[:2] == ["path-1", "path-2"]


def test_a_timeout_that_lost_nothing_has_no_path(tmp_path: FilePath) -> None:
    rows = [decision_row(0.1, "timeout", "path-1"), decision_row(0.2, "timeout")]
    assert read_trace(write_trace(tmp_path / "run", decisions=rows)).timeouts()["path"].isna().tolist() == [False, True]


# Real sockets


def host_trace(folder: FilePath) -> Series:
    packets = [
        packet_row(0.1, "sent", 1),
        packet_row(0.2, "sent", 2),
        packet_row(0.2, "unroutable", 2),
        packet_row(0.3, "received", 900, direction="reverse"),
        packet_row(0.4, "received", 902, "path-2", direction="reverse"),
    ]
    write_trace(folder, packets=packets, paths=[path_row(0.0)], vantage="host", epoch_s=1.5e9)
    (folder / "queues.csv").unlink()
    return read_trace(folder)


def test_one_host_counts_sent_and_received_packets(tmp_path: FilePath) -> None:
    series = host_trace(tmp_path / "run")
    frame = series.throughput(1.0)
    shown = frame.set_index(["direction", "path"])[["throughput_kbps", "counted"]].T.to_dict("list")
    assert shown == {
        ("forward", "path-1"): [8.0, "sent"],
        ("forward", "path-2"): [0.0, "sent"],
        ("reverse", "path-1"): [8.0, "received"],
        ("reverse", "path-2"): [8.0, "received"],
    }
    assert series.out_of_order()["offset"].tolist() == [2]
    assert series.drops()["cause"].tolist() == ["unroutable"]


def test_one_host_knows_no_queues(tmp_path: FilePath) -> None:
    series = host_trace(tmp_path / "run")
    assert series.complete
    with pytest.raises(TraceError, match="does not know the queues"):
        series.queues()


# Empty traces


def test_run_without_events_has_empty_frames(tmp_path: FilePath) -> None:
    series = read_trace(write_trace(tmp_path / "run", ended_s=0.0))
    derived = ("retransmissions", "drops", "losses", "timeouts", "blocked", "out_of_order", "tsn", "sampled")
    for name in ("paths", "decisions", "packets", "queues", "throughput", *derived):
        frame = getattr(series, name)()
        assert isinstance(frame, pandas.DataFrame)
        assert len(frame) == 0, name
    assert list(series.throughput().columns) == ["time_s", *KEYS, "throughput_kbps", "counted"]
    assert list(series.blocked().columns) == ["start_s", "end_s", *KEYS]


def test_two_senders_that_wrote_the_same_file_are_an_error() -> None:
    flows = [Flow(name="a", direction="both"), Flow(name="a-reverse")]
    paths = [Path(rate="1 Mbit/s", delay="5 ms")]
    series = run(Scenario(run=RunSettings(duration="1 s"), paths=paths, flows=flows)).series
    with pytest.raises(TraceError, match=r"a-reverse-paths\.csv: two senders wrote this file: rename a flow"):
        series.paths()
    assert len(series.packets()) > 0


def test_run_without_senders_is_reported(tmp_path: FilePath) -> None:
    series = read_trace(write_trace(tmp_path / "run", sender=[]))
    assert len(series.packets()) == 0
    assert len(series.throughput()) == 0
    assert list(series.throughput().columns) == ["time_s", *KEYS, "throughput_kbps", "counted"]
    with pytest.raises(TraceError, match="no flow that sends data"):
        series.paths()
