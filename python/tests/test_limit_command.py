"""`anabranch limit` and `anabranch harm` as they are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.command.main import main
from anabranch.sweep.native import NativeThreads

LIMIT = ["limit", "--classes", "lossless", "--schemes", "cmt,bonded", "--duration", "10", "--quiet"]
HARM = ["harm", "--quick", "--checks", "policer,two-alike", "--duration", "10", "--quiet"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))


def test_the_limit_is_a_table_with_goals_and_a_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*LIMIT, "--seeds", "2", "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "goal, every point" in shown
    assert "clean-2" in shown, "what is missed is named"
    written = json.loads((tmp_path / "out" / "limit.json").read_text())
    assert [each["scheme"] for each in written["classes"]] == ["cmt", "bonded"]
    (first, second) = written["classes"][0]["points"]
    assert first["bound_kbps"] == pytest.approx(1957, rel=0.001)
    assert 40 < second["percent"]["mean"] < 90
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- limit: classes begin -->\nold\n<!-- limit: classes end -->\n<!-- limit: points begin -->\n"
        "<!-- limit: points end -->\nz\n"
    )
    main([*LIMIT, "--seeds", "2", "--book", str(page)])
    assert "| `cmt` |" in page.read_text()
    assert "old" not in page.read_text()
    page.write_text("nothing\n")
    assert main([*LIMIT, "--seeds", "2", "--book", str(page)]) == 2
    assert "| point |" in (tmp_path / "out" / "limit.md").read_text()


def test_the_ratio_to_the_best_path_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    main([*LIMIT, "--seeds", "1", "--no-alone", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["classes"][0]["points"][0]["of_best_path_alone"] is None


def test_what_is_known_to_be_broken_does_not_fail(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    known = str(tmp_path / "known.json")
    assert main([*LIMIT, "--seeds", "2", "--store-known", known]) == 0
    assert main([*LIMIT, "--seeds", "2", "--known", known]) == 0
    broken = json.loads(Path(known).read_text())
    assert ["cmt", "goal", "clean-2"] in broken["broken"]
    broken["broken"] = [["cmt", "goal", "gone"]]
    Path(known).write_text(json.dumps(broken))
    assert main([*LIMIT, "--seeds", "2", "--known", known]) == 1
    said = capsys.readouterr().err
    assert "cmt: goal: clean-2: broken, and not known to be" in said
    assert "cmt: goal: gone: known to be broken, and is not" in said


def test_checks_of_harm_have_verdicts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main([*HARM, "--schemes", "cmt", "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "harm.json").read_text())
    assert [each["check"] for each in written["checks"]] == ["policer", "two-alike"]
    assert status == (1 if any(each["verdict"] == "broken" for each in written["checks"]) else 0)
    assert "A policer: at least 95 % of what passes" in shown
    assert "## A policer" in (tmp_path / "out" / "harm.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["limit", "--classes", "loss11"], "there is no class `loss11`; there are: loss10"),
        (["limit", "--schemes", "cnt"], "--schemes: unknown scheme `cnt`"),
        (["limit", "--seeds", "x"], "--seeds: `x` is no seed"),
        (["limit", "--points", "no-such.toml"], "no-such.toml: the points cannot be read"),
        (["harm", "--checks", "fairness"], "there is no check `fairness`; there are: one-link"),
        (["harm", "--beside", "braids"], "--beside: unknown scheme `braids`"),
        (["harm", "--seeds", "1000001,"], "name others"),
        (["limit", "--known", "no-such.json"], "no-such.json"),
        (["harm", "--known", "no-such.json"], "no-such.json"),
        (["limit", "--book", "no-such.md"], "no-such.md: cannot be read"),
        (["harm", "--book", "README.md"], "README.md: needs <!-- limit: harm begin -->"),
    ],
)
def test_what_is_wrong_is_named_with_status_2_before_anything_is_run(
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
        ["limit", "--duration", "1"],
        ["harm", "--random", "0"],
        ["harm", "--random", "100001"],
        ["harm", "--random", "9" * 5000],
        ["harm", "--known"],
    ],
)
def test_options_out_of_range_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize("command", [LIMIT, HARM], ids=["limit", "harm"])
def test_ctrl_c_ends_with_130_and_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(NativeThreads, "make", stopped)
    assert main(command) == 130
    assert "0 of" in (said := capsys.readouterr().err)
    assert "the same command goes on from there" in said


@pytest.mark.parametrize("command", ["limit", "harm"])
def test_help_has_examples_and_statuses(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert "Status: 0" in shown
