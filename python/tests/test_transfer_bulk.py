"""Many bytes, associations and waiting tasks."""

from __future__ import annotations

import asyncio
import hashlib
import random

from transfer_rig import SMALL, fill, in_loop, listening, pair

import anabranch


@in_loop
async def test_64_mib_arrive_unchanged_over_two_paths():
    block = random.Random(3).randbytes(1 << 20)
    async with pair(paths=2) as (ours, theirs):
        receiving = asyncio.ensure_future(digest(theirs))
        sent = hashlib.sha256()
        for number in range(64):
            blocks = number.to_bytes(8, "big") + block[8:]
            sent.update(blocks)
            view = memoryview(blocks)
            for begin in range(0, len(blocks), 64 << 10):
                await ours.send(view[begin : begin + (64 << 10)])
        await ours.shutdown()
        assert await receiving == (sent.hexdigest(), 64 << 20)


async def digest(association):
    received, received_bytes = hashlib.sha256(), 0
    async for message in association:
        received.update(message.payload)
        received_bytes += len(message.payload)
    return received.hexdigest(), received_bytes


@in_loop
async def test_fifty_associations_at_once_each_get_their_own_messages():
    async with listening(paths=2) as listener:
        serving = asyncio.ensure_future(serve(listener))
        answers = await asyncio.gather(*(ask(listener, number) for number in range(50)))
        assert answers == [[b"%d: %d" % (number, turn) for turn in range(20)] for number in range(50)]
        listener.stop()
        assert await serving == 50


async def serve(listener):
    """Sends all messages back."""
    tasks = [asyncio.ensure_future(echo(association)) async for association in listener]
    await asyncio.gather(*tasks)
    return len(tasks)


async def echo(association):
    async with association:
        async for message in association:
            await association.send(message.payload, stream=message.stream)


async def ask(listener, number):
    local = [f"127.0.{node}.{number + 1}" for node in (1, 2)]
    async with anabranch.connect(listener.addresses, local=local) as association:
        answers = []
        for turn in range(20):
            await association.send(b"%d: %d" % (number, turn), stream=turn % 16)
            answers.append((await association.recv()).payload)
        return answers


@in_loop
async def test_a_receiver_that_does_not_read_brings_the_sender_to_a_halt():
    async with pair(**SMALL) as (ours, theirs):
        accepted = await fill(ours, theirs)
        # Both buffers, as much again between each of them and its application, and one message beyond each.
        assert accepted <= 2 * (64 << 10) + 2 * (256 << 10) + 4 * (64 << 10)
        waiting = asyncio.ensure_future(ours.send(b"when there is room"))
        await asyncio.sleep(0)
        received = 0
        while received < accepted:
            received += len((await theirs.recv()).payload)
        await waiting
        assert (await theirs.recv()).payload == b"when there is room"


@in_loop
async def test_echo_over_one_association_from_many_tasks_keeps_each_tasks_order():
    async with pair(paths=2) as (ours, theirs):
        echoing = asyncio.ensure_future(echo(theirs))

        async def send(stream):
            for number in range(100):
                await ours.send(b"%d" % number, stream=stream)

        senders = [asyncio.ensure_future(send(stream)) for stream in range(10)]
        received: dict[int, list[int]] = {stream: [] for stream in range(10)}
        for _ in range(1000):
            message = await ours.recv()
            received[message.stream].append(int(message.payload))
        await asyncio.gather(*senders)
        assert received == {stream: list(range(100)) for stream in range(10)}
        await ours.shutdown()
        await echoing
