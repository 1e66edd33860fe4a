"""Reader of the quantities, schemes and axes that claims in `claims.toml` name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.experiments.claims.quantity import At, Quantity
from anabranch.experiments.fields import Fields, hint
from anabranch.experiments.model import Axis, Experiment, Measure
from anabranch.experiments.reading.measures import check_measure, read_at, read_measure

ALL = "all"


@dataclass(frozen=True, slots=True)
class Context:
    """Context in which the table of a claim is read.

    It contains the experiment of the claim, all experiments of the study, and the default measure and axis values.
    """

    experiment: Experiment
    experiments: Mapping[str, Experiment]
    measure: Measure
    at: At

    def quantity(self, fields: Fields, key: str, schemes: tuple[str, ...] = ()) -> Quantity:
        """Reads the quantity in the table `key`.

        If `schemes` is not empty, the claim is about each of them, and the table names none.
        """
        inner = fields.inner(key)
        if inner is None:
            raise fields.error(key, 'is missing; it has to be a table such as { scheme = "CMT" }')
        experiment, name = self.experiment_of(inner)
        if schemes and "scheme" in inner:
            raise inner.error("scheme", "is given together with `schemes` of the claim; remove one of them")
        chosen = schemes or read_schemes(inner, "scheme", experiment)
        measure = read_measure(inner, self.measure)
        check_measure(inner, measure, experiment.names)
        axes = {axis.name for axis in experiment.axes}
        common = {axis: values for axis, values in self.at.items() if axis in axes}
        quantity = Quantity(chosen, measure, {**common, **read_at(inner, "at", experiment.axes)}, name)
        inner.done()
        return quantity

    def own_quantity(self, fields: Fields, schemes: tuple[str, ...]) -> Quantity:
        """Reads the quantity from measure, parameters and `at` of the claim itself."""
        check_measure(fields, self.measure, self.experiment.names)
        return Quantity(schemes, self.measure, self.at)

    def experiment_of(self, fields: Fields) -> tuple[Experiment, str]:
        """Returns the experiment that a table names with its id, or the claim's own experiment with an empty text."""
        if "experiment" not in fields:
            return self.experiment, fields.get("experiment", str, "")
        name = fields.choice("experiment", self.experiments)
        return self.experiments[name], name

    def axis(self, fields: Fields) -> Axis:
        """Reads the axis that the claim names."""
        return self.experiment.axis(fields.choice("axis", [axis.name for axis in self.experiment.axes]))


def read_schemes(fields: Fields, key: str, experiment: Experiment, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Reads the schemes in a key."""
    names = fields.texts(key) or default
    if not names:
        raise fields.error(key, f"is missing; {hint('', experiment.schemes)}")
    if names == (ALL,):
        return tuple(experiment.schemes)
    fields.check_known(key, names, experiment.schemes, "is `{}`")
    return names


def read_range(fields: Fields) -> tuple[float, float]:
    """Reads `value` of a claim: the range of the claimed figure, with equal ends for a single number."""
    numbers = fields.numbers("value")
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise fields.error("value", "has to be a number, or two of which the smaller comes first")
    return numbers[0], numbers[-1]
