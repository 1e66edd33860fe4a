"""Search for settings in which a scheme falls below its best path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest
from studies.adversary.cases import CASES, read_cases, write_case
from studies.adversary.checking import check_search
from studies.adversary.command import main
from studies.adversary.searching import DISTANCE, Found, Search, minima, search
from studies.adversary.space import setting_of
from studies.degradation.setting import SUBJECT, Setting

from anabranch.errors import PlanError
from anabranch.experiments.limits.outcome import Plan
from anabranch.experiments.limits.rules import Verdict
from anabranch.experiments.points import Bench
from anabranch.experiments.sweeps import SweepOptions
from anabranch.scenario import Scenario

NO_CACHE = SweepOptions(cache=False, progress=False)


def drawn(count: int) -> list[Setting]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    return [setting_of(study.ask(), f"drawn-{number}", 10.0) for number in range(count)]


@pytest.mark.parametrize("setting", drawn(40), ids=lambda setting: setting.name)
def test_every_setting_of_the_space_can_be_run(setting: Setting) -> None:
    for way in (None, *setting.paths):
        scenario = Scenario.parse(setting.trial("cmt", way).scenario)
        flow = next(flow for flow in scenario.flows if flow.name == SUBJECT)
        assert tuple(flow.paths or ()) == ((way,) if way else setting.paths)


def planted(_: str, settings: Sequence[Setting]) -> list[float]:
    """Returns small values where the second path is slow, with a small receive buffer: 1 % of the space."""
    return [_depth(setting) for setting in settings]


def _depth(setting: Setting) -> float:
    rate_bps = number_in(setting.table["link"][1]["rate"])
    buffer_bytes = number_in(setting.table["association"]["recv_buffer"])
    return min(1.0, (rate_bps / 500_000 + buffer_bytes / 30_000) / 4)


def number_in(text: str) -> float:
    return float(text.split()[0])


def test_search_finds_planted_weakness_that_random_settings_miss() -> None:
    found = search(Search(seed=3, restarts=1, evaluations=150, duration_s=10.0), planted)
    best, random_best = min(each.value for each in found), min(planted("", drawn(150)))
    assert best < 0.35 < 0.45 < random_best, "the deepest point of the space has 0.29"


def test_repeated_search_evaluates_the_same_settings() -> None:
    extent = Search(seed=2, restarts=2, evaluations=40, duration_s=10.0)
    first, again = search(extent, planted), search(extent, planted)
    assert [each.setting.table for each in first] == [each.setting.table for each in again]
    assert len(first) == 40
    assert len({each.setting.name for each in first}) == 40
    half = len(first) // 2
    assert first[0].setting.table != first[half].setting.table, "restarts have samplers of their own"


def at(value: float, **position: float | str) -> Found:
    return Found(Setting(f"at-{value}", {}, ()), value, position)


def test_minima_are_the_smallest_values_and_apart_from_each_other() -> None:
    near = DISTANCE / 2
    found = [at(0.9, x=0.5), at(0.2, x=0.0), at(0.3, x=near), at(0.4, x=1.0), at(0.98, x=0.7), at(0.5, x=0.0, y="b")]
    assert [each.value for each in minima(found, 4, 0.97)] == [0.2, 0.4, 0.5, 0.9]
    assert [each.value for each in minima(found, 1, 0.97)] == [0.2]


def test_search_confirms_weak_scheme_with_other_seeds() -> None:
    plan = Plan(("cmt",), (11, 12), 5.0)
    extent = Search(seed=1, restarts=1, evaluations=10, duration_s=5.0)
    (outcome,), settings = check_search(extent, 1, 0.85, ("sctp",), plan, Bench(NO_CACHE))
    (finding,) = outcome.findings
    assert outcome.verdict is Verdict.BROKEN
    assert finding.judged.mean < 0.5, "round robin over paths of unequal delay blocks a small buffer"
    assert [each.name for each in settings["cmt"]] == [finding.setting]
    assert "of sctp on path-" in finding.note


def test_stored_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    setting = drawn(3)[2]
    write_case(tmp_path, setting, "braid", "braid: 0.5")
    (case,) = read_cases(tmp_path)
    assert case.paths == setting.paths
    assert [case.trial("cmt", way) for way in (None, *case.paths)] == [
        setting.trial("cmt", way) for way in (None, *setting.paths)
    ]


def test_case_without_judged_flow_is_refused(tmp_path: Path) -> None:
    text = drawn(1)[0].trial("cmt").scenario.replace(f'"{SUBJECT}"', '"mine"')
    (tmp_path / "case.toml").write_text(text)
    with pytest.raises(PlanError, match=r'case.toml: no flow "subject"'):
        read_cases(tmp_path)


def test_stored_cases_can_be_read() -> None:
    assert len(read_cases()) == len(list(CASES.glob("*.toml")))


def test_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no scenarios"):
        read_cases(tmp_path)


@pytest.mark.parametrize("words", [["--least", "2"], ["--least", "x"], ["--restarts", "0"]])
def test_wrong_options_end_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2


def test_seed_of_the_search_cannot_confirm() -> None:
    with pytest.raises(PlanError, match="1 is the seed of the search"):
        main(["--seeds", "1-3"])
