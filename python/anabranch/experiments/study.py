"""Folder of a study: `study.toml`, `experiments.toml`, `claims.toml` and `scenarios/`.

Optional files are `seeds.toml`, `radio.toml`, `causes.toml` and `notes.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import ExperimentError
from anabranch.experiments.claims.claim import Claim, read_claims
from anabranch.experiments.fields import Fields, hint, read_each, read_toml
from anabranch.experiments.model import Experiment
from anabranch.experiments.reading.experiments import read_experiments
from anabranch.experiments.reading.radio import RADIO_FILE, with_radio_links
from anabranch.experiments.reading.seeds import SEEDS_FILE, with_planned_seeds
from anabranch.text_file import read_text


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why claims are not reproduced. `evidence` lists the changes that show it, each as `EXPERIMENT:CHANGE`."""

    claims: tuple[str, ...]
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Study:
    """Study with its experiments, its claims, and the causes of differences.

    `decided` maps questions to the answers that the study's text or data gives.
    """

    key: str
    title: str
    venue: str
    year: int
    folder: Path
    schemes: Mapping[str, str]
    conventions: Mapping[str, str]
    decided: Mapping[str, str]
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    causes: tuple[Cause, ...]
    notes: str
    authors: tuple[str, ...] = ()
    doi: str = ""

    def experiment(self, identity: str) -> Experiment:
        """Returns the experiment with this id. The study must contain it."""
        return next(experiment for experiment in self.experiments if experiment.id == identity)

    def claims_of(self, experiment: str) -> tuple[Claim, ...]:
        """Returns the claims of one experiment in the order of the file."""
        return tuple(claim for claim in self.claims if claim.experiment == experiment)


def read_study(folder: Path) -> Study:
    """Reads and checks the folder of a study.

    `seeds.toml`, `radio.toml`, `causes.toml` and `notes.md` may be missing. Raises `ExperimentError` with file, table
    and key of each fault in claims or experiments.
    """
    path = folder / "study.toml"
    fields = Fields(read_toml(path), path)
    schemes = _texts(fields, "schemes")
    if not schemes:
        raise fields.error("schemes", "is missing: the study's names for schemes, and the expressions they stand for")
    key = fields.need("key", str)
    if key != folder.name:
        raise fields.error("key", f"is `{key}`, but the folder is called `{folder.name}`")
    experiments = with_planned_seeds(folder / SEEDS_FILE, read_experiments(folder / "experiments.toml", schemes))
    claims = read_claims(folder / "claims.toml", experiments)
    experiments = with_radio_links(folder / RADIO_FILE, experiments, {claim.experiment for claim in claims})
    decided = _texts(fields, "decided")
    _check_variants(experiments, claims, folder / "experiments.toml")
    _check_readings(experiments, decided, folder / "experiments.toml")
    study = fields.fill(
        Study,
        key=key,
        folder=folder,
        schemes=schemes,
        conventions=_texts(fields, "conventions"),
        decided=decided,
        experiments=experiments,
        claims=claims,
        causes=_causes(folder / "causes.toml", experiments, claims),
        notes=_notes(folder / "notes.md"),
    )
    fields.done()
    return study


def _texts(fields: Fields, key: str) -> dict[str, str]:
    table: dict[str, str] = fields.get(key, dict, {})
    for name, value in table.items():
        if not isinstance(value, str):
            raise fields.error(key, f"has `{name}`, which has to be text")
    return table


def _check_variants(experiments: tuple[Experiment, ...], claims: tuple[Claim, ...], file: Path) -> None:
    """Raises an error if a variant names an unknown claim."""
    for experiment in experiments:
        known = [claim.id for claim in claims if claim.experiment == experiment.id]
        for variant in experiment.variants:
            for claim in variant.claims:
                if claim not in known:
                    raise ExperimentError(
                        f"{file}: experiment {experiment.id}, variant {variant.id}: `claims` has `{claim}`; "
                        f"{hint(claim, known)}"
                    )


def _check_readings(experiments: tuple[Experiment, ...], decided: Mapping[str, str], file: Path) -> None:
    """Raises an error if a reading answers a question that is missing in `[decided]` of study.toml."""
    for experiment in experiments:
        for reading in experiment.readings:
            if reading.decided not in decided:
                raise ExperimentError(
                    f"{file}: experiment {experiment.id}, reading {reading.id}: `decided` is `{reading.decided}`, "
                    f"which `[decided]` of study.toml lacks; {hint(reading.decided, list(decided))}"
                )


def _causes(path: Path, experiments: tuple[Experiment, ...], claims: tuple[Claim, ...]) -> tuple[Cause, ...]:
    changes = [f"{experiment.id}:{change.id}" for experiment in experiments for change in experiment.changes]

    def read(fields: Fields) -> Cause:
        cause = Cause(fields.texts("claims"), fields.need("text", str).strip(), fields.texts("evidence"))
        if not cause.claims:
            raise fields.error("claims", "is missing or empty")
        fields.check_known("claims", cause.claims, [claim.id for claim in claims])
        fields.check_known("evidence", cause.evidence, changes)
        return cause

    return read_each(path, "cause", read) if path.exists() else ()


def _notes(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
