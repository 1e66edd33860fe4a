"""Cancellation loses no message and duplicates none."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket

import pytest
from transfer_rig import SMALL, everything, fill, here, in_loop, leave, listening, pair, until

import anabranch
from anabranch.transfer import AssociationLostError


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_a_recv_that_is_cancelled_takes_no_message():
    async with pair() as (ours, theirs):
        waiting = asyncio.ensure_future(theirs.recv())
        await asyncio.sleep(0.01)
        await cancelled(waiting)
        await ours.send(b"still there")
        assert (await theirs.recv()).payload == b"still there"


@in_loop
async def test_a_recv_that_is_cancelled_when_its_message_has_come_takes_none():
    async with pair() as (ours, theirs):
        for number in range(200):
            waiting = asyncio.ensure_future(theirs.recv())
            await asyncio.sleep(0)
            await ours.send(number.to_bytes(4, "big"))
            await arrival(theirs, number + 1)
            # The task has been woken, or will be soon.
            waiting.cancel()
            done = await asyncio.gather(waiting, return_exceptions=True)
            message = await theirs.recv() if isinstance(done[0], asyncio.CancelledError) else done[0]
            assert int.from_bytes(message.payload, "big") == number


async def arrival(association, messages):
    """Waits until `messages` messages of 4 bytes have arrived, without waking another task."""
    while (await association.statistics()).delivered_bytes < 4 * messages:
        pass


@in_loop
async def test_time_outs_at_random_moments_lose_and_double_nothing():
    rng = random.Random(7)
    async with pair(paths=2, **SMALL) as (ours, theirs):
        numbers = 400

        async def send():
            for number in range(numbers):
                payload = number.to_bytes(4, "big") + bytes(rng.randrange(20_000))
                await persist(lambda payload=payload: ours.send(payload))
            await ours.shutdown()

        async def receive():
            while (message := await persist(theirs.recv)) is not None:
                yield int.from_bytes(message.payload[:4], "big")

        async def persist(call):
            while True:
                with contextlib.suppress(asyncio.TimeoutError):
                    return await asyncio.wait_for(call(), rng.choice([0, 0.0001, 0.0005, 0.002]))

        sending = asyncio.ensure_future(send())
        assert [number async for number in receive()] == list(range(numbers))
        await sending


@in_loop
async def test_a_send_that_is_cancelled_sends_nothing():
    async with pair(**SMALL) as (ours, theirs):
        accepted = await fill(ours, theirs)
        for _ in range(5):
            waiting = asyncio.ensure_future(ours.send(b"never"))
            await asyncio.sleep(0)
            await cancelled(waiting)
        received = asyncio.ensure_future(everything(theirs))
        await ours.send(b"the end")
        await ours.shutdown()
        messages = await received
        assert sum(map(len, messages[:-1])) == accepted
        assert messages[-1] == b"the end"
        assert b"never" not in messages


@in_loop
async def test_an_accept_that_is_cancelled_takes_no_association():
    async with listening() as listener:
        for _ in range(20):
            waiting = asyncio.ensure_future(listener.accept())
            await asyncio.sleep(0)
            async with anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
                waiting.cancel()
                done = await asyncio.gather(waiting, return_exceptions=True)
                cut_off = isinstance(done[0], asyncio.CancelledError)
                async with await listener.accept() if cut_off else done[0] as theirs:
                    await theirs.send(b"found")
                    assert (await ours.recv()).payload == b"found"


@in_loop
async def test_a_connect_that_is_cancelled_gives_the_attempt_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.setblocking(False)
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        attempt = asyncio.ensure_future(connect_to(target))
        _, source = await asyncio.get_running_loop().run_in_executor(None, receive_one, silent)
        await cancelled(attempt)
        # The host's socket is closed, so another host can bind the port.
        await until(lambda: can_bind(source))


async def connect_to(target):
    return await anabranch.connect(target, local="127.0.1.1")


def receive_one(plain):
    plain.settimeout(30)
    return plain.recvfrom(65536)


async def can_bind(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        try:
            plain.bind(address)
        except OSError:
            return False
    return True


@in_loop
async def test_cancelled_shutdown_continues():
    async with pair(**SMALL) as (ours, theirs):
        accepted = await fill(ours, theirs)
        ending = asyncio.ensure_future(ours.shutdown())
        await asyncio.sleep(0.01)
        await cancelled(ending)
        assert not ours.is_open
        assert sum(map(len, await everything(theirs))) == accepted
        await ours.closed()


@in_loop
async def test_leaving_that_is_cancelled_aborts():
    async with listening(**SMALL) as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1), **SMALL)
        theirs = await listener.accept()
        await fill(ours, theirs)
        leaving = asyncio.ensure_future(leave(ours))
        await asyncio.sleep(0.01)
        assert theirs.is_open
        await cancelled(leaving)
        with pytest.raises(AssociationLostError) as lost:
            await theirs.closed()
        assert lost.value.reason == "aborted-by-peer"


@in_loop
async def test_events_are_not_lost_to_cancelled_waiting():
    async with pair() as (ours, _):
        events = ours.events()
        for _ in range(10):
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            await cancelled(waiting)
        await ours.shutdown()
        assert [event.kind async for event in events][-1] == "closed"
