"""Reader of papers: errors have file, table and key."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from papers_planted import PLANTED

from anabranch.errors import ExperimentError
from anabranch.experiments.claims.compare import Compare
from anabranch.experiments.claims.gain_trend import GainTrend
from anabranch.experiments.claims.trend import Trend
from anabranch.experiments.claims.value import Number
from anabranch.experiments.study import Study, read_study
from anabranch.papers.catalogue import keys, read_key, select

Change = Callable[[str, str, str], None]


@pytest.fixture(scope="module")
def paper() -> Study:
    return read_study(PLANTED)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Returns a copy of the planted paper, to be changed."""
    folder = tmp_path / "planted-paper"
    shutil.copytree(PLANTED, folder)
    return folder


@pytest.fixture
def change(copy: Path) -> Change:
    """Replaces a text in a file of the copy."""

    def replace(file: str, old: str, new: str) -> None:
        text = (copy / file).read_text(encoding="utf-8")
        assert old in text
        (copy / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    return replace


def fault(folder: Path) -> str:
    with pytest.raises(ExperimentError) as error:
        read_study(folder)
    return str(error.value).replace(f"{folder}/", "")


def test_paper_is_read_completely(paper: Study) -> None:
    assert [experiment.id for experiment in paper.experiments] == ["loss", "windows", "file", "drawn", "video"]
    assert len(paper.claims) == 13
    assert paper.causes[0].evidence == ("loss:trigger-6",)
    assert paper.notes == "The paper does not exist.\n"
    assert paper.experiment("loss").schemes == {"CMT": "cmt", "CMT-PF": "cmt-pf", "SCTP": "sctp"}


def test_positions_are_scaled_numbers_or_numbers_of_one_unit(paper: Study) -> None:
    assert paper.experiment("loss").axis("plr2").positions == (0, 5, 20)
    assert paper.experiment("file").axis("size").positions == (50, 100)
    assert paper.experiment("file").axis("size").labels == ("50 kB", "100 kB")


def test_a_value_of_an_axis_can_set_several_keys(paper: Study) -> None:
    sets = paper.experiment("drawn").axis("rbuf").settings
    assert sets[0] == {"association.recv_buffer": "32 KiB"}


def test_claims_read_measure_and_cell_from_claim_and_quantity(paper: Study) -> None:
    claims = {claim.id: claim.statement for claim in paper.claims}
    windows = claims["windows-paths"]
    assert isinstance(windows, Compare)
    assert (windows.a.measure.path, windows.b.measure.path, windows.each) == ("path-1", "path-2", True)
    lower = claims["loss-lower"]
    assert isinstance(lower, Compare)
    assert lower.a.at == lower.b.at == {"plr2": (0,)}
    first = claims["windows-first"]
    assert isinstance(first, Number)
    assert first.a.schemes == ("CMT", "SCTP")
    trend = claims["file-grows"]
    assert isinstance(trend, Trend)
    assert trend.a.schemes == ("CMT", "SCTP")
    gain = claims["loss-gain"]
    assert isinstance(gain, GainTrend)
    assert [point.label for point in gain.points] == ["0", "5", "20"]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("experiments.toml", 'unknowns = ["one', 'unknown = ["one', "experiment loss: `unknown` has no effect here"),
        ("experiments.toml", 'scenario = "two-path.toml"', 'scenario = "none.toml"', "none.toml: cannot be read"),
        ("experiments.toml", '"CMT-PF", "SCTP"]', '"CMT-PE", "SCTP"]', "has `CMT-PE`, which `[schemes]` of study.toml"),
        ("experiments.toml", "path.path-2.loss", "path.path-3.loss", "axis plr2, 0: "),
        ("experiments.toml", "values = [0, 0.05, 0.2]", "values = [0, 5, 0.2]", "axis plr2, 5: "),
        ("experiments.toml", "seeds = 4", "seeds = 0", "`seeds` is 0"),
        ("experiments.toml", "seeds = 4", 'seeds = "4"', "`seeds` is '4'; it has to be a whole number"),
        ("experiments.toml", 'kind = "lines"', 'kind = "line"', "figure: `kind` is `line`; did you mean `lines`?"),
        ("experiments.toml", 'x = "plr2"', 'x = "plr"', "`x` is `plr`; did you mean `plr2`?"),
        ("experiments.toml", 'measure = "timeouts"', 'measure = "timeout"', "did you mean `timeouts`?"),
        ("experiments.toml", "values = { plr2 = [0, 0.2] }", "values = { plr2 = [0, 0.1] }", "has 0.1 for axis `plr2`"),
        ("experiments.toml", 'unknown = "one-way delay"\n', "", "variant delay-100ms: `unknown` is missing"),
        ("experiments.toml", 'decided = "second-link"\n', "", "reading slow-by-text: `decided` is missing"),
        (
            "experiments.toml",
            'decided = "second-link"',
            'decided = "second-lnk"',
            "reading slow-by-text: `decided` is `second-lnk`, which `[decided]` of study.toml lacks; did you mean",
        ),
        (
            "experiments.toml",
            'decided = "second-link"',
            'decided = "second-link"\nunknown = "rate"',
            "`unknown` has no effect here",
        ),
        ("experiments.toml", 'cmt(trigger=6)" }', 'cmt(tiger=6)" }', "ablation trigger-6: scheme `CMT`: "),
        (
            "experiments.toml",
            '{ CMT = "cmt(trigger=6)" }',
            '{ CTM = "cmt" }',
            "`schemes` has `CTM`; did you mean `CMT`?",
        ),
        ("experiments.toml", 'set = { "path.*.delay"', 'set = { "path.*.dealy"', "variant delay-100ms: "),
        ("experiments.toml", 'id = "trigger-6"', 'id = "delay-100ms"', "two of the changes of experiment loss"),
        ("experiments.toml", 'id = "windows"', 'id = "loss"', "two of the experiments are called `loss`"),
        ("experiments.toml", 'id = "windows"', 'id = "Fig 2"', "`id` is `Fig 2`"),
        ("experiments.toml", '"loss-value", "loss-higher"]', '"loss-vale"]', "did you mean `loss-value`?"),
        ("experiments.toml", "[0, 0.02]", "[0.02]", "has `path.path-1.loss`, which has to be two numbers"),
        ("experiments.toml", 'name = "line"', 'name = "values"', "two of the figures of experiment loss"),
        ("claims.toml", 'experiment = "loss"', 'experiment = "lost"', "did you mean `loss`?"),
        ("claims.toml", 'kind = "compare"', 'kind = "compares"', "did you mean `compare`?"),
        ("claims.toml", 'rank = "H"', 'rank = "A"', "`rank` is `A`"),
        ("claims.toml", 'relation = "higher"', 'relation = "above"', "`relation` is `above`"),
        ("claims.toml", 'a = { scheme = "CMT" }', 'a = { scheme = "CTM" }', "`scheme` is `CTM`; did you mean `CMT`?"),
        ("claims.toml", "at = { plr2 = 0 }", "at = { plr = 0 }", "names the axis `plr`; did you mean `plr2`?"),
        ("claims.toml", "at = { plr2 = 0 }", "at = { plr2 = 0.1 }", "has 0.1 for axis `plr2`, which has: 0, 0.05, 0.2"),
        ("claims.toml", "percent = 60", "percent = -60", "`percent` has to be above 0"),
        ("claims.toml", "percent = 60", 'percent = 60\nconvention = "drop"', "the relation has to be `lower`"),
        ("claims.toml", "percent = 60", "percent = 60\nshare = 0.9", "`share` is 0.9; it goes with `at_each`"),
        ("claims.toml", 'path = "path-1"\n', "", "`path` is missing: measure `cwnd_initial_bytes` needs it"),
        ("claims.toml", 'a = { path = "path-1" }', 'a = { path = "path-9" }', "`path` is `path-9`; did you mean"),
        (
            "claims.toml",
            'a = { path = "path-1" }',
            'a = { path = "path-1", time_s = 3 }',
            "`time_s` has no meaning for",
        ),
        ("claims.toml", 'note = "made up"\n', "", "status `suspect` needs `contradiction` or `note`"),
        ("claims.toml", 'kind = "deferred"\nreason', 'kind = "order"\nreason', "experiment `video` is deferred"),
        ("claims.toml", 'axis = "plr2"\ndirection', 'axis = "plr"\ndirection', "`axis` is `plr`"),
        ("claims.toml", 'direction = "falling"', 'direction = "down"', "`direction` is `down`"),
        ("claims.toml", 'schemes = ["CMT-PF", "SCTP"]', 'schemes = ["SCTP"]', "two different schemes at least"),
        ("claims.toml", 'id = "loss-lower"', 'id = "loss-higher"', "two of the claims are called `loss-higher`"),
        ("claims.toml", "value = 1000", 'value = "1000"', "`value` is '1000'; it must be a number"),
        ("claims.toml", "value = 1000", "value = [1100, 1000]", "two of which the smaller comes first"),
        ("causes.toml", '"loss-lower"', '"loss-lover"', "cause number 1: `claims` has `loss-lover`"),
        (
            "causes.toml",
            "loss:trigger-6",
            "loss:trigger-5",
            "`evidence` has `loss:trigger-5`; did you mean `loss:trigger-6`?",
        ),
        ("study.toml", 'key = "planted-paper"', 'key = "planted"', "the folder is called `planted-paper`"),
        ("study.toml", "year = 2026", 'year = "2026"', "`year` is '2026'"),
        ("study.toml", "year = 2026", "year = 2026\npages = 3", "`pages` has no effect here"),
        ("study.toml", "[schemes]", "[schemas]", "`schemes` is missing"),
        ("study.toml", "year = 2026", "year = ", "study.toml: is not TOML"),
    ],
)
def test_invalid_entries_are_reported_with_their_place(
    copy: Path, change: Change, file: str, old: str, new: str, said: str
) -> None:
    change(file, old, new)
    message = fault(copy)
    assert said in message
    assert file in message


def test_faults_of_several_claims_are_reported_together(copy: Path, change: Change) -> None:
    change("claims.toml", 'relation = "lower"', 'relation = "below"')
    change("claims.toml", "value = 1000", "")
    assert len(fault(copy).splitlines()) == 2


def test_causes_and_notes_may_be_missing(copy: Path) -> None:
    (copy / "causes.toml").unlink()
    (copy / "notes.md").unlink()
    paper = read_study(copy)
    assert (paper.causes, paper.notes) == ((), "")


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "claims.toml").unlink()
    assert "claims.toml: cannot be read" in fault(copy)


def test_tables_with_different_keys_are_no_axis(copy: Path, change: Change) -> None:
    change("experiments.toml", '{ "association.recv_buffer" = "64 KiB" }]', '{ "association.streams" = 2 }]')
    assert "tables with different keys" in fault(copy)


def test_papers_are_named_by_key_and_experiment() -> None:
    data = PLANTED.parent
    assert keys(data) == ["planted-paper"]
    assert [each.id for each in select("planted-paper/file", data)[0].experiments] == ["file"]
    assert len(select("all", data)[0].experiments) == 5
    with pytest.raises(ExperimentError, match="unknown study `planted`; did you mean `planted-paper`"):
        read_key("planted", data)
    with pytest.raises(ExperimentError, match="has no experiment `files`; did you mean `file`"):
        select("planted-paper/files", data)


def test_folder_without_papers_is_refused(tmp_path: Path) -> None:
    assert keys(tmp_path / "nowhere") == []
    with pytest.raises(ExperimentError, match="contains no studies"):
        select("all", tmp_path)
