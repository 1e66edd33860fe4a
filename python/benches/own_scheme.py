"""Cost of policies in Python: `cmt` beside the same rules in Python, taking turns.

    python python/benches/own_scheme.py

Prints the time of runs with each as a multiple of `cmt` alone. It has no limits.
"""

from __future__ import annotations

import statistics
import time

import anabranch as ab
from anabranch.policy import LostChunk, PathFacts, PathLoss, PolicyEvent, SendAsk, View

SCENARIO = """
[run]
duration = "60 s"
[association]
recv_buffer = "512 KiB"
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
loss = 0.001
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
loss = 0.001
"""
ROUNDS = 5


class LowestRtt(ab.Scheduler):
    """Rule of component `min-rtt`."""

    def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
        return min(view.ready(), key=lambda path: path.smoothed_rtt_ms or 0.0, default=None)


class Listening(LowestRtt):
    """The same scheduler, with every event."""

    def on_event(self, event: PolicyEvent, view: View) -> None:
        pass


class Same(ab.Retransmit):
    """Rule of component `rtx-same`."""

    def route(self, chunk: LostChunk, view: View) -> int:
        return chunk.path


class Halving(ab.CongestionControl):
    """Reduction of the standard."""

    def cut(self, loss: PathLoss, view: View) -> ab.Window:
        chunk = view.path(loss.path).largest_chunk_bytes
        ssthresh = max(loss.window.cwnd_bytes // 2, 4 * chunk)
        return ab.Window(chunk if loss.cause == "timeout" else ssthresh, ssthresh)


def seconds(scenario: ab.Scenario, scheme: str | ab.policy.Policy) -> float:
    begun = time.process_time()
    ab.run(scenario, scheme, seed=1)
    return time.process_time() - begun


def main() -> None:
    scenario = ab.Scenario.parse(SCENARIO)
    pairs: list[tuple[str, str, ab.policy.Policy]] = [
        ("a scheduler", "cmt+min-rtt", LowestRtt()),
        ("a scheduler that hears of events", "cmt+min-rtt", Listening()),
        ("retransmission", "cmt(rtx=rtx-same)", Same()),
        ("reduction of windows", "cmt", Halving()),
    ]
    for name, native, own in pairs:
        ratios = [seconds(scenario, own) / seconds(scenario, native) for _ in range(ROUNDS)]
        print(f"{name:34} {statistics.median(ratios):5.1f} x {native}")


if __name__ == "__main__":
    main()
