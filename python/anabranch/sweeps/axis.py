"""Axes of a sweep: keys of a scenario with the values that each takes in turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.errors import SweepError
from anabranch.values import Value, literal, plain

Over: TypeAlias = "Mapping[str, Iterable[object]] | Mapping[str | tuple[str, ...], Iterable[object]]"

# Keys that are set elsewhere, with a hint.
ELSEWHERE = {
    "run.schemes": 'give schemes as over={"scheme": [...]} or --schemes',
    "run.seeds": "give seeds as seeds= or --seeds",
    "schemes": "did you mean `scheme`?",
    "seed": "give seeds as seeds= or --seeds",
    "seeds": "give seeds as seeds= or --seeds",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and its values, or several keys that are swept side by side.

    Each entry of `steps` has a value for each key.
    """

    keys: tuple[str, ...]
    steps: tuple[tuple[Value, ...], ...]


def read_axes(over: Over, fixed: Iterable[str] = ()) -> list[Axis]:
    """Returns the axes of a grid, in the given order. `fixed` are keys that have a value already.

    Raises `SweepError` with all errors.
    """
    faults: list[str] = []
    axes = [axis for keys, values in over.items() if (axis := _axis(keys, values, faults))]
    seen = set(fixed)
    for key in (key for axis in axes for key in axis.keys):
        if key in seen:
            faults.append(
                f"`{key}`: has a value already, in `overrides` (`--set`) or in another list: omit one of them"
            )
        seen.add(key)
    if faults:
        raise SweepError("\n".join(faults))
    return axes


def _axis(keys: object, values: Iterable[object], faults: list[str]) -> Axis | None:
    names = (keys,) if isinstance(keys, str) else tuple(keys) if isinstance(keys, tuple) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        faults.append(f"`{keys}`: is not a key; a key is text such as path.path-2.loss, or a tuple of such")
        return None
    name = ",".join(names)
    before = len(faults)
    faults += [f"`{key}`: {ELSEWHERE[key]}" for key in names if key in ELSEWHERE]
    steps: list[tuple[Value, ...]] = []
    for value in _listed(name, values, faults):
        if (step := _step(names, value, faults)) is not None:
            steps.append(step)
    _check_repeats(names, steps, faults)
    return Axis(names, tuple(steps)) if len(faults) == before else None


def _listed(name: str, values: Iterable[object], faults: list[str]) -> list[object]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        faults.append(f"`{name}`: expected a list of values such as [0, 0.01], found {values!r}")
        return []
    listed = list(values)
    if not listed:
        faults.append(f"`{name}`: has an empty list of values; name one at least, or leave the key out")
    return listed


def _step(names: tuple[str, ...], value: object, faults: list[str]) -> tuple[Value, ...] | None:
    name = ",".join(names)
    try:
        converted = plain(value)
    except (TypeError, ValueError) as error:
        faults.append(f"`{name}`: {error}")
        return None
    if len(names) == 1:
        return (converted,)
    if not isinstance(converted, list) or len(converted) != len(names):
        faults.append(f"`{name}`: expected a value for each of the {len(names)} keys, found {value!r}")
        return None
    return tuple(converted)


def _check_repeats(names: tuple[str, ...], steps: Sequence[tuple[Value, ...]], faults: list[str]) -> None:
    written = [_as_text(step) for step in steps]
    for at, text in enumerate(written):
        if text in written[:at]:
            faults.append(f"`{','.join(names)}`: has the value {text} twice: both would be the same runs")


def _as_text(step: tuple[Value, ...]) -> str:
    return literal(step[0]) if len(step) == 1 else f"({', '.join(literal(value) for value in step)})"


def in_words(keys: Sequence[str], values: Sequence[Value]) -> str:
    """Returns a point of the grid as text: `path.path-2.loss = 0.01, run.profile = "ns2"`."""
    said = [f"{key} = {literal(value)}" for key, value in zip(keys, values, strict=True)]
    return ", ".join(said) or "the scenario as it is"
