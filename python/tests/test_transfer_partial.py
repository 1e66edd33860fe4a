"""Messages that may be abandoned (RFC 3758)."""

from __future__ import annotations

import pytest
from transfer_rig import in_loop, pair

from anabranch.transfer import ArgumentError, Message
from anabranch.transfer.reassembly import Reassembly


def test_abandoned_partial_message_leaves_no_data_in_the_next_one():
    reassembly = Reassembly(10)
    assert reassembly.add((b"abcd", 1, True, 0, True, False)) is None
    assert reassembly.add((b"efgh", 1, True, 0, False, False)) is None
    assert reassembly.add((b"x", 1, False, 0, True, True)) == Message(b"x", 1, False, 0)
    assert reassembly.add((b"01234567", 1, True, 0, True, False)) is None, "its bytes count no longer"
    assert reassembly.add((b"89", 1, True, 0, False, True)) == Message(b"0123456789", 1, True, 0)


@in_loop
async def test_limited_message_arrives_without_loss():
    async with pair() as (ours, theirs):
        assert ours.supports_partial_reliability
        await ours.send(b"one", lifetime_s=10, max_retransmissions=3)
        await ours.send(b"two", max_retransmissions=0)
        await ours.send(b"three", priority=3)
        assert [(await theirs.recv()).payload for _ in range(3)] == [b"one", b"two", b"three"]
        statistics = await ours.statistics()
        assert statistics.abandoned_by_lifetime == (0, 0)
        assert (statistics.abandoned_chunks, statistics.forward_tsns_sent) == (0, 0)


@in_loop
async def test_priority_stands_alone_and_limits_are_in_their_ranges():
    async with pair() as (ours, _):
        with pytest.raises(ArgumentError, match="a priority has no other limit"):
            await ours.send(b"x", lifetime_s=1, priority=1)
        for limit in ({"max_retransmissions": -1}, {"lifetime_s": 0}, {"priority": 1 << 32}):
            with pytest.raises(ArgumentError):
                await ours.send(b"x", **limit)
