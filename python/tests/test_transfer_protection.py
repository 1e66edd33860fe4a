"""Associations whose packets are protected, with keys in a folder."""

import asyncio
import sys
from pathlib import Path

import pytest
from conftest import keys_command

import anabranch as ab

HERE = "127.0.0.1:0"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 on loopback")


def keys(folder: Path, *arguments: str) -> str:
    return keys_command("--keys", str(folder), *arguments)


def own_key(folder: Path) -> str:
    return keys(folder, "show").splitlines()[0]


def test_messages_pass_between_authenticated_peers(tmp_path: Path) -> None:
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
                    assert (ours.peer_key, theirs.peer_key) == (own_key(server), own_key(client))

    asyncio.run(asyncio.wait_for(run(), 60))
    assert own_key(server) in (client / "known_hosts").read_text()


def test_unknown_keys_changed_keys_and_missing_protection_are_refused(tmp_path: Path) -> None:
    server, client, stranger = (tmp_path / name for name in ("server", "client", "stranger"))
    keys(server, "add", own_key(client))

    async def run() -> None:
        async with ab.listen(HERE, keys=server) as listener:
            for others in ({"keys": stranger}, {"insecure": True}):
                with pytest.raises(ab.transfer.ConnectError):
                    await ab.connect(listener.addresses, **others)
            keys(client, "add", "--host", listener.addresses[0], own_key(stranger))
            with pytest.raises(ab.transfer.ConnectError, match="shows a key other than before"):
                await ab.connect(listener.addresses, keys=client)
        with pytest.raises(ab.transfer.ArgumentError, match="no peer may connect"):
            await ab.listen(HERE, keys=stranger)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_keys_of_the_user_protect_by_default(own_keys: Path) -> None:
    async def run() -> None:
        async with ab.listen(HERE) as listener:
            async with ab.connect(listener.addresses) as ours, await listener.accept() as theirs:
                assert ours.peer_key == theirs.peer_key == own_key(own_keys)
            with pytest.raises(ab.transfer.ConnectError):
                await ab.connect(listener.addresses, insecure=True)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_insecure_on_both_sides_disables_protection() -> None:
    async def run() -> None:
        async with (
            ab.listen(HERE, insecure=True) as listener,
            ab.connect(listener.addresses, insecure=True) as ours,
            await listener.accept() as theirs,
        ):
            await ours.send(b"for everyone")
            message = await theirs.recv()
            assert message is not None
            assert message.payload == b"for everyone"
            assert ours.peer_key is None
            assert theirs.peer_key is None

    asyncio.run(asyncio.wait_for(run(), 60))


def test_keys_and_insecure_contradict_each_other(tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(ab.transfer.ArgumentError, match="omit one of them"):
            await ab.listen(HERE, keys=tmp_path, insecure=True)
        with pytest.raises(ab.transfer.ArgumentError, match="omit one of them"):
            await ab.connect("127.0.0.1", keys=tmp_path, insecure=True)
        assert not any(tmp_path.iterdir())

    asyncio.run(asyncio.wait_for(run(), 60))


def test_added_and_removed_keys_apply_while_listening(tmp_path: Path) -> None:
    server, first, second = (tmp_path / name for name in ("server", "first", "second"))
    keys(server, "add", own_key(first))

    async def admitted(listener: ab.transfer.Listener, folder: Path) -> bool:
        try:
            async with ab.connect(listener.addresses, keys=folder), await listener.accept():
                return True
        except ab.transfer.ConnectError:
            return False

    async def run() -> None:
        async with ab.listen(HERE, keys=server) as listener:
            assert await admitted(listener, first)
            assert not await admitted(listener, second)
            keys(server, "add", own_key(second))
            keys(server, "remove", own_key(first))
            while not await admitted(listener, second):
                await asyncio.sleep(0.1)
            assert not await admitted(listener, first)

    asyncio.run(asyncio.wait_for(run(), 60))
