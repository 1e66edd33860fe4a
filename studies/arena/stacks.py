"""Stacks that are compared, and the programs that each of them needs in a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.arena.network import Network
from studies.arena.peer import PORT
from studies.arena.works import MESSAGES_PER_S, Work

PEERS = Path(__file__).parent / "peers"
"""Cargo workspace of the program for the stacks with a library in Rust."""

NATIVE_PEER = PEERS / "target" / "release" / "arena-peer"


@dataclass(frozen=True, slots=True)
class Stack:
    """Stack with the options that it adds to sender and receiver. Subclasses prepare the network for it."""

    name: str
    words: tuple[str, ...]

    def prepare(self, network: Network) -> None:
        """Changes the kernel's settings in the namespaces."""

    def receiver(self, network: Network, work: Work) -> list[str]:
        """Returns the command of the receiver, in the server's namespace."""
        return network.server.command(self._peer("receive", network, work))

    def sender(self, network: Network, work: Work) -> list[str]:
        """Returns the command of the sender, in the client's namespace."""
        remotes = [word for number in self.reached(network) for word in ("--remote", network.server_address(number))]
        return network.client.command([*self._peer("send", network, work), *remotes])

    def reached(self, network: Network) -> Iterable[int]:
        """Returns the numbers of the links whose server address the sender connects to."""
        return [1]

    def _peer(self, role: str, network: Network, work: Work) -> list[str]:
        options = [
            f"--work={work.kind}",
            f"--seconds={work.seconds:g}",
            f"--bytes={work.size}",
            f"--per-s={MESSAGES_PER_S}",
            f"--start-ms={network.clock.start_ms}",
        ]
        return [*self._program(), role, *options, *self.words]

    def _program(self) -> list[str]:
        return [sys.executable, "-m", "studies.arena.peer"]


@dataclass(frozen=True, slots=True)
class Tcp(Stack):
    """TCP of the kernel over one link."""

    link: int = 1

    def reached(self, network: Network) -> Iterable[int]:
        return [self.link]


@dataclass(frozen=True, slots=True)
class Mptcp(Stack):
    """MPTCP of the kernel over all links, of which those after the first may be backups (RFC 8684 section 3.3.8)."""

    backup: bool = False

    def prepare(self, network: Network) -> None:
        for side in (network.client, network.server):
            side.run("ip mptcp limits set subflow 8 add_addr_accepted 8")
        flags = "signal backup" if self.backup else "signal"
        for number in network.numbers[1:]:
            network.server.run(f"ip mptcp endpoint add {network.server_address(number)} dev s{number} {flags}")


@dataclass(frozen=True, slots=True)
class Anabranch(Stack):
    """`anabranch` over all links, without encryption as the kernel's TCP."""

    def receiver(self, network: Network, work: Work) -> list[str]:
        return [*Stack.receiver(self, network, work), *_local(network.server_address(n) for n in network.numbers)]

    def sender(self, network: Network, work: Work) -> list[str]:
        return [*Stack.sender(self, network, work), *_local(network.client_address(n) for n in network.numbers)]

    def reached(self, network: Network) -> Iterable[int]:
        return network.numbers


@dataclass(frozen=True, slots=True)
class Native(Stack):
    """Multipath QUIC or aggligator over all links, by the program in `peers`."""

    def receiver(self, network: Network, work: Work) -> list[str]:
        return [*Stack.receiver(self, network, work), *_local(_with_port(network.server_address, network))]

    def sender(self, network: Network, work: Work) -> list[str]:
        remotes = [word for address in _with_port(network.server_address, network) for word in ("--remote", address)]
        locals_ = _local(f"{network.client_address(number)}:0" for number in network.numbers)
        return network.client.command([*self._peer("send", network, work), *remotes, *locals_])

    def _program(self) -> list[str]:
        return [str(NATIVE_PEER)]


def _with_port(address_of: Callable[[int], str], network: Network) -> Iterator[str]:
    return (f"{address_of(number)}:{PORT}" for number in network.numbers)


def _local(addresses: Iterable[str]) -> list[str]:
    return [word for address in addresses for word in ("--local", address)]


def _tcp(control: str, link: int) -> Tcp:
    return Tcp(f"tcp-{control}-{link}", ("--stack=tcp", f"--control={control}"), link=link)


def _anabranch(scheme: str) -> Anabranch:
    return Anabranch(scheme, ("--stack=anabranch", f"--scheme={scheme}"))


STACKS: Sequence[Stack] = (
    _tcp("cubic", 1),
    _tcp("cubic", 2),
    _tcp("bbr", 1),
    _tcp("bbr", 2),
    Mptcp("mptcp", ("--stack=mptcp",)),
    Mptcp("mptcp-backup", ("--stack=mptcp",), backup=True),
    _anabranch("braid"),
    _anabranch("bonded"),
    _anabranch("cmt"),
    Native("tquic", ("--stack=tquic",)),
    Native("aggligator", ("--stack=aggligator",)),
)
"""All stacks, with the number of the link in the name of those that use one."""
