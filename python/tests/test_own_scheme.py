"""Schemes whose policies are classes in Python."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.policy import (
    Acknowledged,
    LostChunk,
    PaceAsk,
    PathFacts,
    PathLoss,
    PolicyEvent,
    SendAsk,
    View,
)
from anabranch.policy.python_scheme import resolve_scheme

TWO_LINKS = """
[run]
duration = "3 s"

[association]
recv_buffer = "256 KiB"

[[path]]
name = "wifi"
rate = "10 Mbit/s"
delay = "15 ms"

[[path]]
name = "lte"
rate = "5 Mbit/s"
delay = "40 ms"
loss = "2 %"
"""


@pytest.fixture(scope="module")
def links() -> ab.Scenario:
    return ab.Scenario.parse(TWO_LINKS)


def queueing(path: PathFacts) -> float:
    return (path.latest_rtt_ms or 0.0) - (path.min_rtt_ms or 0.0)


class ShortestQueue(ab.Scheduler):
    """Scheduler of `examples/own-scheme`."""

    def pick(self, ask: SendAsk, view: View) -> ab.Decision | None:
        best = min(view.ready(), key=queueing, default=None)
        return best and ab.Decision(best, "the shortest queue", "queueing_ms", queueing(best))


class Reno(ab.CongestionControl):
    """Rules of the standard, written in Python."""

    def grow(self, acked: Acknowledged, view: View) -> ab.Window | None:
        window, largest = acked.window, view.path(acked.path).largest_chunk_bytes
        if window.cwnd_bytes <= window.ssthresh_bytes:
            return window.replace(cwnd_bytes=window.cwnd_bytes + min(acked.acked_bytes, acked.slow_start_limit_bytes))
        if window.partial_bytes_acked < window.cwnd_bytes:
            return None
        left = window.partial_bytes_acked - window.cwnd_bytes
        return window.replace(cwnd_bytes=window.cwnd_bytes + largest, partial_bytes_acked=left)

    def cut(self, loss: PathLoss, view: View) -> ab.Window:
        largest = view.path(loss.path).largest_chunk_bytes
        ssthresh = max(loss.window.cwnd_bytes // 2, 4 * largest)
        return ab.Window(largest if loss.cause == "timeout" else ssthresh, ssthresh)


class Paced(ab.CongestionControl):
    """Rule of component `paced`."""

    def pace(self, ask: PaceAsk, view: View) -> ab.Pacing | None:
        rtt_ms = view.path(ask.path).smoothed_rtt_ms
        if rtt_ms is None:
            return None
        window = ask.window
        percent = 200 if window.cwnd_bytes < window.ssthresh_bytes // 2 else 120
        bps = window.cwnd_bytes * 8 * percent // 100 * 1_000_000_000 // round(rtt_ms * 1e6)
        return ab.Pacing(rate_kbps=bps / 1e3)


class Same(ab.Retransmit):
    """Rule of component `rtx-same`."""

    def route(self, chunk: LostChunk, view: View) -> int:
        return chunk.path


def figures(scenario: ab.Scenario, scheme: str | ab.policy.Policy, seed: int = 1) -> dict[str, Any]:
    made = ab.run(scenario, scheme, seed, digest=True)
    return {"digest": made.digest, **made.metrics}


@pytest.mark.parametrize(
    ("own", "native"),
    [(Reno(), "cmt"), (Same(), "cmt(rtx=rtx-same)"), (Paced(), "cmt+paced")],
    ids=["congestion control", "retransmission", "pacing"],
)
def test_the_same_rule_in_python_gives_the_same_packets(links: ab.Scenario, own: ab.policy.Policy, native: str) -> None:
    assert figures(links, own, 3) == figures(links, native, 3)
    assert figures(links, native, 3)["retransmissions"] > 0


def test_a_scheduler_in_python_gives_the_same_packets_as_the_one_in_rust(links: ab.Scenario) -> None:
    class LowestRtt(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            return min(view.ready(), key=lambda path: path.smoothed_rtt_ms or 0.0, default=None)

    assert figures(links, LowestRtt()) == figures(links, "cmt+min-rtt")
    assert figures(links, LowestRtt()) != figures(links, "cmt")


def test_a_policy_sees_and_may_limit_what_is_in_flight_beside_the_window(links: ab.Scenario) -> None:
    seen: set[tuple[str | None, float | None, int | None]] = set()

    class Capped(ab.CongestionControl, ab.Scheduler):
        def pace(self, ask: PaceAsk, view: View) -> ab.Pacing:
            return ab.Pacing(rate_kbps=2_000, in_flight_cap_bytes=10_000)

        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            for path in view.paths:
                seen.add((path.refusal, path.pacing_rate_kbps, path.in_flight_cap_bytes))
                assert (path.refusal == "paced") <= (path.paced_until_s is not None)
                assert path.paced_until_s is None or path.paced_until_s > view.now_s
            return next(iter(view.ready()), None)

    goodput = ab.run(links, Capped()).metrics["goodput_kbps"]
    # 2 Mbit/s on the first path, and 10,000 bytes in each round trip of 83 ms, or 1 Mbit/s, on the second, less headers
    # and SACK delays.
    assert 2_000 < goodput < 3_000
    assert {(why, 2_000.0, 10_000) for why in (None, "paced", "in-flight-cap")} <= seen
    assert repr(ab.Pacing(rate_kbps=1.5)) == "Pacing(rate_kbps=1.5, in_flight_cap_bytes=None)"


def test_a_policy_sees_how_fast_paths_deliver_and_what_limits_them(links: ab.Scenario) -> None:
    rates: dict[int, list[float]] = {0: [], 1: []}
    limiters: set[str] = set()

    class Watching(ab.Scheduler):
        base = "cmt+min-rtt"

        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            return next(iter(view.ready()), None)

        def on_event(self, event: PolicyEvent, view: View) -> None:
            if event.kind != "sack-done":
                return
            for path in view.paths:
                limiters.add(path.limiter)
                sample = path.delivery
                if sample is None or sample.rate_kbps is None or sample.limiter != "window":
                    continue
                assert sample.rate_kbps == pytest.approx(sample.delivered_bytes * 8 / sample.interval_ms, rel=1e-3)
                assert sample.in_flight_bytes >= 1000
                # SACKs of the slow path's data mostly return on the fast one, and give no sample of its own round trip.
                assert path.recent_min_rtt_ms is not None or path.id == 1
                rates[path.id].append(sample.rate_kbps)

    ab.run(links, Watching())
    assert 8_000 < max(rates[0]) < 10_500
    assert 3_000 < max(rates[1]) < 5_300
    assert "window" in limiters
    assert limiters <= {"window", "peer-window", "scheduler"}


@pytest.mark.parametrize("given", [{"rate_kbps": -1}, {"rate_kbps": float("nan")}, {"in_flight_cap_bytes": 2e13}])
def test_invalid_limit_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        ab.Pacing(**given)


def test_another_base_keeps_its_other_slots(links: ab.Scenario) -> None:
    class Primary(ab.Retransmit):
        base = "sctp"

        def route(self, chunk: LostChunk, view: View) -> int:
            return chunk.path

    shares = {path.name: path.share for path in ab.run(links, Primary()).paths}
    assert shares == {"wifi": 1.0, "lte": 0.0}


def test_one_object_in_several_slots_gets_each_event_once(links: ab.Scenario) -> None:
    heard: dict[int, list[tuple[float, str, int | None]]] = {}

    class Both(ab.Scheduler, ab.Retransmit):
        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            return next(iter(view.ready()), None)

        def route(self, chunk: LostChunk, view: View) -> int:
            return chunk.path

        def on_event(self, event: PolicyEvent, view: View) -> None:
            if event.kind == "sent" and event.cause == "new":
                heard.setdefault(id(self), []).append((view.now_s, event.kind, event.tsn))

    made = ab.run(links, Both())
    assert made.metrics["retransmissions"] > 0
    (sent,) = heard.values()
    assert len({tsn for _, _, tsn in sent}) == len(sent) > 100


def test_each_association_works_on_an_object_of_its_own(links: ab.Scenario) -> None:
    class Counting(ab.Scheduler):
        def __init__(self) -> None:
            self.picks = [0]

        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            self.picks[0] += 1
            return next(iter(view.ready()), None)

    scheme = Counting()
    assert figures(links, scheme) == figures(links, scheme)
    assert scheme.picks == [0]


class Coin(ab.Scheduler):
    def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
        ready = view.ready()
        return self.random.choice(ready) if ready else None


def test_randomness_comes_from_the_seed(links: ab.Scenario) -> None:
    lossless = links.with_values({"path.lte.loss": 0.0})
    assert figures(lossless, Coin(), 1) == figures(lossless, Coin(), 1)
    assert figures(lossless, Coin(), 1) != figures(lossless, Coin(), 2)


def test_an_exception_ends_the_run_and_names_file_and_line(links: ab.Scenario) -> None:
    class Broken(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> int:
            return 1 // 0

    with pytest.raises(ZeroDivisionError) as raised:
        ab.run(links, Broken())
    last = raised.traceback[-1]
    assert (Path(last.path).name, last.name) == (Path(__file__).name, "pick")
    # No state remains that would end the next run.
    assert ab.run(links, "cmt").failure is None


@pytest.mark.parametrize("answer", ["wifi", 1.5, True, object()])
def test_an_answer_of_the_wrong_type_names_the_method(links: ab.Scenario, answer: object) -> None:
    class Wrong(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> Any:
            return answer

    _, line = inspect.getsourcelines(Wrong.pick)
    with pytest.raises(
        TypeError, match=rf"test_own_scheme\.py:{line}: `pick` gave back a {type(answer).__name__}: exp"
    ):
        ab.run(links, Wrong())


@pytest.mark.parametrize("answer", [5, 99, -1, 2**70])
def test_a_path_that_is_not_there_is_a_counted_mistake(links: ab.Scenario, answer: int) -> None:
    class Nowhere(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> int:
            return answer

    made = ab.run(links, Nowhere())
    assert made.metrics["overruled_picks"] > 10
    assert made.metrics["goodput_kbps"] > 0, "core sends on its own where nothing is in flight"


def test_a_full_path_is_a_counted_mistake_and_a_wait_is_none(links: ab.Scenario) -> None:
    class Stubborn(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> int:
            return 0

    class Patient(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> int | ab.Wait:
            return 0 if view.refusal(0) is None else ab.Wait(path=0)

    assert ab.run(links, Stubborn()).metrics["overruled_picks"] > 10
    assert "overruled_picks" not in ab.run(links, Patient()).metrics


def test_copies_and_queues_and_times_can_be_asked_for(links: ab.Scenario) -> None:
    class All(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> ab.Copies | ab.Wait | ab.Bind:
            if view.now_s < 0.5:
                return ab.Wait(until_s=0.5)
            if view.now_s < 1.0:
                return ab.Bind(0) if view.path(0).bound_bytes < 3_000 else ab.Wait()
            return ab.Copies(view.ready()) if view.ready() else ab.Wait()

    series = ab.run(links, All()).series
    sent = series.tsn().query("event == 'sent'")
    assert sent["time_s"].min() >= 0.5
    assert set(sent[sent["time_s"] < 1.0]["path"]) == {"wifi"}
    assert sent[sent["time_s"] > 1.5].groupby("tsn", observed=True)["path"].nunique().max() == 2


@pytest.mark.parametrize(
    ("cwnd", "message"), [(float("nan"), "NaN"), (-1, "-1"), (float("inf"), "inf"), (2**50, "1125899906842624")]
)
def test_window_is_clamped_to_valid_values(links: ab.Scenario, cwnd: float, message: str) -> None:
    class Mad(ab.CongestionControl):
        def grow(self, acked: Acknowledged, view: View) -> ab.Window:
            return acked.window.replace(cwnd_bytes=cwnd)

    with pytest.raises(ValueError, match=f"cwnd_bytes is {message}: a window has from 0 to"):
        ab.run(links, Mad())


def test_a_window_below_one_chunk_is_one_chunk_as_in_rust(links: ab.Scenario) -> None:
    class Tiny(ab.CongestionControl):
        def grow(self, acked: Acknowledged, view: View) -> ab.Window:
            return ab.Window(0, 0)

    paths = ab.run(links, Tiny()).series.paths()
    assert paths[paths["time_s"] > 0.5]["cwnd_bytes"].unique().tolist() == [1468]


def test_reasons_reach_the_trace(links: ab.Scenario) -> None:
    decisions = ab.run(links, ShortestQueue()).series.decisions()
    assert "the shortest queue" in set(decisions["reason"])
    assert "queueing_ms" in set(decisions["figure"].dropna())


def test_rules_are_few_and_short(links: ab.Scenario) -> None:
    with pytest.raises(ValueError, match="at most 100 bytes"):
        ab.Decision(0, "x" * 101)
    with pytest.raises(ValueError, match="finite"):
        ab.Decision(0, "rule", "figure", float("nan"))

    class Chatty(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> ab.Decision:
            return ab.Decision(0, f"at {view.now_s}")

    with pytest.raises(ValueError, match="more than 1000 different rules"):
        ab.run(links.with_values({"run.duration": "60 s"}), Chatty())


def test_views_of_a_policy_have_the_names_of_its_types(links: ab.Scenario) -> None:
    seen: list[View] = []

    class Looking(ab.Scheduler):
        def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
            assert (ask.chunk_bytes, ask.window_probe) == (1468, False)
            seen.append(view)
            return next(iter(view.ready()), None)

    ab.run(links, Looking())
    view = seen[-1]
    wifi, lte = view.paths
    assert (wifi.id, lte.id, wifi.state, wifi.primary, lte.primary) == (0, 1, "active", True, False)
    assert wifi.smoothed_rtt_ms is not None
    assert 30 < wifi.smoothed_rtt_ms < 200
    assert view.path(1) is lte
    assert view.outstanding_bytes(wifi) == wifi.outstanding_bytes >= wifi.in_flight_bytes
    assert view.now_s > 2.9
    assert view.association.peer_window_initial_bytes == 256 * 1024
    with pytest.raises(IndexError, match="there are 2 paths"):
        view.path(2)
    with pytest.raises(AttributeError):
        wifi.cwnd_bytes = 10**6  # type: ignore[misc]


def test_runs_of_several_schemes_and_seeds_are_results(links: ab.Scenario, tmp_path: Path) -> None:
    results = ab.run(links, schemes=["cmt", ShortestQueue()], seeds=2)
    assert results.schemes == ["cmt", "ShortestQueue"]
    assert results.to_pandas()[["scheme", "seed"]].to_numpy().tolist() == [
        ["cmt", 1], ["cmt", 2], ["ShortestQueue", 1], ["ShortestQueue", 2],
    ]  # fmt: skip
    assert results.manifest["own_schemes"] == {"ShortestQueue": "cmt"}
    results.write(tmp_path / "out")
    assert ab.Results.read(tmp_path / "out").schemes == results.schemes
    with pytest.raises(ab.errors.RunError, match="`schemes` and `seeds` make many runs"):
        ab.run(links, schemes=["cmt"], seed=3)  # type: ignore[call-overload]


LIMIT = 3


class Limited(ab.Scheduler):
    def __init__(self, limit: int = 2) -> None:
        self.limit = limit

    def pick(self, ask: SendAsk, view: View) -> PathFacts | None:
        ready = [path for path in view.ready() if path.error_count < min(self.limit, LIMIT)]
        return min(ready, key=queueing, default=None)


def test_a_scheme_is_called_after_its_class_and_parameters() -> None:
    def name(policy: ab.policy.Policy) -> str:
        scheme = resolve_scheme(policy)
        assert not isinstance(scheme, str)
        return scheme.name

    renamed = Limited()
    renamed.name = "quiet"
    assert [name(ShortestQueue()), name(Limited(5)), name(renamed)] == ["ShortestQueue", "Limited(limit=5)", "quiet"]


class Empty(ab.Scheduler):
    pass


class Called(ShortestQueue):
    def __init__(self, name: Any) -> None:
        self.name = name


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (Empty(), "Empty is a Scheduler without a method `pick`: define one"),
        (ShortestQueue, r"ShortestQueue is a class: give an object of it, ShortestQueue\(\)"),
        (7, "7 is not a scheme: give a name such as"),
        (Called("cmt-pf"), "cmt-pf is a scheme that there is already: give Called another `name`"),
        (Called("a b"), "`name` of Called is 'a b'"),
        (Called("<b>"), "`name` of Called is '<b>'"),
        (Called("a\nb"), "`name` of Called is"),
        (Called("x" * 101), "at most 100 characters"),
        (Called(3), "`name` of Called is 3"),
    ],
)
def test_object_that_is_no_scheme_is_refused_with_the_remedy(links: ab.Scenario, scheme: Any, message: str) -> None:
    with pytest.raises(ab.errors.SchemeError, match=message):
        ab.run(links, scheme)
    with pytest.raises(ab.errors.SweepError, match=message):
        ab.sweep(links, {"scheme": ["cmt", scheme]}, cache=None)


def test_an_unknown_base_is_refused(links: ab.Scenario) -> None:
    class Lost(ShortestQueue):
        base = "cmtt"

    with pytest.raises(ab.errors.SchemeError, match="did you mean `cmt`"):
        ab.run(links, Lost())


def test_two_schemes_of_one_name_are_refused(links: ab.Scenario) -> None:
    with pytest.raises(ab.errors.SweepError, match="has ShortestQueue twice"):
        ab.run(links, schemes=[ShortestQueue(), ShortestQueue()])


def test_worker_processes_are_refused(links: ab.Scenario) -> None:
    with pytest.raises(
        ab.errors.ExecutorError, match="ShortestQueue is a scheme in Python, which runs in this process"
    ):
        ab.sweep(links, {"scheme": [ShortestQueue()]}, executor="processes:2", cache=None)


def test_an_object_that_cannot_be_made_ends_before_the_first_run(links: ab.Scenario) -> None:
    class Stuck(ShortestQueue):
        def __deepcopy__(self, memo: object) -> Any:
            raise OSError("not today")

    with pytest.raises(OSError, match="not today"):
        ab.run(links, Stuck())


def test_ctrl_c_ends_a_run(links: ab.Scenario) -> None:
    class Interrupting(ShortestQueue):
        def pick(self, ask: SendAsk, view: View) -> ab.Decision | None:
            if view.now_s > 1.0:
                raise KeyboardInterrupt
            return super().pick(ask, view)

    with pytest.raises(KeyboardInterrupt):
        ab.run(links, schemes=["cmt", Interrupting()], seeds=1)
