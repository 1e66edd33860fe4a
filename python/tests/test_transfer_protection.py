"""Associations whose packets are protected, with keys in a folder."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab

HERE = "127.0.0.1:0"
COMMAND = [sys.executable, "-c", "import sys; from anabranch.command import main; sys.exit(main(sys.argv[1:]))"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 on loopback")


def keys(folder: Path, *arguments: str) -> str:
    command = [*COMMAND, "keys", "--keys", str(folder), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def own_key(folder: Path) -> str:
    return keys(folder, "show").splitlines()[0]


def test_messages_pass_between_those_who_know_each_other(tmp_path: Path) -> None:
    server, client = tmp_path / "server", tmp_path / "client"
    keys(server, "add", own_key(client))

    async def run() -> None:
        async with ab.listen(HERE, keys=server) as listener:
            for _ in range(2):  # at first use, and known
                async with (
                    ab.connect(listener.addresses, keys=client) as ours,
                    await listener.accept() as theirs,
                ):
                    await ours.send(b"secret")
                    message = await theirs.recv()
                    assert message is not None
                    assert message.payload == b"secret"

    asyncio.run(asyncio.wait_for(run(), 60))
    assert own_key(server) in (client / "known_hosts").read_text()


def test_strangers_hosts_with_another_key_and_those_without_protection_are_refused(tmp_path: Path) -> None:
    server, client, stranger = (tmp_path / name for name in ("server", "client", "stranger"))
    keys(server, "add", own_key(client))

    async def run() -> None:
        async with ab.listen(HERE, keys=server) as listener:
            for others in ({"keys": stranger}, {}):
                with pytest.raises(ab.transfer.ConnectError):
                    await ab.connect(listener.addresses, **others)
            keys(client, "add", "--host", listener.addresses[0], own_key(stranger))
            with pytest.raises(ab.transfer.ConnectError, match="shows another key than before"):
                await ab.connect(listener.addresses, keys=client)
        with pytest.raises(ab.transfer.ListenError, match="nobody may connect"):
            await ab.listen(HERE, keys=stranger)

    asyncio.run(asyncio.wait_for(run(), 60))
