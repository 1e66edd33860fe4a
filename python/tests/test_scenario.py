"""Scenarios as dataclasses: conversion from and to files, and validation of every value."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path as FilePath

import numpy
import pytest
import tomli
import tomli_w
from random_scenarios import random_scenario
from scenario_support import EVERY_KEY, ROOT, SMALL, two_paths

from anabranch import _native
from anabranch.errors import ScenarioError
from anabranch.scenario import (
    Aggregation,
    AssociationSettings,
    Background,
    Flow,
    Jitter,
    Link,
    LinkEvent,
    Loss,
    Path,
    Policer,
    Reliability,
    Reverse,
    RunSettings,
    Scenario,
    Scheme,
)

# The folder also has plans of sweeps, which are not scenarios.
FILES = [
    *sorted(file for file in (ROOT / "scenarios").rglob("*.toml") if file.parent.name != "sweeps"),
    EVERY_KEY,
]


# Both ways


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_scenario_file_reads_and_writes_as_the_same_scenario(file: FilePath) -> None:
    scenario = Scenario.read(file)
    assert scenario.to_toml(resolved=True) == _native.resolve(file.read_text(), "file")
    again = Scenario.parse(scenario.to_toml())
    assert again == scenario
    assert again.to_toml(resolved=True) == scenario.to_toml(resolved=True)


@pytest.mark.parametrize("seed", range(0, 400, 40))
def test_random_scenarios_read_and_write_as_the_same_scenario(seed: int) -> None:
    for number in range(seed, seed + 40):
        text = tomli_w.dumps(random_scenario(number))
        scenario = Scenario.parse(text)
        assert scenario.to_toml(resolved=True) == _native.resolve(text, "file"), text
        again = Scenario.parse(scenario.to_toml())
        assert again == scenario, text
        assert again.to_toml(resolved=True) == scenario.to_toml(resolved=True), text
        assert Scenario.from_dict(scenario.to_table()) == scenario, text


def test_only_what_was_given_is_written() -> None:
    scenario = Scenario.parse(SMALL)
    assert tomli.loads(scenario.to_toml()) == tomli.loads(SMALL)
    assert scenario.paths[0].queue is None
    assert scenario.flows == ()


def test_the_resolved_scenario_has_every_default() -> None:
    resolved = Scenario.parse(SMALL).resolved()
    assert resolved.association.recv_buffer == "64 KiB"
    assert resolved.paths[0].queue == "50 packets"
    assert resolved.paths[0].reverse == Reverse(rate="1 Mbit/s", delay="10 ms", queue="50 packets", loss=())
    assert resolved.flows[0].paths == ("path-1",)
    assert resolved.resolved() == resolved


def test_a_written_scenario_looks_like_one_that_a_person_wrote() -> None:
    event = {"at": "1 s", "up": False, "loss": {"model": "trace", "lost": [3, 17]}}
    scenario = two_paths().with_values({"path.0.event": [event], "scheme.loss.expression": "cmt"})
    assert (
        scenario.to_toml()
        == """\
[run]
duration = "5 s"
schemes = ["cmt"]

[scheme.loss]
expression = "cmt"

[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01

[[path.event]]
at = "1 s"
up = false
loss = { model = "trace", lost = [3, 17] }

[[path]]
rate = "2 Mbit/s"
delay = "90 ms"
"""
    )


def test_values_stay_as_the_file_has_them() -> None:
    scenario = Scenario.read(EVERY_KEY)
    assert scenario.run.start == "0.5 s"
    assert scenario.links[0].loss == "0.5 %"
    assert scenario.links[0].reverse == Reverse(rate="100 Mbit/s", delay="20us", queue="64 KiB", loss=0.25)
    assert isinstance(scenario.paths[0].loss, tuple)
    assert scenario.paths[0].loss[2] == Loss(model="trace", lost=[17, 3], direction="reverse")
    assert scenario.paths[0].events[1].loss == Loss(model="gilbert-elliott", p=0, r=1, direction="both")
    assert scenario.schemes[0] == Scheme(
        name="mine", expression="cmt( rtx = rtx-same, trigger = 4 )", about='As "cmt", but slower to retransmit'
    )
    kinds = ["bulk", "file", "file", *["messages"] * 4, "forward", "video", "video"]
    assert [flow.kind for flow in scenario.flows] == kinds
    limits = [Reliability(lifetime="200 ms"), Reliability(max_retransmissions=2), Reliability(priority=3)]
    assert [flow.reliability for flow in scenario.flows[4:7]] == limits
    of_b = Reliability(max_retransmissions=0)
    assert scenario.flows[8].reliability == Reliability(I=Reliability(lifetime="300 ms"), B=of_b)


def test_plain_python_makes_the_scenario_that_a_file_would() -> None:
    file = """
        [run]
        duration = "5 s"
        seeds = [1, 2, 3]
        [association]
        recv_buffer = "256 KiB"
        [scheme.eager]
        expression = "cmt(trigger=2)"
        [[link]]
        name = "shared"
        rate = "10 Mbit/s"
        delay = "5 ms"
        [[path]]
        via = ["shared"]
        [[path]]
        rate = "2 Mbit/s"
        delay = "90 ms"
        loss = [{ model = "bernoulli", rate = 0.01 }, { model = "trace", lost = [3] }]
        reverse = { loss = 0.02 }
        background = [{ kind = "cbr", rate = "1 Mbit/s", packet = "500 B" }]
        event = [{ at = "2 s", up = false }]
        [[flow]]
        scheme = "eager"
        paths = ["path-2", "path-1"]
    """
    made = Scenario(
        run=RunSettings(duration="5 s", seeds=range(1, 4)),
        association=AssociationSettings(recv_buffer="256 KiB"),
        schemes=[Scheme(name="eager", expression="cmt(trigger=2)")],
        links=[Link(name="shared", rate="10 Mbit/s", delay="5 ms")],
        paths=[
            Path(via=["shared"]),
            Path(
                rate="2 Mbit/s",
                delay="90 ms",
                loss=[Loss(model="bernoulli", rate=0.01), Loss(model="trace", lost=[3])],
                reverse=Reverse(loss=0.02),
                background=[Background(kind="cbr", rate="1 Mbit/s", packet="500 B")],
                events=[LinkEvent(at="2 s", up=False)],
            ),
        ],
        flows=[Flow(scheme="eager", paths=["path-2", "path-1"])],
    )
    assert made == Scenario.parse(file)
    assert made.to_toml(resolved=True) == Scenario.parse(file).to_toml(resolved=True)


def test_tables_may_be_given_as_dictionaries() -> None:
    path = Path(
        rate="1 Mbit/s",
        delay="1 ms",
        loss={"model": "bernoulli", "rate": 0.5},  # type: ignore[arg-type]
        reverse={"loss": [{"model": "trace", "lost": [1]}]},  # type: ignore[arg-type]
    )
    assert path.loss == Loss(model="bernoulli", rate=0.5)
    assert path.reverse == Reverse(loss=[Loss(model="trace", lost=[1])])


def test_impairments_of_a_direction_are_tables_and_jitter_may_be_a_time() -> None:
    path = Path(
        rate="10 Mbit/s",
        delay="20 ms",
        policer=Policer(rate="1.5 Mbit/s", burst="16 KiB"),
        jitter="3 ms",
        reverse=Reverse(
            jitter=Jitter(model="normal", mean="2 ms", deviation="1 ms", order="free"),
            aggregation=Aggregation(period="5 ms", packets=32),
        ),
    )
    scenario = Scenario(run=RunSettings(duration="1 s"), paths=[path])
    assert Scenario.parse(scenario.to_toml()) == scenario
    resolved = scenario.resolved().paths[0]
    assert resolved.policer == Policer(rate="1500 kbit/s", burst="16 KiB")
    assert resolved.jitter == Jitter(model="uniform", most="3 ms", order="kept")
    assert resolved.reverse is not None
    assert path.reverse is not None
    assert (resolved.reverse.policer, resolved.aggregation) == (None, None)
    assert resolved.reverse.jitter == path.reverse.jitter
    assert resolved.reverse.aggregation == path.reverse.aggregation
    with pytest.raises(ScenarioError, match='burst="16 KiB"'):
        Policer(rate="1 Mbit/s", burst=16)  # type: ignore[arg-type]
    small = {"path.path-1.policer.burst": "1499 B"}
    with pytest.raises(ScenarioError, match="give a burst of at least 1500 B"):
        scenario.with_values(small).resolved()


def test_numbers_and_lists_of_numpy_become_plain_ones() -> None:
    scenario = two_paths().with_values({"run.seeds": numpy.arange(3), "path.*.loss": numpy.float32(0.5)})
    assert scenario.run.seeds == (0, 1, 2)
    assert scenario.paths[0].loss == 0.5
    assert type(scenario.paths[0].loss) is float
    assert RunSettings(seeds=numpy.int64(7)).seeds == 7  # type: ignore[arg-type]


def test_toml_1_1_is_read_as_by_the_native_reader() -> None:
    text = (
        SMALL
        + 'loss = {\n  model = "bernoulli",\n  rate = 0.5,\n}\n[scheme.mine]\nexpression = "cmt"\nabout = "\\x41\\e"\n'
    )
    scenario = Scenario.parse(text)
    assert scenario.paths[0].loss == Loss(model="bernoulli", rate=0.5)
    assert scenario.schemes[0].about == "A\x1b"
    assert Scenario.parse(scenario.to_toml()) == scenario


def test_line_break_in_inline_table_is_read_as_in_files() -> None:
    text = SMALL + 'loss = { model = "bernoulli", rate\n= 0.5 }\n'
    assert "rate = 0.5" in _native.resolve(text, "file")
    assert Scenario.parse(text).paths[0].loss == Loss(model="bernoulli", rate=0.5)


def test_a_byte_order_mark_and_other_line_ends_are_harmless(tmp_path: FilePath) -> None:
    file = tmp_path / "marked.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert Scenario.read(file) == Scenario.parse(SMALL)


def test_text_in_any_script_survives(tmp_path: FilePath) -> None:
    folder = tmp_path / "Übung 日本"
    folder.mkdir()
    file = folder / "🦀 scenario.toml"
    definition = '[scheme.mine]\nexpression = "cmt"\nabout = "für 日本 🦀"\n'
    file.write_text(SMALL + definition + '[[flow]]\nkind = "file"\npath = "Größe.bin"\n', encoding="utf-8")
    scenario = Scenario.read(file)
    assert (scenario.name, scenario.folder) == (str(file), folder)
    assert Scenario.parse(scenario.to_toml()) == scenario
    assert scenario.flows[0].path == "Größe.bin"


# Values


def test_scenarios_are_values() -> None:
    scenario = two_paths()
    assert scenario == two_paths()
    assert hash(scenario) == hash(two_paths())
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert copy.deepcopy(scenario) == scenario
    with pytest.raises(dataclasses.FrozenInstanceError):
        scenario.run = RunSettings(duration="9 s")  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        scenario.paths[0].dealy = "1 ms"  # type: ignore[attr-defined]


def test_lists_that_were_given_can_change_without_the_scenario() -> None:
    schemes = ["cmt"]
    settings = RunSettings(duration="5 s", schemes=schemes)
    schemes.append("sctp")
    assert settings.schemes == ("cmt",)


def test_name_and_folder_do_not_count_when_scenarios_are_compared(tmp_path: FilePath) -> None:
    assert Scenario.parse(SMALL, name="a", folder=tmp_path) == Scenario.parse(SMALL, name="b")


def test_a_folder_stays_the_same_when_the_working_directory_changes(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/small.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.read("inner/small.toml")
    monkeypatch.chdir("/")
    assert scenario.folder == tmp_path / "inner"
    assert scenario.resolved().folder == scenario.with_values({"run.seeds": 2}).folder == tmp_path / "inner"


def test_its_representation_shows_what_was_given_and_evaluates_to_it() -> None:
    scenario = two_paths()
    text = repr(scenario.paths)
    assert text == "(Path(rate='10 Mbit/s', delay='45 ms', loss=0.01), Path(rate='2 Mbit/s', delay='90 ms'))"
    assert eval(text) == scenario.paths
