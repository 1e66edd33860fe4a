"""Traces of real sockets, read like those of simulations."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from anabranch.series import Series, read_trace

COMMAND = "import sys; from anabranch import _native; sys.exit(_native.command(['anabranch', *sys.argv[1:]]))"
PATHS = ("127.0.0.1", "127.0.0.2")
BYTES = 300_000


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", COMMAND, *arguments]


@pytest.fixture(scope="module")
def both_ends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Series, Series]:
    """Traces of client and server of one test in which both sent, over two paths of loopback."""
    folder = tmp_path_factory.mktemp("sockets")
    listening = [part for path in PATHS for part in ("--listen", f"{path}:0")]
    traced = {end: ("--trace", str(folder / end)) for end in ("client", "server")}
    server = subprocess.Popen(
        command("bench", "-s", "-1", "--json-stream", "-q", "--insecure", *listening, *traced["server"]),
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        port = json.loads(server.stdout.readline())["data"]["addresses"][0].rpartition(":")[2]
        sending = ["--bidir", "-n", str(BYTES), "-J", "-q", *(part for path in PATHS for part in ("--path", path))]
        client = command("bench", "-c", f"{PATHS[0]}:{port}", "--insecure", *sending, *traced["client"])
        subprocess.run(client, check=True, stdout=subprocess.DEVNULL, timeout=60)
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.communicate()
    return read_trace(folder / "client"), read_trace(folder / "server")


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 on loopback")


def test_socket_series_name_their_host(both_ends: tuple[Series, Series]) -> None:
    for series in both_ends:
        assert series.complete, series.notes
        assert series.manifest["vantage"] == "host"
        assert "seed" not in series.manifest
        assert series.end_s > 0


def test_sent_data_equals_received_data_of_the_peer(both_ends: tuple[Series, Series]) -> None:
    for here, there in (both_ends, reversed(both_ends)):
        sent, received = here.tsn(), there.tsn()
        sent = sent[(sent["direction"] == "forward") & (sent["event"] == "sent")]
        received = received[(received["direction"] == "reverse") & (received["event"] == "received")]
        assert len(sent) >= BYTES / 65_535
        assert set(sent["tsn"]) == set(received["tsn"])
        assert len(sent) - sent["tsn"].nunique() == len(here.retransmissions())


def test_throughput_counts_sent_and_received_bytes(both_ends: tuple[Series, Series]) -> None:
    for series in both_ends:
        frame = series.throughput(every_s=10.0)
        width_s = (series.end_s - frame["time_s"]).clip(upper=10.0)
        by_direction = (frame["throughput_kbps"] * width_s * 125).groupby(frame["direction"], observed=True).sum()
        assert (by_direction >= BYTES).all()
        assert frame.groupby("direction", observed=True)["counted"].first().to_dict() == {
            "forward": "sent",
            "reverse": "received",
        }


def test_paths_and_decisions_are_those_of_the_end_that_sends(both_ends: tuple[Series, Series]) -> None:
    for series in both_ends:
        assert set(series.paths()["direction"]) == set(series.decisions()["direction"]) == {"forward"}
        assert {"path-1", "path-2"} <= set(series.paths()["path"])
        assert len(series.sampled(0.001)) > 0
        assert "schedule" in set(series.decisions()["decision"])
        assert set(series.out_of_order()["direction"]) == {"reverse"}
