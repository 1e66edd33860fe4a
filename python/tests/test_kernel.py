"""Links of namespaces, and the output of the measurements beside the kernel's TCP."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from studies.kernel import transfers
from studies.kernel.bridge import MAX_WAITING, OUTGOING, Direction
from studies.kernel.links import Link
from studies.kernel.transfers import Setting

INCOMING = 0


class Interface:
    """Packet socket with planted frames."""

    def __init__(self, *frames: tuple[bytes, int]) -> None:
        self.frames = list(frames)
        self.sent: list[bytes] = []
        self.is_full = False

    def recvfrom(self, _size: int) -> tuple[bytes, tuple[str, int, int]]:
        if not self.frames:
            raise BlockingIOError
        frame, kind = self.frames.pop(0)
        return frame, ("one", 0x800, kind)

    def send(self, frame: bytes) -> None:
        if self.is_full:
            raise OSError("No buffer space available")
        self.sent.append(frame)


def direction(source: Any, sink: Any, delay_s: float = 0.02, loss: float = 0.0) -> Direction:
    return Direction(source, sink, delay_s, loss, seed=1)


def test_frames_leave_after_the_delay_and_in_order() -> None:
    source, sink = Interface((b"a", INCOMING), (b"b", INCOMING)), Interface()
    way = direction(source, sink)
    way.take(now=1.0)
    assert way.due() == pytest.approx(1.02)
    way.give(now=1.019)
    assert sink.sent == []
    way.give(now=1.021)
    assert sink.sent == [b"a", b"b"]
    assert way.due() is None


def test_frames_sent_by_the_bridge_are_not_forwarded_again() -> None:
    source, sink = Interface((b"echo", OUTGOING), (b"a", INCOMING)), Interface()
    way = direction(source, sink, delay_s=0.0)
    way.take(now=1.0)
    way.give(now=1.0)
    assert sink.sent == [b"a"]


def test_the_share_of_frames_that_is_lost_is_the_one_asked_for() -> None:
    count = 20_000
    source, sink = Interface(*[(b"a", INCOMING)] * count), Interface()
    way = direction(source, sink, loss=0.1)
    way.take(now=1.0)
    way.give(now=2.0)
    # Four standard deviations of a binomial distribution.
    assert abs(len(sink.sent) / count - 0.9) < 4 * (0.1 * 0.9 / count) ** 0.5


def test_interrupted_link_loses_packets_in_flight_and_none_afterwards() -> None:
    source, sink = Interface((b"a", INCOMING)), Interface()
    way = direction(source, sink)
    way.take(now=1.0)
    way.set_up(False)
    way.give(now=2.0)
    way.set_up(True)
    source.frames.append((b"b", INCOMING))
    way.take(now=3.0)
    way.give(now=4.0)
    assert sink.sent == [b"b"]


def test_a_frame_that_finds_a_full_queue_is_lost() -> None:
    source, sink = Interface((b"a", INCOMING)), Interface()
    way = direction(source, sink)
    sink.is_full = True
    way.take(now=1.0)
    way.give(now=2.0)
    assert (sink.sent, way.due()) == ([], None)


def test_frames_in_flight_are_bounded() -> None:
    source, sink = Interface(*[(b"a", INCOMING)] * (MAX_WAITING + 10)), Interface()
    way = direction(source, sink)
    way.take(now=1.0)
    way.give(now=2.0)
    assert len(sink.sent) == MAX_WAITING


def test_times_are_shown_with_range_and_missing_frames() -> None:
    assert transfers.shown([2.0, 1.0, 4.0]) == "2.0 s (1.0 to 4.0)"
    assert transfers.shown([2.0, None]) == "2.0 s (2.0 to 2.0), 1 of 2 did not arrive"
    assert transfers.shown([None]) == "did not arrive"


def test_a_setting_is_named_by_its_links() -> None:
    setting = Setting((Link(50, delay_ms=10), Link(5, loss=0.01)), 1_000, outage=True)
    assert str(setting) == "50 Mbit/s, 10 ms + 5 Mbit/s, 1% loss, first link down from 2 to 6 s"


TOOLS = ("ip", "tc", "ethtool", "nsenter", "unshare")


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS),
    reason="needs root on Linux with iproute2 and ethtool",
)
def test_a_file_crosses_links_between_namespaces(tmp_path: Path) -> None:
    payload = tmp_path / "payload.bin"
    payload.write_bytes(os.urandom(300_000))
    script = (
        "import sys; from pathlib import Path\n"
        "from studies.kernel.links import Link, Network; from studies.kernel.peers import Kernel\n"
        "network = Network([Link(20, delay_ms=5), Link(8)])\n"
        "try:\n"
        "    network.allow_mptcp()\n"
        "    print(Kernel('cubic').send_file(network, Path(sys.argv[1])))\n"
        "finally:\n"
        "    network.close()\n"
    )
    root = Path(__file__).resolve().parents[2]
    command = ["unshare", "-n", sys.executable, "-c", script, str(payload)]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(root)}
    )
    # 300 kB need 0.12 s at 20 Mbit/s, and a connection a round trip of 10 ms.
    assert float(run.stdout) > 0.13
