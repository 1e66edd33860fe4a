"""Messages between two ends of an association."""

from __future__ import annotations

import array
import asyncio
import gc
import hashlib
import random
import sys

import pytest
from transfer_rig import here, in_loop, listening, pair

import anabranch
from anabranch.transfer import ArgumentError, AssociationLostError, Message, MessageSizeError


@in_loop
async def test_a_message_arrives_with_its_stream_its_ppid_and_its_order():
    async with pair() as (ours, theirs):
        await ours.send(b"one", stream=3, ppid=0xFFFF_FFFF)
        assert await theirs.recv() == Message(b"one", stream=3, ordered=True, ppid=0xFFFF_FFFF)
        await theirs.send(b"two", ordered=False)
        assert await ours.recv() == Message(b"two", stream=0, ordered=False, ppid=0)


@in_loop
async def test_messages_of_a_stream_arrive_in_order_over_two_paths():
    async with pair(paths=2) as (ours, theirs):
        sent = [(number % 4, number) for number in range(4000)]
        sending = asyncio.ensure_future(send_numbers(ours, sent))
        received: dict[int, list[int]] = {stream: [] for stream in range(4)}
        for _ in sent:
            message = await theirs.recv()
            received[message.stream].append(int.from_bytes(message.payload, "big"))
        await sending
        assert received == {stream: list(range(stream, 4000, 4)) for stream in range(4)}


async def send_numbers(association, numbers):
    for stream, number in numbers:
        await association.send(number.to_bytes(400, "big"), stream=stream)


@in_loop
async def test_unordered_messages_all_arrive():
    async with pair(paths=2) as (ours, theirs):
        for number in range(300):
            await ours.send(number.to_bytes(2000, "big"), ordered=False)
        received = [int.from_bytes((await theirs.recv()).payload, "big") for _ in range(300)]
        assert sorted(received) == list(range(300))


@in_loop
@pytest.mark.parametrize(
    "payload",
    [b"abcdef", bytearray(b"abcdef"), memoryview(b"--abcdef--")[2:-2], memoryview(b"a-b-c-d-e-f")[::2]],
    ids=["bytes", "bytearray", "memoryview", "strided"],
)
async def test_every_object_with_a_buffer_can_be_sent(payload):
    async with pair() as (ours, theirs):
        await ours.send(payload)
        assert (await theirs.recv()).payload == b"abcdef"


@in_loop
async def test_items_of_several_bytes_are_sent_as_they_lie_in_memory():
    async with pair() as (ours, theirs):
        items = array.array("d", [1.5, -2.0])
        await ours.send(items)
        assert (await theirs.recv()).payload == items.tobytes()


@in_loop
async def test_a_buffer_may_be_changed_as_soon_as_send_has_returned():
    async with pair() as (ours, theirs):
        buffer = bytearray(b"before")
        await ours.send(buffer)
        buffer[:] = b"behind"
        buffer.extend(b"resizing raises if somebody still looks at it")
        assert (await theirs.recv()).payload == b"before"


@in_loop
async def test_bytes_are_held_until_they_are_acknowledged_and_no_longer():
    # The receive buffer is smaller than the message.
    async with pair(recv_buffer_bytes=32 << 10) as (ours, theirs):
        payload = bytes(range(256)) * 4000
        before = sys.getrefcount(payload)
        await ours.send(payload)
        assert sys.getrefcount(payload) > before
        assert (await theirs.recv()).payload == payload
        while (await ours.statistics()).send_buffered_bytes:
            await asyncio.sleep(0.002)
        # Native threads leave the count to the interpreter's next call into the native module.
        assert await ours.paths()
        gc.collect()
        assert sys.getrefcount(payload) == before


@in_loop
@pytest.mark.parametrize("text", ["text", 5, None])
async def test_object_without_buffer_is_a_type_error(text):
    async with pair() as (ours, _):
        with pytest.raises(TypeError):
            await ours.send(text)


@in_loop
async def test_empty_messages_and_streams_that_do_not_exist_are_refused():
    async with pair(streams=4) as (ours, theirs):
        assert ours.streams == theirs.streams == 4
        with pytest.raises(ArgumentError, match=rf"^{ours.peer}: a message must have at least one byte$"):
            await ours.send(b"")
        for wrong in (4, -1, 65536):
            with pytest.raises(ArgumentError, match=f"^stream is {wrong}; give a number from 0 to 3$"):
                await ours.send(b"x", stream=wrong)
        with pytest.raises(ArgumentError, match="ppid is 4294967296; give a number from 0 to 4294967295"):
            await ours.send(b"x", ppid=1 << 32)
        for wrong in (-1, 1 << 64):
            with pytest.raises(ArgumentError, match=f"context is {wrong}; give a number from 0 to {2**64 - 1}"):
                await ours.send(b"x", context=wrong)
        with pytest.raises(ArgumentError, match=f"stream is {1 << 70}; its absolute value can be {2**63 - 1} at most"):
            await ours.send(b"x", stream=1 << 70)
        await ours.send(b"the association is as good as before", stream=3)
        assert (await theirs.recv()).stream == 3


@in_loop
async def test_messages_larger_than_the_receive_buffer_arrive_whole():
    async with pair(paths=2, recv_buffer_bytes=256 << 10) as (ours, theirs):
        large = random.Random(1).randbytes(5 << 20)
        sending = asyncio.ensure_future(send_both(ours, large))
        received = {}
        for _ in range(3):
            message = await theirs.recv()
            received[message.stream] = hashlib.sha256(message.payload).digest()
            assert message.ppid == message.stream
        await sending
        assert received == {1: digest(large), 2: digest(large[::-1]), 3: digest(b"behind them")}


async def send_both(association, large):
    await association.send(large, stream=1, ppid=1)
    await association.send(large[::-1], stream=2, ordered=False, ppid=2)
    await association.send(b"behind them", stream=3, ppid=3)


def digest(content):
    return hashlib.sha256(content).digest()


@in_loop
async def test_a_message_that_is_larger_than_allowed_ends_the_association():
    async with listening(recv_buffer_bytes=64 << 10, largest_message_bytes=300_000) as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1))
        theirs = await listener.accept()
        await ours.send(bytes(299_999))
        assert len((await theirs.recv()).payload) == 299_999
        await ours.send(bytes(1_000_000), stream=2)
        with pytest.raises(MessageSizeError, match=r"127\.0\.1\.1:\d+: a message on stream 2 has more than 300000 B"):
            await theirs.recv()
        with pytest.raises(AssociationLostError):
            await ours.closed()


@in_loop
async def test_receiving_ends_when_the_peer_has_shut_down():
    async with pair() as (ours, theirs):
        for word in (b"first", b"last"):
            await ours.send(word)
        await ours.shutdown()
        assert [message.payload async for message in theirs] == [b"first", b"last"]
        assert await theirs.recv() is None
        assert await theirs.recv() is None


@in_loop
async def test_two_tasks_that_receive_get_each_message_once():
    async with pair() as (ours, theirs):
        got: list[int] = []

        async def receive():
            async for message in theirs:
                got.append(int.from_bytes(message.payload, "big"))
                await asyncio.sleep(0)

        receivers = [asyncio.ensure_future(receive()) for _ in range(2)]
        await send_numbers(ours, ((0, number) for number in range(500)))
        await ours.shutdown()
        await asyncio.gather(*receivers)
        assert sorted(got) == list(range(500))


@in_loop
async def test_a_busy_association_leaves_the_event_loop_to_other_tasks():
    async with pair() as (ours, theirs):
        turns = 0

        async def other():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        for number in range(1000):
            await ours.send(number.to_bytes(8, "big"))
        await ours.shutdown()
        beside = asyncio.ensure_future(other())
        # All messages have arrived, so that no call has to wait.
        assert [int.from_bytes(message.payload, "big") async for message in theirs] == list(range(1000))
        assert turns >= 1000 // 64
        beside.cancel()
