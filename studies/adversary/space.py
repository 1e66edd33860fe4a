"""Space of settings that the search covers, as parameters of an Optuna trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.degradation.setting import Setting, Table, bursts, cross_traffic, kbit, ms, over_links, single_losses

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

CROSS_PACKET_BYTES = 1000

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
    links = {f"path-{at}": _link(trial, f"path-{at}", duration_s) for at in range(1, count + 1)}
    # Numbers above the count are settings without a competing flow too.
    contested = f"path-{trial.suggest_int('contested', 0, PATHS[1])}"
    buffer_bytes = _spread(trial, "buffer", BUFFER_BYTES)
    return over_links(name, duration_s, buffer_bytes, links, contested if contested in links else None, uneven=True)


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
        return {"loss": single_losses(loss)}
    return {"loss": bursts(loss, trial.suggest_float(f"{path} burst", *BURST_PACKETS))}


def _cross_traffic(trial: BaseTrial, path: str, rate_kbps: float) -> Table:
    kind = trial.suggest_categorical(f"{path} cross traffic", _CROSSED)
    if kind == "none":
        return {}
    taken_kbps = rate_kbps * trial.suggest_float(f"{path} load", *CROSS_LOAD)
    return {"background": [cross_traffic(kind, taken_kbps, CROSS_PACKET_BYTES)]}


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
