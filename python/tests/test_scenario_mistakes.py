"""Errors of scenarios, which the constructor reports with file and key."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path as FilePath

import pytest
from scenario_support import SMALL, two_paths

from anabranch.errors import AnabranchError, ScenarioError
from anabranch.scenario import (
    AssociationSettings,
    Flow,
    Link,
    LinkEvent,
    Path,
    RunSettings,
    Scenario,
    Scheme,
    load,
)


def test_misspelled_key_is_reported_with_place_and_nearest_key(tmp_path: FilePath) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(SMALL.replace("delay", "dealy"))
    with pytest.raises(ScenarioError, match=r"unknown key `path\.path-1\.dealy`") as caught:
        Scenario.read(file)
    assert str(caught.value).startswith(f"{file}:")
    assert "did you mean `delay`?" in str(caught.value)
    assert isinstance(caught.value, AnabranchError)


def test_a_misspelled_key_in_a_dictionary_is_named_with_the_nearest_word() -> None:
    table = {"run": {"duration": "5 s"}, "path": [{"rate": "1 Mbit/s", "dealy": "1 ms"}]}
    with pytest.raises(ScenarioError, match=r"(?s)tiny .as TOML.*unknown key `path.path-1.dealy`.*mean `delay`"):
        Scenario.from_dict(table, name="tiny")
    with pytest.raises(ScenarioError, match=r"unknown key `dealy` of Path: .*did you mean `delay`\?"):
        Scenario(run=RunSettings(duration="5 s"), paths=table["path"])  # type: ignore[arg-type]


def test_a_misspelled_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="dealy"):
        Path(rate="1 Mbit/s", dealy="1 ms")  # type: ignore[call-arg]


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario(
            run=RunSettings(duration="5", profile="ns3"),  # type: ignore[arg-type]
            paths=[Path(rate="10 Mbit", delay="45 ms", loss=2)],
            flows=[Flow(paths=["path-9"])],
        )
    for part in ("run.duration", "path.path-1.rate", "path.path-1.loss", 'no path is named "path-9"'):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"paths": []}, "at least one"),
        ({"paths": Path(rate="1 Mbit/s", delay="1 ms")}, "expected a list of tables"),
        ({"run": 5}, "expected a table, found the number 5"),
        ({"run": RunSettings()}, "run.duration"),
        ({"run": RunSettings(duration=float("nan"))}, "NaN"),
        ({"schemes": ["cmt"]}, r"go to RunSettings\(schemes="),
        ({"schemes": Scheme(name="a", expression="cmt")}, "a list of definitions"),
        (
            {"schemes": [Scheme(name="a", expression="cmt"), Scheme(name="a", expression="sctp")]},
            "two schemes are called `a`",
        ),
        ({"schemes": [Scheme(name="cmt", expression="sctp")]}, "scheme `cmt`"),
        ({"schemes": [Scheme(name='a "b"\n', expression="sctp")]}, "this is not the name of a scheme"),
        ({"run": RunSettings(duration="5 s", seeds=[])}, "an empty list"),
        ({"flows": [Flow(kind="file")]}, "flow.flow-1.size"),
    ],
)
def test_invalid_scenario_is_refused_at_construction(given: dict[str, object], message: str) -> None:
    good = {"run": RunSettings(duration="5 s"), "paths": [Path(rate="1 Mbit/s", delay="1 ms")]}
    assert Scenario(**good)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match=message):
        Scenario(**{**good, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, {1, 2}, b"1 ms", object(), "\udcff"])
def test_a_value_that_no_file_can_hold_is_refused_with_its_key(value: object) -> None:
    with pytest.raises(ScenarioError, match=r"path\.0\.delay"):
        Scenario.from_dict({"run": {"duration": "5 s"}, "path": [{"rate": "1 Mbit/s", "delay": value}]})


def test_replacing_a_part_checks_the_whole() -> None:
    scenario = two_paths()
    assert dataclasses.replace(scenario, links=()).paths == scenario.paths
    with pytest.raises(ScenarioError, match="no path goes through the link `idle`"):
        dataclasses.replace(scenario, links=[Link(name="idle", rate="1 Mbit/s", delay="1 ms")])


def test_files_that_cannot_be_read_are_named(tmp_path: FilePath) -> None:
    for file in (tmp_path / "missing.toml", tmp_path, "a\0b"):
        with pytest.raises(ScenarioError, match="cannot be read"):
            Scenario.read(file)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(SMALL.encode() + b"\n# a comment\n#  caf\xe9\n")
    with pytest.raises(ScenarioError, match=rf"{latin}:9:7: this is not text in UTF-8"):
        Scenario.read(latin)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse names that are no text")
def test_a_file_whose_name_is_no_text_is_read(tmp_path: FilePath) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.toml")
    file.write_text(SMALL)
    assert Scenario.read(file).name.endswith("caf\ufffd.toml")


def test_load_takes_paths_and_scenarios_and_refuses_others(tmp_path: FilePath) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    scenario = Scenario.parse(SMALL)
    assert load(scenario) is scenario
    assert load(str(file)) == load(file) == scenario
    with pytest.raises(ScenarioError, match=r"use Scenario\.parse"):
        load(SMALL)
    with pytest.raises(ScenarioError, match=r"found a dict: see also Scenario\.from_dict"):
        load({"run": {}})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Path(rate=10, delay="1 ms"),  # type: ignore[arg-type]
            'Path(rate=10): 10 has no unit, and `rate` needs one: write for example rate="10 Mbit/s"',
        ),
        (lambda: Path(rate="1 Mbit/s", delay=2.5), 'delay="2.5 ms"'),  # type: ignore[arg-type]
        (lambda: RunSettings(duration=60), 'duration="60 s"'),  # type: ignore[arg-type]
        (lambda: AssociationSettings(recv_buffer=256), 'recv_buffer="256 KiB"'),  # type: ignore[arg-type]
        (lambda: LinkEvent(at=3), 'at="3 s"'),  # type: ignore[arg-type]
    ],
)
def test_a_number_without_a_unit_fails_where_it_is_written(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        make()
