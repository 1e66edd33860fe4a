"""Links with a rate, a queue, a delay and a loss, between two network namespaces of the measurement."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

BRIDGE = Path(__file__).with_name("bridge.py")


@dataclasses.dataclass(frozen=True)
class Link:
    """One link. Rate, queue and delay apply in each direction, the loss in that to the server."""

    rate_mbps: float
    queue_bytes: int = 90_000
    delay_ms: float = 0.0
    loss: float = 0.0

    def __str__(self) -> str:
        text = f"{self.rate_mbps:g} Mbit/s"
        if self.delay_ms:
            text += f", {self.delay_ms:g} ms"
        return text + (f", {self.loss:.0%} loss" if self.loss else "")


class Namespace:
    """Network namespace of an idle process, which ends with this one."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
        self.pid = self._keeper.pid
        # The namespace exists once it differs from the own one.
        while os.readlink(f"/proc/{self.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)

    def command(self, words: Sequence[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", *words]

    def run(self, command: str) -> None:
        subprocess.run(self.command(shlex.split(command)), check=True, capture_output=True)

    def close(self) -> None:
        # The process ends with its input.
        self._keeper.communicate()


class Network:
    """Namespaces of a client and a server with links between them, whose queues and delays are in a third one."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = list(links)
        self.client, self.server, self._middle = Namespace(), Namespace(), Namespace()
        self._bridges: list[subprocess.Popen[str]] = []
        for side in (self.client, self.server, self._middle):
            side.run("ip link set lo up")
        for number, link in enumerate(self.links, 1):
            self._build(number, link)

    @property
    def numbers(self) -> range:
        """Numbers of the links, from 1."""
        return range(1, len(self.links) + 1)

    def client_address(self, number: int) -> str:
        return f"10.91.{number}.1"

    def server_address(self, number: int) -> str:
        return f"10.91.{number}.2"

    def _build(self, number: int, link: Link) -> None:
        ends = ((self.client, "c", self.client_address(number)), (self.server, "s", self.server_address(number)))
        for side, letter, address in ends:
            device, inner = f"{letter}{number}", f"m{letter}{number}"
            side.run(f"ip link add {device} type veth peer name {inner} netns {self._middle.pid}")
            side.run(f"ip addr add {address}/24 dev {device}")
            # Packets as on a wire: none longer than the MTU, and all with a checksum.
            side.run(f"ethtool -K {device} tx off sg off tso off gso off gro off")
            side.run(f"ip link set {device} up")
            self._middle.run(f"ethtool -K {inner} gro off")
            self._middle.run(f"ip link set {inner} up")
            rate = f"rate {round(link.rate_mbps * 1000)}kbit burst 16kb limit {link.queue_bytes}"
            self._middle.run(f"tc qdisc add dev {inner} root tbf {rate}")
        options = ["--delay-ms", str(link.delay_ms), "--loss", str(link.loss), "--seed", str(number)]
        command = [sys.executable, str(BRIDGE), f"mc{number}", f"ms{number}", *options]
        bridge = subprocess.Popen(
            self._middle.command(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._bridges.append(bridge)
        if bridge.stdout is None or not bridge.stdout.readline():
            raise RuntimeError(f"link {number} is not bridged: see the error above")

    def allow_mptcp(self) -> None:
        """Makes the server announce its further addresses, to each of which the client opens a subflow."""
        for side in (self.client, self.server):
            side.run("ip mptcp limits set subflow 8 add_addr_accepted 8")
        for number in self.numbers[1:]:
            self.server.run(f"ip mptcp endpoint add {self.server_address(number)} dev s{number} signal")

    @contextlib.contextmanager
    def outage(self, number: int, begins_s: float, ends_s: float) -> Iterator[None]:
        """Interrupts a link from `begins_s` to `ends_s` after now, without a notification of either end."""
        bridge = self._bridges[number - 1]
        timers = [
            threading.Timer(begins_s, bridge.send_signal, [signal.SIGUSR1]),
            threading.Timer(ends_s, bridge.send_signal, [signal.SIGUSR2]),
        ]
        for timer in timers:
            timer.start()
        try:
            yield
        finally:
            for timer in timers:
                timer.join()

    def close(self) -> None:
        for process in self._bridges:
            process.kill()
            process.wait()
        for side in (self.client, self.server, self._middle):
            side.close()
