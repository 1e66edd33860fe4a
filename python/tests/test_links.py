"""One typed address over two direct links: Python and `video` use both, and survive the loss of each carrier."""

from __future__ import annotations

import csv
import json
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from namespaces import Namespace, finish, first_line, two_links

from anabranch import video
from anabranch.video import ReadOptions

# Maximum pause while another pair of addresses works.
LONGEST_PAUSE_MS = 1000

RECEIVER = """
import asyncio, json, time
import anabranch

async def main():
    async with anabranch.listen() as listener:
        print("listening", flush=True)
        async with await listener.accept() as association:
            arrivals = [time.monotonic() async for message in association]
    print(json.dumps([1000 * at for at in arrivals]))

asyncio.run(main())
"""

SENDER = """
import asyncio, json, time
import anabranch

async def main():
    async with anabranch.connect("10.92.1.2") as association:
        until = time.monotonic() + 6
        while time.monotonic() < until:
            await association.send(bytes(20_000))
        used = await association.paths()
    print(json.dumps([f"{path.local}>{path.remote.rsplit(':', 1)[0]}" for path in used]))

asyncio.run(main())
"""


def pull_cables(client: Namespace, server: Namespace) -> None:
    """Removes the carrier of each link in turn, once at each end."""
    for namespace, device in ((server, "s1"), (client, "c2")):
        time.sleep(1.5)
        namespace.run(f"ip link set {device} down")
        time.sleep(1.5)
        namespace.run(f"ip link set {device} up")


def longest_pause_ms(arrivals: list[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(arrivals))


def test_association_survives_loss_of_each_carrier(tmp_path: Path) -> None:
    with two_links(tmp_path) as (client, server), server.program("-c", RECEIVER) as receiver:
        assert first_line(receiver.stdout) == "listening\n"
        with client.program("-c", SENDER) as sender:
            pull_cables(client, server)
            pairs = json.loads(finish(sender))
        arrivals = json.loads(finish(receiver))
    assert {"10.92.1.1>10.92.1.2", "10.92.2.1>10.92.2.2"} <= set(pairs)
    assert longest_pause_ms(arrivals) < LONGEST_PAUSE_MS
    # One link alone carries 750 messages in this time.
    assert len(arrivals) > 800


def test_clip_survives_loss_of_each_carrier(tmp_path: Path) -> None:
    reading = ReadOptions(frames=100, size=(64, 48), rate=Fraction(15))
    clip = video.write_coded("synthetic", tmp_path / "clip", reading=reading)
    played = tmp_path / "played"
    playing = ["-m", "anabranch", "video", "play", "--out", str(played), "--json"]
    sending = ["-m", "anabranch", "video", "send", str(clip.folder), "10.92.1.2", "--json"]
    with two_links(tmp_path) as (client, server), server.program(*playing) as player:
        assert "listening" in first_line(player.stderr)
        with client.program(*sending) as sender:
            pull_cables(client, server)
            finish(sender)
        summary = json.loads(finish(player))
    assert summary["ending"] == "complete"
    with (played / "arrivals.csv").open() as file:
        arrivals = sorted(float(row["arrival_ms"]) for row in csv.DictReader(file))
    assert longest_pause_ms(arrivals) < LONGEST_PAUSE_MS
    assert len(arrivals) > 0.8 * summary["packets"]
