"""Plan files, and values of command lines."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from sweep_support import write_scenario

from anabranch.errors import PlanError, SweepError
from anabranch.sweeps import Precision
from anabranch.sweeps.plan import Plan, read_plan
from anabranch.sweeps.seeds import parse_seeds
from anabranch.sweeps.settings import parse_over, parse_override
from anabranch.sweeps.steps import read_grid
from anabranch.values import literal

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"


def read(folder: Path, text: str) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_plan_covers_all_arguments_of_the_function(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        """
        scenario = "deep/two.toml"
        schemes = ["cmt", "cmt-pf(pf=true)"]
        seeds = [3, 1]

        [over]
        "path.path-2.loss" = [0, "1 %"]
        "path.path-1.rate, path.path-2.rate" = [["1 Mbit/s", "2 Mbit/s"]]

        [set]
        "run.duration" = "2 s"
        "path.path-1.loss" = { model = "bernoulli", rate = 0.1 }

        [until]
        within = 0.1
        max_seeds = 20
        """,
    )
    assert plan == Plan(
        scenario=tmp_path / "deep" / "two.toml",
        over={
            "path.path-2.loss": [0, "1 %"],
            ("path.path-1.rate", "path.path-2.rate"): [["1 Mbit/s", "2 Mbit/s"]],
            "scheme": ["cmt", "cmt-pf(pf=true)"],
        },
        overrides={"run.duration": "2 s", "path.path-1.loss": {"model": "bernoulli", "rate": 0.1}},
        seeds=[3, 1],
        until=Precision(within=0.1, max_seeds=20),
    )


def test_dotted_keys_may_go_without_quotes(tmp_path: Path) -> None:
    plan = read(
        tmp_path,
        'scenario = "two.toml"\n[over]\npath.path-2.loss = [0]\nrun.warmup = ["0 s"]\n[set]\nrun.start = "1 s"',
    )
    assert plan.over == {"path.path-2.loss": [0], "run.warmup": ["0 s"]}
    assert plan.overrides == {"run.start": "1 s"}


def test_a_scenario_file_is_a_plan_that_sweeps_nothing(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    assert read_plan(scenario) == Plan(scenario)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('scenario = "a.toml"\nsheme = 3', ":2: unknown key `sheme`: expected one of: scenario, schemes"),
        ('scenario = "a.toml"\n[untill]\nwithin = 1', ":2: unknown key `untill`: .*did you mean `until`?"),
        ('scenario = "a.toml"\n[until]\nwithn = 1', ":3: unknown key `until.withn`: .*did you mean `within`?"),
        ('scenario = "a.toml"\n[until]\nwithin = 0', r":3: until: `within`: expected a fraction"),
        ('scenario = "a.toml"\n\n[until]\nmetric = "rtt"', r":4: until: `metric`: unknown figure `rtt`"),
        ("seeds = 3", "`scenario`: expected the path of a scenario file"),
        ("scenario = 3", ":1: `scenario`: expected the path"),
        ('scenario = "a.toml"\nseeds = "3"', ":2: `seeds`: expected a number such as 20"),
        ('scenario = "a.toml"\nseeds = [true]', ":2: `seeds`: expected a number such as 20"),
        ('scenario = "a.toml"\nschemes = "cmt"', ":2: `schemes`: expected a list"),
        ('scenario = "a.toml"\nschemes = ["cmt"]\n[over]\nscheme = ["sctp"]', ":2: `schemes`: `over` has a list"),
        ('scenario = "a.toml"\n[over]\n"a.b" = 3', ":3: `over.a.b`: expected a list of values"),
        ('scenario = "a.toml"\nover = 3', ":2: `over`: expected a table"),
        ('scenario = "a.toml"\nover = ]', r"is not TOML: .*line 2"),
        ("", "`scenario`: expected the path of a scenario file"),
    ],
)
def test_invalid_plan_is_refused_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(PlanError, match=rf"{tmp_path}/plan.toml.*{expected}"):
        read(tmp_path, text)


def test_all_faults_of_a_plan_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read(tmp_path, 'seeds = "x"\nsheme = 1\n[over]\n"a.b" = 3\n[until]\nmin_seeds = 0\nmax_seeds = 1')
    assert len(str(caught.value).splitlines()) == 6


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"none.toml: the plan cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match=r"binary.toml: is not TOML"):
        read_plan(tmp_path / "binary.toml")


@pytest.mark.parametrize("path", sorted((SCENARIOS / "sweeps").glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_that_come_with_this_can_be_run(path: Path) -> None:
    plan = read_plan(path)
    grid = read_grid(plan.scenario, plan.over, plan.seeds, plan.overrides, plan.until)
    assert len(grid) > 20


BOOK = ROOT / "docs" / "src" / "sweeps.md"


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", BOOK.read_text(), re.DOTALL))
def test_the_plans_in_the_book_can_be_run(tmp_path: Path, text: str) -> None:
    shutil.copy(SCENARIOS / "two-path.toml", tmp_path)
    (tmp_path / "plans").mkdir()
    plan = read(tmp_path / "plans", text)
    assert len(read_grid(plan.scenario, plan.over, plan.seeds, plan.overrides, plan.until)) >= 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path.path-2.loss=0,0.01,1e-3", ("path.path-2.loss", [0, 0.01, 0.001])),
        (" a.b = 10 Mbit/s , 2 Mbit/s ", ("a.b", ["10 Mbit/s", "2 Mbit/s"])),
        ("a.b=1 %", ("a.b", ["1 %"])),
        ("a.b=true,false", ("a.b", [True, False])),
        ("a.b=\"x,y\",'z'", ("a.b", ["x,y", "z"])),
        ("a.b=[1,2],[3]", ("a.b", [[1, 2], [3]])),
        ("a.b={ p = 1, r = [2, 3] },0", ("a.b", [{"p": 1, "r": [2, 3]}, 0])),
        ("flow.f.scheme=cmt(trigger=4,floor=4),sctp", ("flow.f.scheme", ["cmt(trigger=4,floor=4)", "sctp"])),
        ("a.b=1=2", ("a.b", ["1=2"])),
    ],
)
def test_commas_divide_values_unless_they_stand_in_quotes_or_brackets(text: str, expected: object) -> None:
    assert parse_over(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a=", "=1", "a=1,,2", "a=,", "a=[1"])
def test_text_that_is_no_list_of_values_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        parse_over(text)


def test_a_setting_may_hold_commas() -> None:
    assert parse_override("flow.f.paths=['a', 'b']") == ("flow.f.paths", ["a", "b"])
    assert parse_override("flow.f.scheme=cmt(trigger=4,floor=4)") == ("flow.f.scheme", "cmt(trigger=4,floor=4)")


def test_seeds_are_a_number_or_a_list_with_ranges() -> None:
    assert parse_seeds("20") == 20
    assert parse_seeds("3,7, 10-12") == [3, 7, 10, 11, 12]
    assert parse_seeds("7,") == [7]


@pytest.mark.parametrize("text", ["x", "1,x", "5-3", "1-", "-3", "1-999999999", "1.5"])
def test_text_that_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(SweepError):
        parse_seeds(text)


def test_a_value_is_written_as_toml_reads_it() -> None:
    value = {"a b": [1, 2.5, True, 'qu"ote\n\\'], "c": {"d": []}}
    assert literal(value) == '{"a b" = [1, 2.5, true, "qu\\"ote\\n\\\\"], c = {d = []}}'
