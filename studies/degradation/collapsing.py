"""Settings in which multipath schemes are known to fall far below their best path."""

from __future__ import annotations

from studies.degradation.setting import Setting, Table, kbit, ms, poisson, run_table, subject

_BUFFER = "128 KiB"


def collapsing(duration_s: float) -> list[Setting]:
    """Returns the settings."""
    even = [_link(10_000, 20), _link(10_000, 20)]
    return [
        _setting("rtt-x10", duration_s, [_link(5000, 20), _link(5000, 200)]),
        _setting("rtt-x10-slow", duration_s, [_link(2000, 20), _link(200, 200)]),
        _setting("dead-path", duration_s, [_link(1000, 45), _link(1000, 45), {**_link(1000, 45), **_dead()}]),
        _setting("returning-path", duration_s, [even[0], {**even[1], "event": _outages(duration_s)}]),
        _setting("slow-ack-path", duration_s, [_back(link, rate="100 kbit/s") for link in even]),
        _setting("lossy-ack-path", duration_s, [_back(link, loss=0.1) for link in even]),
        _setting("jitter", duration_s, [{**link, "jitter": _jitter()} for link in even]),
        _setting(
            "ack-aggregation",
            duration_s,
            [_back(link, aggregation={"period": "10 ms", "packets": 32}) for link in even],
        ),
        _setting(
            "changing-rates", duration_s, [_swinging(10_000, 2500, duration_s), _swinging(2500, 10_000, duration_s)]
        ),
    ]


def _setting(name: str, duration_s: float, links: list[Table]) -> Setting:
    paths = [{"name": f"path-{at}", **link} for at, link in enumerate(links, 1)]
    names = [path["name"] for path in paths]
    table = {
        "run": run_table(duration_s),
        "association": {"recv_buffer": _BUFFER},
        "path": paths,
        "flow": [subject(names)],
    }
    return Setting(name, table, tuple(names), uneven=True)


def _link(rate_kbps: float, delay_ms: float) -> Table:
    background = [poisson(rate_kbps / 50)]
    return {"rate": kbit(rate_kbps), "delay": ms(delay_ms), "queue": "50 packets", "background": background}


def _back(link: Table, **reverse: object) -> Table:
    return {**link, "reverse": reverse}


def _dead() -> Table:
    return {"event": [{"at": "0 s", "up": False}]}


def _outages(duration_s: float) -> list[Table]:
    """Returns outages and recoveries in turn, every five seconds."""
    return [{"at": f"{at} s", "up": at % 10 == 0} for at in range(5, int(duration_s), 5)]


def _jitter() -> Table:
    return {"model": "uniform", "most": "5 ms", "order": "free"}


def _swinging(first_kbps: float, second_kbps: float, duration_s: float) -> Table:
    """Returns two rates in turn, every ten seconds."""
    events = [
        {"at": f"{at} s", "direction": "forward", "rate": kbit(second_kbps if at % 20 == 10 else first_kbps)}
        for at in range(10, int(duration_s), 10)
    ]
    return {**_link(first_kbps, 20), "event": events}
