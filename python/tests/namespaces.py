"""Client and server in network namespaces, with two links whose cables are pulled."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest
from transfer_rig import HANGS_AFTER_S, environment


class Namespace:
    """Network namespace and the programs in it. The namespace is removed when the process that owns it ends."""

    def __init__(self, folder: Path, inside: Namespace | None = None) -> None:
        self.home = folder
        root = ["-n"] if os.getuid() == 0 else ["-Urn"]
        unshare = ["unshare", *root] if inside is None else inside.command(["unshare", "-n"])
        command = [*unshare, "sh", "-c", "echo there; exec cat"]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.permitted = first_line(self._holder.stdout) == "there\n"

    def command(self, words: Sequence[str]) -> list[str]:
        user = [] if os.getuid() == 0 else ["-U", "--preserve-credentials"]
        return ["nsenter", "-t", str(self._holder.pid), "-n", *user, "--", *words]

    def run(self, *commands: str) -> None:
        for command in commands:
            subprocess.run(self.command(shlex.split(command)), check=True, capture_output=True)

    @contextlib.contextmanager
    def program(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Runs Python with a key folder of its own, and ends it afterwards if it still runs."""
        variables = {**environment(), "ANABRANCH_HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}
        command = self.command([sys.executable, *words])
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=variables, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def output(self, *words: str) -> str:
        with self.program(*words) as process:
            return finish(process)

    def close(self) -> None:
        # The process ends when its input is closed.
        self._holder.communicate()


def finish(process: subprocess.Popen[str]) -> str:
    """Returns the remaining output of a program that has to succeed."""
    out, err = process.communicate(timeout=HANGS_AFTER_S)
    assert process.returncode == 0, err
    return out


def first_line(stream: IO[str] | None) -> str:
    """Waits for a line of a program, and returns it."""
    return _stream(stream).readline()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextlib.contextmanager
def two_links(folder: Path) -> Iterator[tuple[Namespace, Namespace]]:
    """Yields a client and a server with two links of 20 Mbit/s.

    Link N goes from 10.92.N.1 on `cN` to 10.92.N.2 on `sN`. The server authorises the client's key. Skips the test
    where namespaces are not permitted.
    """
    client = Namespace(folder / "client")
    server = None
    try:
        if not client.permitted:
            pytest.skip("network namespaces are not permitted here")
        server = Namespace(folder / "server", inside=client)
        for number in (1, 2):
            _add_link(client, server, number)
        key = client.output("-m", "anabranch", "keys", "show").splitlines()[0]
        server.output("-m", "anabranch", "keys", "add", key, "client")
        yield client, server
    finally:
        for namespace in (server, client):
            if namespace is not None:
                namespace.close()


def _add_link(client: Namespace, server: Namespace, number: int) -> None:
    near, far = f"c{number}", f"s{number}"
    client.run(f"ip link add {near} type veth peer name {far} netns {server._holder.pid}")
    for namespace, device, host in ((client, near, 1), (server, far, 2)):
        namespace.run(
            "ip link set lo up",
            f"ip addr add 10.92.{number}.{host}/24 dev {device}",
            f"ip link set {device} up",
            f"tc qdisc add dev {device} root tbf rate 20mbit burst 16kb limit 90kb",
        )
