"""Client and server in network namespaces, joined by links of the simulator.

The ends of a link are TUN devices. `arena-link` passes their IP packets through the link model, so that the stacks
of all transport protocols cross the same links.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from anabranch.errors import AnabranchError
from studies.kernel.links import Namespace

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU_BYTES = 1500

PRIORITY = ["chrt", "--rr", "10"]
"""Start of the command of every program of a run, so that other programs of the machine delay it less."""

LINK_PRIORITY = ["chrt", "--rr", "20"]
"""The same for links, which the programs of runs side by side must not delay."""

_naming = threading.Lock()
"""Held while a device has a name in the own namespace, where the names of runs side by side would be equal."""


class Clock:
    """Time zero of all links and programs of a run, which lies ahead while they start."""

    def __init__(self, ahead_s: float) -> None:
        self.start_ms = round((time.monotonic() + ahead_s) * 1000)
        """Time zero, in milliseconds of the system's monotonic clock."""

    def elapsed_s(self) -> float:
        return time.monotonic() - self.start_ms / 1000


class EmulatedLink:
    """Process that connects two TUN devices, and its latest counters."""

    def __init__(self, program: Path, text: str, start_ms: int, seed: int, devices: tuple[int, int]) -> None:
        command = [*LINK_PRIORITY, str(program), "--link", text, "--start-ms", str(start_ms), "--seed", str(seed)]
        near, far = devices
        self._process = subprocess.Popen(command, stdin=near, stdout=far, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        first = self._process.stderr.readline()
        if not first.startswith("{"):
            self._process.wait()
            raise AnabranchError(f"arena-link --link '{text}': {(first + self._process.stderr.read()).strip()}")
        self.counters: dict[str, Any] = json.loads(first)
        self._reader = threading.Thread(target=self._follow, args=[self._process.stderr], daemon=True)
        self._reader.start()

    def _follow(self, lines: IO[str]) -> None:
        for line in lines:
            # The last line may be incomplete.
            with contextlib.suppress(ValueError):
                self.counters = json.loads(line)

    def current(self, clock: Clock) -> dict[str, Any]:
        """Waits for counters that include all packets until now, and returns them."""
        now = clock.elapsed_s()
        while self._process.poll() is None and self.counters["elapsed_s"] < now:
            time.sleep(0.02)
        return self.counters

    def close(self) -> None:
        self._process.terminate()
        self._reader.join()
        with self._process:
            pass


class Network:
    """Namespaces of a client and a server, and the links between them. The forward direction leads to the server."""

    def __init__(self, program: Path, links: Sequence[str], clock: Clock) -> None:
        """Builds a network of links in the notation of `anabranch relay --link`."""
        self.clock = clock
        self.links: list[EmulatedLink] = []
        self.client, self.server = Namespace(), Namespace()
        try:
            for side in (self.client, self.server):
                side.run("ip link set lo up")
            for number, text in enumerate(links, 1):
                with _open_devices() as devices:
                    near = (self.client, f"c{number}", self.client_address(number))
                    far = (self.server, f"s{number}", self.server_address(number))
                    for device, (side, name, address) in zip(devices, (near, far), strict=True):
                        _attach(device, side, name, address)
                    self.links.append(EmulatedLink(program, text, clock.start_ms, number, devices))
        except BaseException:
            self.close()
            raise

    @property
    def numbers(self) -> range:
        """Numbers of the links, from 1."""
        return range(1, len(self.links) + 1)

    def client_address(self, number: int) -> str:
        return f"10.91.{number}.1"

    def server_address(self, number: int) -> str:
        return f"10.91.{number}.2"

    def late_us(self) -> float:
        """Returns the largest mean time by which a link has delivered packets late."""
        return float(max(link.current(self.clock)["late_mean_us"] for link in self.links))

    def close(self) -> None:
        for link in self.links:
            link.close()
        for side in (self.client, self.server):
            side.close()


@contextlib.contextmanager
def _open_devices() -> Iterator[tuple[int, int]]:
    """Opens the TUN driver for both ends of a link. The emulator has its own descriptors afterwards."""
    near, far = (os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC) for _ in range(2))
    try:
        yield near, far
    finally:
        os.close(near)
        os.close(far)


def _attach(device: int, side: Namespace, name: str, address: str) -> None:
    """Creates the interface of an open device in a namespace."""
    # The device is created in the own namespace, where its name must be free.
    first = f"ar{os.getpid()}{name}"
    move = ["ip", "link", "set", first, "netns", str(side.pid), "name", name]
    with _naming:
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", first.encode(), IFF_TUN | IFF_NO_PI))
        subprocess.run(move, check=True, capture_output=True)
    side.run(f"ip addr add {address}/24 dev {name}")
    # Without a link-local address the kernel sends no packets of its own.
    side.run(f"ip link set {name} addrgenmode none")
    side.run(f"ip link set {name} mtu {MTU_BYTES} up")
