"""Ways of a connection from the client to the server: directly, or through a forwarder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from anabranch.errors import AnabranchError
from studies.forwarding.program import DATA_PORT, ECHO_PORT
from studies.kernel.links import Namespace

PORTS = (DATA_PORT, ECHO_PORT)
AGGREGATED_PORT = 9900


class Joined(Protocol):
    """Namespaces of a client and a server, and the links between them."""

    client: Namespace
    server: Namespace

    @property
    def numbers(self) -> range:
        """Numbers of the links, from 1."""

    def client_address(self, number: int) -> str:
        """Returns the address of the client on a link."""

    def server_address(self, number: int) -> str:
        """Returns the address of the server on a link."""


@dataclass(frozen=True, slots=True)
class Way:
    """Programs between client and server. Without any, the kernel's TCP over the first link."""

    name: str

    def prepare(self, network: Joined) -> None:
        """Changes the kernel's settings in the namespaces."""

    def wrapped(self, words: Sequence[str]) -> list[str]:
        """Returns the command of the client or server that takes this way."""
        return list(words)

    def helpers(self, network: Joined, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        """Returns the commands between client and server, in the order of their start, with their environment."""
        return []

    def host(self, network: Joined) -> str:
        """Returns the address that the client connects to."""
        return network.server_address(1)


@dataclass(frozen=True, slots=True)
class Mptcp(Way):
    """MPTCP of the kernel over all links, for programs that use TCP."""

    def prepare(self, network: Joined) -> None:
        for side in (network.client, network.server):
            side.run("ip mptcp limits set subflow 8 add_addr_accepted 8")
        for number in network.numbers[1:]:
            network.server.run(f"ip mptcp endpoint add {network.server_address(number)} dev s{number} signal")

    def wrapped(self, words: Sequence[str]) -> list[str]:
        return ["mptcpize", "run", *words]


@dataclass(frozen=True, slots=True)
class Aggligator(Way):
    """`agg-tunnel` over all links, with a TCP connection for each."""

    program: str

    def helpers(self, network: Joined, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        served = [word for port in PORTS for word in ("--port", str(port))]
        server = [self.program, "server", "--no-monitor", "--tcp", str(AGGREGATED_PORT), *served]
        wanted = [word for port in PORTS for word in ("--port", f"{port}:{port}")]
        targets = [word for number in network.numbers for word in ("--tcp", _with_port(network, number))]
        client = [self.program, "client", "--no-monitor", *targets, *wanted]
        return [(network.server.command(server), {}), (network.client.command(client), {})]

    def host(self, network: Joined) -> str:
        return "127.0.0.1"


def _with_port(network: Joined, number: int) -> str:
    return f"{network.server_address(number)}:{AGGREGATED_PORT}"


@dataclass(frozen=True, slots=True)
class Forward(Way):
    """`anabranch forward` and `anabranch gateway` over all links."""

    program: Path

    def helpers(self, network: Joined, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
        client, server = ({"ANABRANCH_HOME": str(folder / side), "XDG_RUNTIME_DIR": str(folder)} for side in "cs")
        key = self._keys(client, "show").splitlines()[0]
        self._keys(server, "add", key, "client")
        listens = [word for number in network.numbers for word in ("--listen", network.server_address(number))]
        gateway = [str(self.program), "gateway", "--json", "--allow", "127.0.0.1:*", *listens]
        forward = [str(self.program), "forward", network.server_address(1), "--json"]
        for port in PORTS:
            forward += ["-L", f"{port}:127.0.0.1:{port}"]
        for number in network.numbers:
            forward += ["--path", network.client_address(number), "--to", f"{network.server_address(number)}:9899"]
        return [(network.server.command(gateway), server), (network.client.command(forward), client)]

    def host(self, network: Joined) -> str:
        return "127.0.0.1"

    def _keys(self, environment: dict[str, str], *words: str) -> str:
        command = [str(self.program), "keys", *words]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AnabranchError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout


def ways(program: Path, aggregated: str) -> list[Way]:
    """Returns all ways, for the commands of this project and of aggligator."""
    return [
        Way("TCP over the first link"),
        Mptcp("MPTCP (`mptcpize`)"),
        Aggligator("aggligator (`agg-tunnel`)", aggregated),
        Forward("`anabranch forward`", program),
    ]
