"""Recording of finished runs in a thread of its own."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

# Maximum time until a finished run is recorded.
_POLL_S = 0.005
# Maximum number of unrecorded runs before their producers wait.
_MAX_WAITING = 10_000


class Recorder:
    """Thread that records finished runs, by their index in a batch, as they are put into `finished`.

    Python's signal handlers run in the main thread, between any two of its steps. So Ctrl-C does not interrupt this
    thread: a run is recorded completely or still waits. Leaving the `with` block always records waiting runs.
    """

    def __init__(self, positions: Sequence[int], record: Callable[[int, str], None]) -> None:
        self.finished: dict[int, str] = {}
        self._positions = positions
        self._record = record
        self._recorded = bytearray(len(positions))
        self._ended = threading.Event()
        self._error: BaseException | None = None
        # A daemon thread: the process must not wait for it if Ctrl-C interrupts the end of the block.
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
            # The exception of the block is only the notification of the main thread.
            raise self._error from None
        if interrupt is not None:
            raise interrupt

    def _join(self) -> KeyboardInterrupt | None:
        """Waits for the thread, and returns a Ctrl-C that came meanwhile, since waiting runs are recorded first."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._thread.join()
                return interrupt
            except KeyboardInterrupt as error:
                interrupt = error

    def wait_for_room(self) -> None:
        """Waits while too many runs are unrecorded."""
        while len(self.finished) > _MAX_WAITING and self._error is None:
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
            # An interrupted producer may put in the same run twice.
            if not self._recorded[index]:
                self._record(self._positions[index], text)
                self._recorded[index] = True
