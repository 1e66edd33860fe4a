"""Player that waits for a sender, agrees on a description with it, and receives packets until the clip ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from anabranch.errors import VideoError
from anabranch.transfer import (
    Association,
    AssociationLostError,
    AssociationRestartedError,
    Listener,
    MessageSizeError,
    TransferError,
)
from anabranch.video.ffmpeg import escaped
from anabranch.video.live.description import LARGEST_DESCRIPTION_BYTES, Description, read_description
from anabranch.video.live.protocol import DESCRIPTION_STREAM, acceptance, refusal
from anabranch.video.live.reception import Progress, Reception

# Time limits of a sender: to describe its clip, and then to send the first packet.
DESCRIPTION_LIMIT_S = 30.0
FIRST_PACKET_LIMIT_S = 30.0
# Maximum number of senders that may describe their clips at a time. Further ones wait to be accepted.
MAX_DESCRIBING = 8
# Time for which packets are awaited after the last frame's playout. Frames that these packets complete are late.
AFTER_PLAYOUT_LIMIT_S = 10.0
# Interval of progress notifications and checks of time limits.
_TICK_S = 0.25
# Time for which the player waits for the shutdown of a sender that is done or was refused.
_FAREWELL_LIMIT_S = 5.0

LARGEST_MESSAGE_BYTES = LARGEST_DESCRIPTION_BYTES


class Ending(Enum):
    """Outcome of a reception."""

    COMPLETE = "complete"
    SENDER_STOPPED = "sender-stopped"
    SENDER_LOST = "sender-lost"
    PROTOCOL = "protocol"
    TIME_LIMIT = "time-limit"
    INTERRUPTED = "interrupted"


class Player:
    """Plays the clip of one sender. The reception can be read at any time, also after an interruption.

    `notify` is called with the counts of frames that were due, and `say` with lines for the user.
    """

    def __init__(
        self,
        payloads: Path,
        deadline_ms: float | None,
        notify: Callable[[Description, Progress], object],
        say: Callable[[str], object],
    ) -> None:
        self._payloads = payloads
        self._deadline_ms = deadline_ms
        self._notify = notify
        self._say = say
        self.reception: Reception | None = None
        self.peer = ""
        self.ending = Ending.INTERRUPTED
        self.fault = ""

    @property
    def played_frames(self) -> int:
        """Number of frames in the results: all after a complete reception, otherwise those that were due by now."""
        if self.reception is None:
            return 0
        if self.ending is Ending.COMPLETE:
            return len(self.reception.description.frames)
        return self.reception.played_frames(time.monotonic())

    async def run(self, listener: Listener) -> None:
        """Receives one clip, and sets `ending` to the outcome. Senders that are refused are skipped."""
        association, description = await self._agree(listener)
        # Only one clip is played, so that further senders are refused at once.
        listener.stop()
        self.peer = association.peer
        try:
            await self._receive(association, description)
            if self.ending is Ending.COMPLETE:
                await _part(association)
        finally:
            association.abort()

    async def _agree(self, listener: Listener) -> tuple[Association, Description]:
        """Returns the first sender whose clip is accepted. A silent sender does not delay the others."""
        accepting: asyncio.Task[Association] | None = None
        describing: set[asyncio.Task[tuple[Association, Description] | None]] = set()
        try:
            while True:
                if accepting is None and len(describing) < MAX_DESCRIBING:
                    accepting = asyncio.create_task(listener.accept())
                waiting: set[asyncio.Task[Any]] = {*describing} if accepting is None else {*describing, accepting}
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if accepting in done:
                    describing.add(asyncio.create_task(self._described(accepting.result())))
                    accepting = None
                for task in describing & done:
                    describing.remove(task)
                    described = task.result()
                    if described is not None and await self._begun(*described):
                        return described
        finally:
            left: set[asyncio.Task[Any]] = {*describing} if accepting is None else {*describing, accepting}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    async def _described(self, association: Association) -> tuple[Association, Description] | None:
        """Returns a sender's description, or `None` if the sender was refused and notified."""
        try:
            return association, await asyncio.wait_for(_first_message(association), DESCRIPTION_LIMIT_S)
        except asyncio.TimeoutError:
            association.abort()
            self._refused(association, f"no description of a clip within {DESCRIPTION_LIMIT_S:g} s")
        except (VideoError, TransferError) as error:
            self._refused(association, str(error))
            await _dismiss(association, str(error))
        except BaseException:
            association.abort()
            raise
        return None

    async def _begun(self, association: Association, description: Description) -> bool:
        """Accepts a sender's clip. Returns `False` if the clip is refused, or if the sender has left."""
        try:
            self.reception = Reception(description, description.playout(self._deadline_ms), self._payloads)
            await association.send(acceptance(), stream=DESCRIPTION_STREAM)
        except (VideoError, TransferError) as error:
            self._forget()
            self._refused(association, str(error))
            await _dismiss(association, str(error))
            return False
        except BaseException:
            association.abort()
            raise
        return True

    def _refused(self, association: Association, reason: str) -> None:
        self._say(f"{escaped(association.peer)}: refused: {escaped(reason)}")

    def _forget(self) -> None:
        """Discards the reception of a sender that left before it was accepted."""
        if self.reception is not None:
            self.reception.close()
            self.reception = None

    async def _receive(self, association: Association, description: Description) -> None:
        assert self.reception is not None
        taking = asyncio.create_task(self._take_all(association, self.reception))
        agreed_s = time.monotonic()
        try:
            while not (await asyncio.wait({taking}, timeout=_TICK_S))[0]:
                self._notify(description, self.reception.advance(time.monotonic()))
                if time.monotonic() > self._limit_s(agreed_s, self.reception):
                    self.ending, self.fault = Ending.TIME_LIMIT, "the sender did not end in time"
                    return
            self.ending, self.fault = taking.result()
            self._notify(description, self.reception.advance(time.monotonic()))
        finally:
            taking.cancel()
            await asyncio.wait({taking})

    @staticmethod
    def _limit_s(agreed_s: float, reception: Reception) -> float:
        if reception.packets == 0:
            return agreed_s + FIRST_PACKET_LIMIT_S
        now_s = time.monotonic()
        last_s = now_s + (reception.last_playout_ms - reception.now_ms(now_s)) / 1000
        return last_s + AFTER_PLAYOUT_LIMIT_S

    @staticmethod
    async def _take_all(association: Association, reception: Reception) -> tuple[Ending, str]:
        try:
            while (message := await association.recv()) is not None:
                reception.take(message, time.monotonic())
        except AssociationLostError as error:
            stopped = error.reason == "aborted-by-peer"
            return Ending.SENDER_STOPPED if stopped else Ending.SENDER_LOST, escaped(str(error))
        except (VideoError, AssociationRestartedError, MessageSizeError) as error:
            return Ending.PROTOCOL, escaped(str(error))
        return Ending.COMPLETE, ""


async def _first_message(association: Association) -> Description:
    message = await association.recv()
    if message is None or message.stream != DESCRIPTION_STREAM:
        raise VideoError("it describes no clip first: is it `anabranch video send`?")
    return read_description(message.payload)


async def _dismiss(association: Association, reason: str) -> None:
    """Sends the reason of a refusal to a sender, and shuts the association down."""
    try:
        await asyncio.wait_for(_farewell(association, reason), _FAREWELL_LIMIT_S)
    except (TransferError, asyncio.TimeoutError):
        association.abort()


async def _part(association: Association) -> None:
    """Completes the shutdown that the sender began. All data has arrived, so a failure is ignored."""
    with contextlib.suppress(TransferError, asyncio.TimeoutError):
        await asyncio.wait_for(association.shutdown(), _FAREWELL_LIMIT_S)


async def _farewell(association: Association, reason: str) -> None:
    await association.send(refusal(reason), stream=DESCRIPTION_STREAM)
    await association.shutdown()
