"""Senders over the links: the kernel's TCP and MPTCP, and `anabranch`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .links import Network

TCP_PEER = Path(__file__).with_name("tcp_peer.py")
TCP_PORT = 9797
UDP_PORT = 9899
GIVE_UP_S = 180
# Seconds that TCP sends after its measurement, while the queued data of the other flow still counts.
DRAIN_S = 5


@contextlib.contextmanager
def serving(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Runs a server that prints a line when it is ready."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"{command[-1]} did not start: see the error above")
        yield process
    finally:
        process.terminate()
        process.wait()


def timed(command: Sequence[str]) -> float | None:
    """Returns the duration of a command in seconds; `None` if it fails."""
    began = time.monotonic()
    try:
        ended = subprocess.run(command, check=False, timeout=GIVE_UP_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return None
    if ended.returncode != 0:
        print(ended.stderr, file=sys.stderr)
        return None
    return time.monotonic() - began


@dataclasses.dataclass(frozen=True)
class Kernel:
    """TCP over the first link, or MPTCP over all."""

    control: str
    multipath: bool = False

    def __str__(self) -> str:
        return f"{'MPTCP' if self.multipath else 'TCP'} {self.control}"

    def _command(self, port: int, *words: str) -> list[str]:
        command = [sys.executable, str(TCP_PEER), *words, "--port", str(port)]
        return [*command, "--mptcp"] if self.multipath else command

    def _send(self, network: Network, port: int, *words: str) -> list[str]:
        command = self._command(port, "send", network.server_address(1), "--control", self.control, *words)
        return network.client.command(command)

    def send_file(self, network: Network, payload: Path) -> float | None:
        """Returns the seconds until the client knows that the server has the whole file; `None` on failure."""
        with serving(network.server.command(self._command(TCP_PORT, "receive"))):
            return timed(self._send(network, TCP_PORT, "--file", str(payload)))

    def carry(self, network: Network, omit_s: float, seconds: float, port: int) -> float:
        """Returns the Mbit/s of user data that arrive in `seconds`, after `omit_s` that do not count."""
        receive = self._command(port, "receive", "--omit-s", str(omit_s), "--seconds", str(seconds))
        with serving(network.server.command(receive)) as server:
            subprocess.run(self._send(network, port, "--seconds", str(omit_s + seconds + DRAIN_S)), check=True)
            assert server.stdout is not None
            return int(server.stdout.readline()) * 8 / seconds / 1e6


@dataclasses.dataclass(frozen=True)
class Anabranch:
    """`anabranch` over all links, with a scheme, and without encryption as the kernel's TCP."""

    program: str
    scheme: str

    def __str__(self) -> str:
        return f"anabranch {self.scheme}"

    def _server(self, network: Network, *words: str) -> list[str]:
        listens = [word for n in network.numbers for word in ("--listen", network.server_address(n))]
        return network.server.command([self.program, *words, "--insecure", *listens])

    def _client(self, network: Network, port: int, *words: str) -> list[str]:
        paths = [
            word
            for n in network.numbers
            for word in ("--path", network.client_address(n), "--to", f"{network.server_address(n)}:{port}")
        ]
        return network.client.command([self.program, *words, "--insecure", "--scheme", self.scheme, *paths])

    def send_file(self, network: Network, payload: Path) -> float | None:
        """Sends as `Kernel.send_file`; the time includes the start of the process and the transfer protocol."""
        with tempfile.TemporaryDirectory() as inbox:
            serve = self._server(network, "serve", "--json", "--dir", inbox, "--allow", "write")
            with serving(serve):
                return timed(
                    self._client(network, UDP_PORT, "send", "--quiet", str(payload), network.server_address(1))
                )

    def carry(self, network: Network, omit_s: float, seconds: float, port: int) -> float:
        """Measures as `Kernel.carry`."""
        with serving(self._server(network, "bench", "--server", "--json", "--port", str(port))):
            words = ["bench", "--client", network.server_address(1), "--json", "--interval", "0"]
            words += ["--time", f"{seconds:g}", "--omit", f"{omit_s:g}"]
            ended = subprocess.run(self._client(network, port, *words), check=True, capture_output=True, text=True)
        return float(json.loads(ended.stdout)["end"]["forward"]["receiver"]["bits_per_second"]) / 1e6
