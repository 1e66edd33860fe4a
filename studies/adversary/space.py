"""Space of settings that the search covers, as parameters of an Optuna trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.degradation.setting import Contest, Setting, Table, kbit, ms, run_table, subject

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

PATHS = (2, 4)
RATE_KBPS = (300.0, 50_000.0)
DELAY_MS = (1.0, 200.0)
LOSS = (0.0005, 0.1)
BURST_PACKETS = (2.0, 10.0)
QUEUE_PACKETS = (5.0, 500.0)
BUFFER_BYTES = (16 * 1024.0, 8 * 1024 * 1024.0)
CROSS_LOAD = (0.1, 0.6)
"""Rate of cross traffic, relative to that of its link."""

CHANGED_RATE = (0.1, 2.0)
"""Rate of a link after its change, relative to the rate before."""

OUTAGE_S = (0.3, 6.0)
CHANGE_AT = (0.1, 0.7)
"""Time of a change or outage, relative to the duration of the run."""

# The first choice of each is the plain one.
_LOSSES = ("none", "single", "bursts")
_CROSSED = ("none", "cbr", "poisson", "pareto")
_CHANGES = ("none", "rate", "outage")


def setting_of(trial: BaseTrial, name: str, duration_s: float) -> Setting:
    """Returns the setting of a trial, whose parameters it suggests."""
    count = trial.suggest_int("paths", *PATHS)
    names = [f"path-{at}" for at in range(1, count + 1)]
    links = [{"name": f"link-{path}", **_link(trial, path, duration_s)} for path in names]
    paths = [{"name": path, "via": [f"link-{path}"]} for path in names]
    flows = [subject(names)]
    contested = trial.suggest_int("contested", 0, PATHS[1])
    contest = None
    # Numbers above the count are settings without a competing flow too.
    if 1 <= contested <= count:
        paths.append({"name": "other", "via": [f"link-path-{contested}"]})
        flows.append({"name": "other", "paths": ["other"], "scheme": "sctp"})
        contest = Contest((f"path-{contested}",), ("other",))
    table = {
        "run": run_table(duration_s),
        "association": {"recv_buffer": f"{round(_spread(trial, 'buffer', BUFFER_BYTES))} B"},
        "link": links,
        "path": paths,
        "flow": flows,
    }
    return Setting(name, table, tuple(names), contest, uneven=True)


def _spread(trial: BaseTrial, name: str, ends: tuple[float, float]) -> float:
    return trial.suggest_float(name, *ends, log=True)


def _link(trial: BaseTrial, path: str, duration_s: float) -> Table:
    rate_kbps = _spread(trial, f"{path} rate", RATE_KBPS)
    link: dict[str, object] = {
        "rate": kbit(rate_kbps),
        "delay": ms(_spread(trial, f"{path} delay", DELAY_MS)),
        "queue": f"{round(_spread(trial, f'{path} queue', QUEUE_PACKETS))} packets",
    }
    return {
        **link,
        **_loss(trial, path),
        **_cross_traffic(trial, path, rate_kbps),
        **_change(trial, path, rate_kbps, duration_s),
    }


def _loss(trial: BaseTrial, path: str) -> Table:
    kind = trial.suggest_categorical(f"{path} losses", _LOSSES)
    if kind == "none":
        return {}
    loss = _spread(trial, f"{path} loss", LOSS)
    if kind == "single":
        return {"loss": {"model": "bernoulli", "rate": round(loss, 6)}}
    leave = 1 / trial.suggest_float(f"{path} burst", *BURST_PACKETS)
    enter = leave * loss / (1 - loss)
    return {"loss": {"model": "gilbert-elliott", "p": round(enter, 6), "r": round(leave, 6)}}


def _cross_traffic(trial: BaseTrial, path: str, rate_kbps: float) -> Table:
    kind = trial.suggest_categorical(f"{path} cross traffic", _CROSSED)
    if kind == "none":
        return {}
    taken_kbps = rate_kbps * trial.suggest_float(f"{path} load", *CROSS_LOAD)
    # Pareto sources are on for half of the time.
    rate = kbit(2 * taken_kbps if kind == "pareto" else taken_kbps)
    return {"background": [{"kind": kind, "rate": rate, "packet": "1000 B"}]}


def _change(trial: BaseTrial, path: str, rate_kbps: float, duration_s: float) -> Table:
    kind = trial.suggest_categorical(f"{path} change", _CHANGES)
    if kind == "none":
        return {}
    at_s = duration_s * trial.suggest_float(f"{path} change at", *CHANGE_AT)
    if kind == "rate":
        rate = kbit(rate_kbps * _spread(trial, f"{path} changed rate", CHANGED_RATE))
        return {"event": [{"at": ms(1000 * at_s), "direction": "forward", "rate": rate}]}
    back_s = at_s + _spread(trial, f"{path} outage", OUTAGE_S)
    return {"event": [{"at": ms(1000 * at_s), "up": False}, {"at": ms(1000 * back_s), "up": True}]}
