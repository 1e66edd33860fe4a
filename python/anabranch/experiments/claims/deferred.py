"""Claims of kind `deferred`, for which no rule exists yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.experiments.claims.context import Context
from anabranch.experiments.claims.quantity import PairedSamples
from anabranch.experiments.claims.statement import Statement
from anabranch.experiments.fields import Fields
from anabranch.experiments.model import Experiment
from anabranch.experiments.verdicts.finding import Part


@dataclass(frozen=True, slots=True)
class Deferred(Statement):
    """Claim for which no rule exists yet."""

    reason: str

    @classmethod
    def read(cls, fields: Fields, context: Context) -> Deferred:
        return fields.fill(cls)

    def judge(self, samples: PairedSamples) -> Iterator[Part]:
        return iter(())

    def claimed(self) -> str:
        return "open"

    def describe(self, experiment: Experiment) -> str:
        return f"open: {self.reason}"
