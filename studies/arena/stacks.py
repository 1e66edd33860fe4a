"""Stacks that are compared, and the programs that each of them needs in a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studies.arena.network import Network
from studies.arena.works import MESSAGES_PER_S, Work


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
        return [sys.executable, "-m", "studies.arena.peer", role, *options, *self.words]


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
)
"""All stacks, with the number of the link in the name of those that use one."""
