"""Takes finished runs in, beside what makes them."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

# How long a finished run may wait to be recorded.
_POLL_S = 0.005
# Finished runs that may wait before those who make them have to.
_MOST_WAITING = 10_000


class Recorder:
    """A thread that records finished runs, by their index in a batch, as they are put into `finished`.

    Signal handlers of Python run in the main thread, between any two of its steps. So no Ctrl-C comes in between here:
    a run is recorded in full or still waits, and leaving the `with` block records what waits, whatever has ended it.
    """

    def __init__(self, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        self.finished: dict[int, str] = {}
        self._positions = positions
        self._record = record
        self._recorded = bytearray(len(positions))
        self._ended = threading.Event()
        self._error: BaseException | None = None
        # Not one that the process waits for: a Ctrl-C that interrupts the end of the block must not.
        self._thread = threading.Thread(target=self._run, name="anabranch-recorder", daemon=True)
        self._in_main_thread = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        interrupt = self._join()
        if self._error is not None:
            # What ended the block is only how the main thread was told.
            raise self._error from None
        if interrupt is not None:
            raise interrupt

    def _join(self) -> KeyboardInterrupt | None:
        """Waits for the thread, and gives back a Ctrl-C that came meanwhile: what waits is recorded first."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._thread.join()
                return interrupt
            except KeyboardInterrupt as error:
                interrupt = error

    def wait_for_room(self) -> None:
        """Waits while too much waits to be recorded."""
        while len(self.finished) > _MOST_WAITING and self._error is None:
            time.sleep(_POLL_S)

    def _run(self) -> None:
        try:
            while not self._ended.wait(_POLL_S):
                self._drain()
            self._drain()
        except BaseException as error:
            self._error = error
            if self._in_main_thread and not self._ended.is_set():
                _thread.interrupt_main()

    def _drain(self) -> None:
        while self.finished:
            index, text = self.finished.popitem()
            # Who was interrupted may put in what it had put in already.
            if not self._recorded[index]:
                self._record(self._positions[index], text)
                self._recorded[index] = True
