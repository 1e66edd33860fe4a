"""Papers of the package: every claim is judged, and every claim that is not reproduced has a cause."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from anabranch.experiments.claims.deferred import Deferred
from anabranch.experiments.model import STANDARD, Experiment, Measure
from anabranch.experiments.pages.summary import claims_of
from anabranch.experiments.plan import Scope, Setting, settings_of
from anabranch.experiments.samples import SampleGrid
from anabranch.experiments.stored import load
from anabranch.experiments.study import Study
from anabranch.experiments.sweeps import grid_of
from anabranch.experiments.verdicts.grades import Verdict
from anabranch.papers.book import write_page
from anabranch.papers.catalogue import DATA, keys, read_key

TESTS = Path(__file__).resolve().parent
BOOK = TESTS.parent.parent / "docs" / "src"
RESULTS = TESTS.parent.parent / "docs" / "results" / "papers.json.xz"
PAPERS = ("cmt-dfr", "cmt-mptcp-analysis", "cmt-qa", "db-cmt", "smt-afr")

WITHOUT_CAUSE = {verdict.value for verdict in (Verdict.REPRODUCED, Verdict.ABOUT, Verdict.CONTRADICTORY, Verdict.OPEN)}


@functools.cache
def paper(key: str) -> Study:
    return read_key(key)


def all_papers() -> list[Study]:
    if tuple(keys()) != PAPERS:
        pytest.skip(f"{DATA} does not hold all five papers")
    return [paper(key) for key in PAPERS]


def listed_lines(name: str) -> list[str]:
    lines = (TESTS / "data" / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def ids_of_reference() -> list[str]:
    return listed_lines("claim-ids.txt")


def changed_since_run(sign: str) -> set[str]:
    """Claims that were added (`+`) or removed (`-`) after the run whose verdicts the book has."""
    return {line[2:] for line in listed_lines("claims-since-run.txt") if line.startswith(f"{sign} ")}


@pytest.mark.parametrize("key", keys())
def test_a_paper_can_be_read_and_has_what_a_reader_needs(key: str) -> None:
    read = paper(key)
    assert read.notes
    assert read.conventions
    for experiment in read.experiments:
        assert experiment.figures or experiment.deferred, experiment.id


@pytest.mark.parametrize("key", keys())
def test_every_unknown_that_a_variant_varies_is_named_as_one(key: str) -> None:
    for experiment in paper(key).experiments:
        if experiment.variants:
            assert experiment.unknowns, experiment.id


@pytest.mark.parametrize("key", keys())
def test_claims_of_deferred_experiments_are_open(key: str) -> None:
    read = paper(key)
    for experiment in read.experiments:
        for claim in read.claims_of(experiment.id):
            assert isinstance(claim.statement, Deferred) or not experiment.deferred, claim.id


def setting_of(experiment: Experiment, name: str) -> Setting | None:
    return next((setting for setting in settings_of(experiment, Scope()) if setting.id == name), None)


@pytest.mark.parametrize("key", keys())
def test_every_headline_claim_can_be_judged_under_the_standard(key: str) -> None:
    read = paper(key)

    def grids(experiment: str, measure: Measure) -> SampleGrid:
        setting = (
            setting_of(read.experiment(experiment), STANDARD) or settings_of(read.experiment(experiment), Scope())[0]
        )
        return grid_of(setting, np.random.default_rng(1).uniform(1, 2, setting.shape))

    missing = []
    for claim in read.claims:
        if claim.rank == "H" and not isinstance(claim.statement, Deferred):
            setting = setting_of(read.experiment(claim.experiment), STANDARD)
            if setting is None or setting.overrides.get("run.profile") != STANDARD:
                missing.append(f"{claim.id}: experiment {claim.experiment} has no change {STANDARD}")
            elif left_out := claim.judge(grids).detail:
                missing.append(f"{claim.id}: {left_out}")
    assert not missing


def test_every_claim_of_the_five_papers_is_accounted_for() -> None:
    found = [claim.id for read in all_papers() for claim in read.claims]
    assert len(ids_of_reference()) == len(set(ids_of_reference()))
    assert sorted(found) == sorted(ids_of_reference())


def test_no_two_papers_have_a_claim_of_the_same_name() -> None:
    found = [claim.id for key in keys() for claim in paper(key).claims]
    assert len(found) == len(set(found))


@functools.cache
def stored_verdicts() -> dict[str, str]:
    """Verdicts of the full run whose results the repository has."""
    return {claim["id"]: claim["verdict"] for claim in claims_of(load(RESULTS).outcome["studies"])}


def test_summary_page_of_the_book_is_that_of_the_stored_results(tmp_path: Path) -> None:
    written = write_page(RESULTS, tmp_path)
    assert written.read_text() == (BOOK / "reproduction.md").read_text()


def test_the_book_has_a_verdict_on_every_claim() -> None:
    verdicts = stored_verdicts()
    claims = {claim.id for read in all_papers() for claim in read.claims}
    added, removed = changed_since_run("+"), changed_since_run("-")
    assert claims - set(verdicts) == added
    assert set(verdicts) - claims == removed
    assert set(verdicts.values()) <= {verdict.value for verdict in Verdict}


def test_unreproduced_headline_and_secondary_claims_have_a_cause() -> None:
    verdicts = stored_verdicts()
    without = []
    for read in all_papers():
        explained = {claim for cause in read.causes for claim in cause.claims}
        for claim in read.claims:
            if claim.rank not in ("H", "S") or claim.id in changed_since_run("+"):
                continue
            if verdicts[claim.id] not in WITHOUT_CAUSE and claim.id not in explained:
                without.append(f"{read.key}: {claim.id} ({verdicts[claim.id]})")
    assert not without


def test_no_cause_explains_a_claim_that_is_reproduced() -> None:
    verdicts = stored_verdicts()
    needless = [
        f"{read.key}: {claim}"
        for read in all_papers()
        for cause in read.causes
        for claim in cause.claims
        if verdicts.get(claim) == Verdict.REPRODUCED.value
    ]
    assert not needless
