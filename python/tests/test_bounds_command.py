"""Commands of the studies bounds and degradation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from studies.__main__ import STUDIES, main

from anabranch.sweeps.native import NativeThreads

BOUNDS = ["bounds", "--classes", "lossless", "--schemes", "cmt,bonded", "--duration", "10", "--quiet"]
DEGRADATION = ["degradation", "--quick", "--checks", "policer,two-alike", "--duration", "10", "--quiet"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))


def test_the_limit_is_a_table_with_goals_and_a_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*BOUNDS, "--seeds", "2", "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "goal, every point" in shown
    assert "clean-2" in shown, "what is missed is named"
    written = json.loads((tmp_path / "out" / "bounds.json").read_text())
    goals, _ = (check for check in written["checks"] if check["check"] == "goal")
    (first, second) = goals["settings"]
    assert first["note"] == "bound 1957 kbit/s"
    assert 40 < second["mean"] < 90
    assert "| setting | `cmt` | `bonded` | with |" in (tmp_path / "out" / "bounds.md").read_text()


def test_the_ratio_to_the_best_path_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    main([*BOUNDS, "--seeds", "1", "--no-alone", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert {each["check"] for each in shown["checks"]} == {"goal"}


def test_known_violation_does_not_fail(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    known = str(tmp_path / "known.json")
    assert main([*BOUNDS, "--seeds", "2", "--store-known", known]) == 0
    assert main([*BOUNDS, "--seeds", "2", "--known", known]) == 0
    broken = json.loads(Path(known).read_text())
    assert ["cmt", "goal", "clean-2"] in broken["broken"]
    broken["broken"] = [["cmt", "goal", "gone"]]
    Path(known).write_text(json.dumps(broken))
    assert main([*BOUNDS, "--seeds", "2", "--known", known]) == 1
    said = capsys.readouterr().err
    assert "cmt: goal: clean-2: broken, and not known to be" in said
    assert "cmt: goal: gone: known to be broken, and is not" in said


def test_checks_of_degradation_have_verdicts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main([*DEGRADATION, "--schemes", "cmt", "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "degradation.json").read_text())
    assert [each["check"] for each in written["checks"]] == ["policer", "two-alike"]
    assert status == (1 if any(each["verdict"] == "broken" for each in written["checks"]) else 0)
    assert "A policer: at least 95 % of the admitted rate" in shown
    assert "## A policer" in (tmp_path / "out" / "degradation.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bounds", "--classes", "loss11"], "unknown class `loss11`; choose one of: loss10"),
        (["bounds", "--schemes", "cnt"], "--schemes: unknown scheme `cnt`"),
        (["bounds", "--seeds", "x"], "--seeds: `x` is not a seed"),
        (["bounds", "--points", "no-such.toml"], "no-such.toml: the points cannot be read"),
        (["degradation", "--checks", "fairness"], "unknown check `fairness`; choose one of: one-link"),
        (["degradation", "--beside", "braids"], "--beside: unknown scheme `braids`"),
        (["degradation", "--seeds", "1000001,"], "name others"),
        (["bounds", "--known", "no-such.json"], "no-such.json"),
        (["degradation", "--known", "no-such.json"], "no-such.json"),
    ],
)
def test_invalid_input_exits_2_before_the_first_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    def run(*_: object) -> None:
        raise AssertionError("nothing is run")

    monkeypatch.setattr(NativeThreads, "make", run)
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["bounds", "--duration", "1"],
        ["degradation", "--random", "0"],
        ["degradation", "--random", "100001"],
        ["degradation", "--random", "9" * 5000],
        ["degradation", "--known"],
    ],
)
def test_options_out_of_range_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize("command", [BOUNDS, DEGRADATION], ids=["bounds", "degradation"])
def test_ctrl_c_ends_with_130_and_names_how_to_resume(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(NativeThreads, "make", stopped)
    assert main(command) == 130
    assert "0 of" in (said := capsys.readouterr().err)
    assert "the same sweep continues from there" in said


@pytest.mark.parametrize("command", ["bounds", "degradation"])
def test_help_has_examples_and_statuses(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert "Status: 0" in shown


@pytest.mark.parametrize("words", [[], ["bound"]])
def test_missing_or_unknown_study_lists_all_studies(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert all(f"  {name} " in said for name in STUDIES)
    assert ("unknown study `bound`" in said) == bool(words)
