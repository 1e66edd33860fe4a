"""A paper's folder: `paper.toml`, `experiments.toml`, `claims.toml`, `causes.toml`, `notes.md` and `scenarios/`."""

from __future__ import annotations

from pathlib import Path

from anabranch.papers.claim import Claim
from anabranch.papers.error import PaperError
from anabranch.papers.model import Cause, Experiment, Paper
from anabranch.papers.reading.claims import read_claims
from anabranch.papers.reading.experiments import read_experiments
from anabranch.papers.reading.fields import Fields, each, hint, read_toml


def read_paper(folder: Path) -> Paper:
    """Everything in the folder of a paper, checked.

    `causes.toml` and `notes.md` may be missing. Raises `PaperError`, which names file, table and key, for whatever is
    wrong; faults of several claims or experiments are told at once.
    """
    path = folder / "paper.toml"
    fields = Fields(read_toml(path), path, "")
    schemes = _texts(fields, "schemes")
    if not schemes:
        raise fields.error("schemes", "is missing: the paper's names for schemes, and the expressions they stand for")
    key = fields.need("key", str)
    if key != folder.name:
        raise fields.error("key", f"is `{key}`, but the folder is called `{folder.name}`")
    experiments = read_experiments(folder / "experiments.toml", schemes)
    claims = read_claims(folder / "claims.toml", experiments)
    _check_decided(experiments, claims, folder / "experiments.toml")
    paper = Paper(
        key=key,
        title=fields.need("title", str),
        authors=fields.texts("authors"),
        venue=fields.need("venue", str),
        year=fields.need("year", int),
        doi=fields.get("doi", str, ""),
        folder=folder,
        schemes=schemes,
        conventions=_texts(fields, "conventions"),
        experiments=experiments,
        claims=claims,
        causes=_causes(folder / "causes.toml", experiments, claims),
        notes=_notes(folder / "notes.md"),
    )
    fields.done()
    return paper


def _texts(fields: Fields, key: str) -> dict[str, str]:
    table: dict[str, object] = fields.get(key, dict, {})
    for name, value in table.items():
        if not isinstance(value, str):
            raise fields.error(key, f"has `{name}`, which has to be text")
    return {name: str(value) for name, value in table.items()}


def _check_decided(experiments: tuple[Experiment, ...], claims: tuple[Claim, ...], file: Path) -> None:
    """Raises an error if a variant is to decide a claim that there is not."""
    for experiment in experiments:
        known = [claim.id for claim in claims if claim.experiment == experiment.id]
        for variant in experiment.variants:
            for claim in variant.claims:
                if claim not in known:
                    raise PaperError(
                        f"{file}: experiment {experiment.id}, variant {variant.id}: `claims` has `{claim}`; "
                        f"{hint(claim, known)}"
                    )


def _causes(path: Path, experiments: tuple[Experiment, ...], claims: tuple[Claim, ...]) -> tuple[Cause, ...]:
    if not path.exists():
        return ()
    top = Fields(read_toml(path), path, "")
    tables = top.tables("cause")
    top.done()
    return each(tables, path, "cause", lambda fields: _cause(fields, experiments, claims))


def _cause(fields: Fields, experiments: tuple[Experiment, ...], claims: tuple[Claim, ...]) -> Cause:
    known = [claim.id for claim in claims]
    named = fields.texts("claims")
    if not named:
        raise fields.error("claims", "is missing or empty")
    for claim in named:
        if claim not in known:
            raise fields.error("claims", f"has `{claim}`; {hint(claim, known)}")
    changes = [f"{experiment.id}:{change.id}" for experiment in experiments for change in experiment.changes]
    evidence = fields.texts("evidence")
    for item in evidence:
        if item not in changes:
            raise fields.error("evidence", f"has `{item}`; {hint(item, changes)}")
    pairs = tuple((item.partition(":")[0], item.partition(":")[2]) for item in evidence)
    return Cause(named, fields.need("text", str).strip(), pairs)


def _notes(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise PaperError(f"{path}: cannot be read: {error}") from error
