"""Experiments of a source: scenario, schemes, axes, figures, variants and ablations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from anabranch.values import Value, literal

Settings: TypeAlias = Mapping[str, Value]
"""Values of a scenario to set, by dotted key as in `--set`."""

FigureKind = Literal[
    "lines",
    "bars",
    "cwnd",
    "throughput-time",
    "transfer-time",
    "tsn",
    "out-of-order",
    "regression",
    "table",
]

TRACED_FIGURES: frozenset[str] = frozenset({"cwnd", "throughput-time", "tsn", "out-of-order"})
"""Figures over time, which need traces of runs."""

STANDARD = "rfc9260"
"""Id of the change from ns-2's rules to those of RFC 9260, under which headline claims are judged again."""

RADIO = "radio"
"""Id of the change from wired links with random losses to radio links, under which all claims are judged again."""

DEFAULT = "default"
"""Id of the setting without a variant or an ablation."""


def settings_text(settings: Mapping[str, object]) -> str:
    """Settings in one line: `path.*.delay = 30 ms, run.duration = 60 s`."""
    texts = {key: literal(value) if isinstance(value, dict) else value for key, value in settings.items()}
    return ", ".join(f"{key} = {text}" for key, text in texts.items())


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis of an experiment.

    `values` are those of the data file. `settings[i]` are the scenario's overrides of value `i`, `positions[i]` is its
    position on the figure's axis, and `labels[i]` its label.
    """

    name: str
    label: str
    values: tuple[Value, ...]
    settings: tuple[Settings, ...]
    positions: tuple[float, ...]
    labels: tuple[str, ...]

    def index(self, value: Value) -> int | None:
        """Returns the index of a value, or `None`. Numbers are equal up to the rounding of decimal notation."""
        for index, own in enumerate(self.values):
            if same_value(own, value):
                return index
        return None

    def only(self, values: tuple[Value, ...]) -> Axis:
        """Returns the axis with a part of its values, in the order of the axis."""
        kept = [i for i, own in enumerate(self.values) if any(same_value(own, value) for value in values)]
        columns = (self.values, self.settings, self.positions, self.labels)
        return Axis(self.name, self.label, *(tuple(column[i] for i in kept) for column in columns))  # type: ignore[arg-type]


def same_value(one: Value, other: Value) -> bool:
    """Returns `True` if two values of an axis are equal."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    return one == other


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure by name with its parameters: see `anabranch.experiments.measures`."""

    name: str
    path: str | None = None
    flow: str | None = None
    window_s: tuple[float, float] | None = None
    time_s: float | None = None

    def __str__(self) -> str:
        """Returns the name in tables: `cwnd_mean_bytes(path-1)`."""
        given = [text for text in (self.path, self.flow) if text]
        if self.window_s:
            given.append(f"{self.window_s[0]:g} to {self.window_s[1]:g} s")
        if self.time_s is not None:
            given.append(f"{self.time_s:g} s")
        return f"{self.name}({', '.join(given)})" if given else self.name


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an experiment, in the axes of the source. `name` is that of its files."""

    name: str
    kind: FigureKind
    measure: Measure
    x: str | None = None
    panels: str | None = None
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    schemes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    at: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    seed: int = 1
    window_s: tuple[float, float] | None = None
    bin_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduction of an experiment: fewer seeds, fewer axis values, other settings.

    `None` and missing axes change nothing.
    """

    seeds: int | None = None
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    overrides: Settings = field(default_factory=dict)


ChangeKind = Literal["variant", "reading", "ablation"]


@dataclass(frozen=True, slots=True)
class Change:
    """Change of an experiment: a variant, a reading or an ablation.

    A *variant* is another plausible value of a setting that the source does not state, or contradicts itself on. It can
    decide the claims in `claims` (all claims of the experiment if empty). A *reading* is another answer to a question
    that the source or its data settle; it is shown, and no verdict depends on it. An *ablation* shows the effect of a
    part, and no verdict depends on it. `unknown` names the open question of a variant, `decided` the settled question
    of a reading. `schemes` replaces the expressions of scheme names. `measure` replaces the measure of the experiment.
    `sets` replaces the settings of each value of an axis, by the name of the axis. `renames` maps ends of keys to other
    ends: values of the experiment for such a key, whether set, drawn or of an axis, are given to the renamed key.
    """

    id: str
    kind: ChangeKind
    about: str
    unknown: str = ""
    decided: str = ""
    schemes: Mapping[str, str] = field(default_factory=dict)
    measure: Measure | None = None
    sets: Mapping[str, tuple[Settings, ...]] = field(default_factory=dict)
    less: Reduction = field(default_factory=Reduction)
    claims: tuple[str, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Returns the changed values: `CMT = cmt(trigger=6), path.*.delay = 30 ms`."""
        axes = {name: "; ".join(settings_text(each) for each in sets) for name, sets in self.sets.items()}
        measure = {"measure": str(self.measure)} if self.measure else {}
        renames = {f"*.{new}": f"the value of *.{old}" for old, new in self.renames.items()}
        return settings_text({**self.schemes, **measure, **self.less.overrides, **axes, **renames})

    def axis(self, axis: Axis) -> Axis:
        """Returns the axis with the settings of this change."""
        settings = self.sets.get(axis.name, axis.settings)
        return replace(axis, settings=tuple({self.key(key): value for key, value in each.items()} for each in settings))

    def key(self, key: str) -> str:
        """Returns the key that has the experiment's value of a key."""
        for old, new in self.renames.items():
            if key.endswith(f".{old}"):
                return key.removesuffix(old) + new
        return key

    def applied(self, settings: Settings) -> Settings:
        """Returns settings of the experiment with this change.

        Renamed keys come last, because they may be in a table that the change sets.
        """
        kept = {key: value for key, value in settings.items() if self.key(key) == key}
        renamed = {self.key(key): value for key, value in settings.items() if key not in kept}
        return {**kept, **self.less.overrides, **renamed}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the paths and flows of a scenario."""

    paths: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of a source, usually a figure or a table. `names` are those in its scenario."""

    id: str
    title: str
    source: str
    scenario: Path
    schemes: Mapping[str, str]
    seeds: int
    measure: Measure
    names: Names = Names()
    overrides: Settings = field(default_factory=dict)
    draw: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    figures: tuple[Figure, ...] = ()
    quick: Reduction = field(default_factory=Reduction)
    variants: tuple[Change, ...] = ()
    readings: tuple[Change, ...] = ()
    ablations: tuple[Change, ...] = ()
    unknowns: tuple[str, ...] = ()
    note: str = ""
    deferred: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes in the order of display: variants, then readings, then ablations."""
        return self.variants + self.readings + self.ablations

    def axis(self, name: str) -> Axis:
        """Returns the axis of this name, which has to exist."""
        return next(axis for axis in self.axes if axis.name == name)
