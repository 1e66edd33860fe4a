"""Paths: their states and statistics, addition and removal."""

from __future__ import annotations

import asyncio

import pytest
from transfer_rig import here, in_loop, listening, pair, until

import anabranch
from anabranch.transfer import ArgumentError, AssociationClosedError


async def routes(association):
    return [(path.local, path.remote) for path in await association.paths()]


async def are_active(association, paths):
    return [path.state for path in await association.paths()] == ["active"] * paths


@in_loop
async def test_local_addresses_and_those_of_the_peer_are_paired_in_their_order():
    async with listening(paths=3) as listener:
        expected = list(zip(here(3, 1), listener.addresses, strict=True))
        async with anabranch.connect(listener.addresses, local=here(3, 1)) as ours:
            assert await routes(ours) == expected
            assert [path.primary for path in await ours.paths()] == [True, False, False]
        async with anabranch.connect(reversed(expected)) as ours:
            assert await routes(ours) == expected[::-1]


@in_loop
async def test_one_address_of_the_peer_is_for_all_local_addresses():
    async with listening() as listener:
        target = listener.addresses[0]
        async with anabranch.connect(target, local=here(2, 1)) as ours:
            assert await routes(ours) == [(local, target) for local in here(2, 1)]
        async with anabranch.connect([("127.0.1.1", target)]) as ours:
            assert await routes(ours) == [("127.0.1.1", target)]


@in_loop
async def test_without_local_addresses_the_machine_is_asked():
    async with listening() as listener:
        async with anabranch.connect(listener.addresses) as ours:
            assert await routes(ours) == [("127.0.0.1", listener.addresses[0])]
        async with anabranch.connect(listener.addresses[0], local="lo") as ours:
            assert ("127.0.0.1", listener.addresses[0]) in await routes(ours)


@in_loop
async def test_ipv6_and_names_are_understood():
    async with anabranch.listen("[::1]:0") as listener, anabranch.connect(listener.addresses) as ours:
        assert await routes(ours) == [("::1", listener.addresses[0])]
    async with listening() as listener:
        port = listener.addresses[0].rsplit(":", 1)[1]
        async with anabranch.connect(f"localhost:{port}", local="127.0.0.1") as ours:
            assert await routes(ours) == [("127.0.0.1", listener.addresses[0])]
            assert ours.peer == f"localhost:{port}"


@in_loop
async def test_bytes_of_each_path_are_shown():
    # Copies of messages use the other path too, in a number that depends on the machine. Messages of the key management
    # would count as well.
    async with pair(paths=2, scheme="cmt+redundant", insecure=True) as (ours, theirs):
        await until(lambda: are_active(ours, 2))
        for _ in range(50):
            await ours.send(bytes(1000))
        for _ in range(50):
            await theirs.recv()
        paths = await ours.paths()
        assert [path.id for path in paths] == [0, 1]
        for path in paths:
            assert path.sent_bytes > 0
            assert path.cwnd_bytes > 0
            assert path.rto_ms > 0
            assert 1200 <= path.mtu_bytes <= 65_535
            assert path.errors == 0
            assert path.srtt_ms is None or path.srtt_ms > 0
        assert sum(path.sent_bytes for path in paths) >= 50_000
        assert paths[0].primary
        statistics = await ours.statistics()
        assert statistics.chunks_sent == 50
        assert (await theirs.statistics()).delivered_bytes == 50_000


@in_loop
async def test_a_path_is_added_from_an_address_that_was_not_in_use():
    async with pair() as (ours, theirs):
        events = ours.events()
        target = (await ours.paths())[0].remote
        added = await ours.add_path("127.0.1.9", target)
        await until(lambda: are_active(ours, 2))
        assert await routes(ours) == [("127.0.1.1", target), ("127.0.1.9", target)]
        await until(lambda: are_active(theirs, 2))
        seen = [await anext(events) for _ in range(2)]
        assert [(event.kind, event.path, event.state) for event in seen] == [
            ("path-added", added, None),
            ("path-state", added, "active"),
        ]
        await ours.remove_path(0)
        while (event := await anext(events)).kind != "path-removed":
            pass
        assert event.path == 0
        await ours.send(b"over what is left")
        assert (await theirs.recv()).payload == b"over what is left"
        assert await routes(ours) == [("127.0.1.9", target)]


@in_loop
async def test_added_path_uses_only_the_given_address():
    async with listening(paths=2) as listener, anabranch.connect([("127.0.1.1", listener.addresses[0])]) as ours:
        await ours.add_path("127.0.1.2", listener.addresses[1])
        await ours.add_path("127.0.1.3", listener.addresses[0])
        await ours.add_path("127.0.1.3", listener.addresses[1])
        await until(lambda: are_active(ours, 4))
        assert sorted(await routes(ours)) == sorted(
            [
                ("127.0.1.1", listener.addresses[0]),
                ("127.0.1.2", listener.addresses[1]),
                ("127.0.1.3", listener.addresses[0]),
                ("127.0.1.3", listener.addresses[1]),
            ]
        )


@in_loop
async def test_invalid_paths_are_refused_with_the_reason():
    async with pair() as (ours, theirs):
        target = (await ours.paths())[0].remote
        for local, remote, reason in [
            ("127.0.1.1", target, "this pair of addresses is a path already"),
            ("wlan0", target, 'local "wlan0": expected an address of this machine'),
            ("127.0.1.2", "nowhere", 'remote "nowhere": expected an address with or without a port'),
            ("127.0.1.2", "127.0.0.1:0", "a peer has no port 0"),
            ("::1", target, "of different IP versions"),
            ("192.0.2.1", target, "cannot bind 192.0.2.1:"),
        ]:
            with pytest.raises(ArgumentError, match=reason):
                await ours.add_path(local, remote)
        for unknown in (1, 7, 300, -1):
            with pytest.raises(ArgumentError, match=f"^{ours.peer}: no path has the id {unknown}; the paths are 0$"):
                await ours.remove_path(unknown)
        with pytest.raises(ArgumentError, match="the only path cannot be removed"):
            await ours.remove_path(0)
        back = (await theirs.paths())[0].remote
        with pytest.raises(ArgumentError, match=r"127\.0\.0\.2 is none of the endpoint's addresses"):
            await theirs.add_path("127.0.0.2", back)
        await ours.shutdown()
        with pytest.raises(AssociationClosedError):
            await ours.remove_path(0)


@in_loop
async def test_the_end_is_the_last_event():
    async with listening() as listener, anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
        theirs = await listener.accept()
        good, bad = ours.events(), theirs.events()
        theirs.abort()
        await asyncio.gather(ours.closed(), theirs.closed(), return_exceptions=True)
        assert [(event.kind, event.reason) async for event in good] == [("aborted", "aborted by the peer")]
        assert [(event.kind, event.reason) async for event in bad] == [("aborted", "aborted by this application")]
    async with pair() as (ours, theirs):
        events = theirs.events()
        await ours.shutdown()
        assert [event.kind async for event in events] == ["shutdown-received", "closed"]
