"""Load of a scheme on links: time in queues, and sent bytes for each delivered byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.points import Bench, Figures
from studies.bounds.points import LimitPoint
from studies.degradation.given import of_point
from studies.degradation.neighbours import Bottleneck, alone
from studies.degradation.setting import SUBJECT, Setting

BASELINE = "cmt"

MAX_ADDED_MS = 20.0
MAX_OF_FULL = 0.5
"""Of the baseline's queueing, where the baseline fills the queue."""

FILLS = 0.5
"""Minimum mean wait in a filled queue, relative to the wait in a full one."""

MAX_SENT = 1.10
"""Wire bytes for each byte delivered, where nothing is lost."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Setting with the delays of its empty paths, and the wait in a full queue if it has one."""

    setting: Setting
    empty_ms: Mapping[str, float]
    full_ms: float | None


def check_queueing(
    links: Sequence[Bottleneck], points: Sequence[LimitPoint], plan: Plan, bench: Bench
) -> list[CheckOutcome]:
    """Compares the time in queues alone on the link with that of `cmt`."""
    places = [_of_link(link, plan) for link in links] + [_of_point(point, plan) for point in points]
    schemes = dict.fromkeys((BASELINE, *plan.schemes))
    bench.run("queueing", [place.setting.trial(scheme) for scheme in schemes for place in places], plan.seeds)
    limit = (
        f"at most {MAX_ADDED_MS:g} ms above `{BASELINE}`, and at most {100 * MAX_OF_FULL:g} % of its queueing where "
        "it fills the queue"
    )
    return [
        CheckOutcome(
            "queueing",
            "Queueing, alone on the links",
            limit,
            scheme,
            tuple(finding for place in places for finding in _queueing(place, scheme, plan, bench)),
        )
        for scheme in plan.schemes
    ]


def _of_link(link: Bottleneck, plan: Plan) -> _Place:
    setting = alone(link, plan.duration_s)
    return _Place(setting, dict.fromkeys(setting.paths, link.empty_delay_ms), link.full_queue_ms)


def _of_point(point: LimitPoint, plan: Plan) -> _Place:
    return _Place(of_point(point, plan.duration_s), point.empty_delays_ms(), None)


def queueing_ms(figures: Figures, empty_ms: Mapping[str, float]) -> float:
    """Returns the mean queueing delay of packets: their delay without that of empty links."""
    paths = [(figures.paths[name], empty) for name, empty in empty_ms.items()]
    arrived = sum(path.arrived_packets for path, _ in paths)
    waited = sum((path.delay_ms - empty) * path.arrived_packets for path, empty in paths if path.delay_ms is not None)
    # A last packet of a message is smaller than a full one, and quicker.
    return max(waited / arrived, 0.0) if arrived else 0.0


def _queueing(place: _Place, scheme: str, plan: Plan, bench: Bench) -> Iterator[Finding]:
    ours, base = (
        [queueing_ms(figures, place.empty_ms) for figures in bench.of(place.setting.trial(each), plan.seeds)]
        for each in (scheme, BASELINE)
    )
    mean = sum(ours) / len(ours)
    base_mean = sum(base) / len(base)
    note = f"{mean:.1f} ms, {BASELINE} {base_mean:.1f}"
    added = [one - other for one, other in zip(ours, base, strict=True)]
    yield plan.find(f"{place.setting.name} added ms", added, high=MAX_ADDED_MS, note=note)
    fills = place.full_ms is not None and base_mean >= FILLS * place.full_ms
    if fills and scheme != BASELINE:
        parts = [one / other for one, other in zip(ours, base, strict=True) if other > 0]
        yield plan.find(f"{place.setting.name} of {BASELINE}", parts, 0.0, MAX_OF_FULL, note)


def check_wire(points: Sequence[LimitPoint], plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks wire bytes of packets with DATA per delivered byte: the necessary ones and a tenth more."""
    settings = {point.id: of_point(point, plan.duration_s) for point in points}
    trials = [settings[point.id].trial(scheme) for scheme in plan.schemes for point in points]
    bench.run("wire bytes", trials, plan.seeds)

    def finding(scheme: str, point: LimitPoint) -> Finding:
        runs = bench.of(settings[point.id].trial(scheme), plan.seeds)
        used = [wire_ratio(figures, _losses(point)) for figures in runs]
        return plan.find(point.id, used, 0.0, MAX_SENT)

    limit = f"wire bytes times (1 - loss) for each byte delivered: at most {MAX_SENT:.2f}"
    return plan.outcomes("wire", "Bytes on the wire", limit, points, finding)


def _losses(point: LimitPoint) -> dict[str, float]:
    return {name: path.loss for name, path in zip(point.path_names, point.paths, strict=True)}


def wire_ratio(figures: Figures, losses: Mapping[str, float]) -> float:
    """Returns the wire bytes that the links' own losses leave, over delivered user bytes."""
    delivered = figures.delivered_bytes[SUBJECT]
    sent = sum(figures.paths[name].sent_bytes * (1 - loss) for name, loss in losses.items())
    return sent / delivered if delivered else 0.0
