"""Scenarios as dataclasses: they mirror files both ways, and are valid whenever there is one."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import re
import sys
from pathlib import Path as FilePath

import numpy
import pytest
import tomli
import tomli_w
from random_scenarios import random_scenario

import anabranch as ab
from anabranch import _native
from anabranch.errors import AnabranchError, ScenarioError
from anabranch.scenario import (
    Association,
    Background,
    Event,
    Flow,
    Link,
    Loss,
    Path,
    Reverse,
    RunSettings,
    Scenario,
    Scheme,
    load,
)
from anabranch.scenario.table import Table

ROOT = FilePath(__file__).parents[2]
EVERY_KEY = ROOT / "crates/lab/tests/scenario/every-key.toml"
FILES = [*sorted((ROOT / "scenarios").rglob("*.toml")), EVERY_KEY]
SMALL = '[run]\nduration = "5 s"\n\n[[path]]\nrate = "1 Mbit/s"\ndelay = "10 ms"\n'


def two_paths() -> Scenario:
    return Scenario(
        run=RunSettings(duration="5 s", schemes=["cmt"]),
        paths=[Path(rate="10 Mbit/s", delay="45 ms", loss=0.01), Path(rate="2 Mbit/s", delay="90 ms")],
    )


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
    scenario = two_paths().with_values({"path.0.event": [{"at": "1 s", "up": False}], "scheme.loss.is": "cmt"})
    assert (
        scenario.to_toml()
        == """\
[run]
duration = "5 s"
schemes = ["cmt"]

[scheme.loss]
is = "cmt"

[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01

[[path.event]]
at = "1 s"
up = false

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
        name="mine", is_="cmt( rtx = rtx-same, trigger = 4 )", about='As "cmt", but slower to retransmit'
    )
    assert [flow.kind for flow in scenario.flows] == ["bulk", "file", "file", "messages"]


def test_plain_python_makes_the_scenario_that_a_file_would() -> None:
    file = """
        [run]
        duration = "5 s"
        seeds = [1, 2, 3]
        [association]
        recv_buffer = "256 KiB"
        [scheme.eager]
        is = "cmt(trigger=2)"
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
        association=Association(recv_buffer="256 KiB"),
        schemes=[Scheme(name="eager", is_="cmt(trigger=2)")],
        links=[Link(name="shared", rate="10 Mbit/s", delay="5 ms")],
        paths=[
            Path(via=["shared"]),
            Path(
                rate="2 Mbit/s",
                delay="90 ms",
                loss=[Loss(model="bernoulli", rate=0.01), Loss(model="trace", lost=[3])],
                reverse=Reverse(loss=0.02),
                background=[Background(kind="cbr", rate="1 Mbit/s", packet="500 B")],
                events=[Event(at="2 s", up=False)],
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


def test_numbers_and_lists_of_numpy_become_plain_ones() -> None:
    scenario = two_paths().with_values({"run.seeds": numpy.arange(3), "path.*.loss": numpy.float32(0.5)})
    assert scenario.run.seeds == (0, 1, 2)
    assert scenario.paths[0].loss == 0.5
    assert type(scenario.paths[0].loss) is float
    assert RunSettings(seeds=numpy.int64(7)).seeds == 7  # type: ignore[arg-type]


def test_what_toml_has_had_since_1_1_is_read_as_the_native_reader_does() -> None:
    text = SMALL + 'loss = {\n  model = "bernoulli",\n  rate = 0.5,\n}\n[scheme.mine]\nis = "cmt"\nabout = "\\x41\\e"\n'
    scenario = Scenario.parse(text)
    assert scenario.paths[0].loss == Loss(model="bernoulli", rate=0.5)
    assert scenario.schemes[0].about == "A\x1b"
    assert Scenario.parse(scenario.to_toml()) == scenario


def test_a_byte_order_mark_and_other_line_ends_are_harmless(tmp_path: FilePath) -> None:
    file = tmp_path / "marked.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert Scenario.read(file) == Scenario.parse(SMALL)


def test_text_in_any_script_survives(tmp_path: FilePath) -> None:
    folder = tmp_path / "Übung 日本"
    folder.mkdir()
    file = folder / "🦀 scenario.toml"
    definition = '[scheme.mine]\nis = "cmt"\nabout = "für 日本 🦀"\n'
    file.write_text(SMALL + definition + '[[flow]]\nkind = "file"\npath = "Größe.bin"\n', encoding="utf-8")
    scenario = Scenario.read(file)
    assert (scenario.name, scenario.folder) == (str(file), folder)
    assert Scenario.parse(scenario.to_toml()) == scenario
    assert scenario.flows[0].path == "Größe.bin"


# What it is


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


# Mistakes


def test_a_misspelled_key_in_a_file_is_named_with_its_place_and_the_nearest_word(tmp_path: FilePath) -> None:
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


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario(
            run=RunSettings(duration="5", profile="ns3"),  # type: ignore[arg-type]
            paths=[Path(rate="10 Mbit", delay="45 ms", loss=2)],
            flows=[Flow(paths=["path-9"])],
        )
    for part in ("run.duration", "path.path-1.rate", "path.path-1.loss", 'there is no path named "path-9"'):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"paths": []}, "at least one"),
        ({"paths": Path(rate="1 Mbit/s", delay="1 ms")}, "expected a list of tables"),
        ({"run": 5}, "expected a table, found the number 5"),
        ({"run": RunSettings()}, "run.duration"),
        ({"run": RunSettings(duration=float("nan"))}, "NaN"),
        ({"run": RunSettings(duration=10**40)}, "without a unit"),
        ({"schemes": ["cmt"]}, r"go to RunSettings\(schemes="),
        ({"schemes": Scheme(name="a", is_="cmt")}, "a list of definitions"),
        ({"schemes": [Scheme(name="a", is_="cmt"), Scheme(name="a", is_="sctp")]}, "two schemes are called `a`"),
        ({"schemes": [Scheme(name="cmt", is_="sctp")]}, "scheme `cmt`"),
        ({"flows": [Flow(kind="file")]}, "flow.flow-1.size"),
    ],
)
def test_what_no_scenario_can_be_is_refused_when_it_is_made(given: dict[str, object], message: str) -> None:
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


def test_load_takes_paths_and_scenarios_and_says_what_to_do_with_the_rest(tmp_path: FilePath) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    scenario = Scenario.parse(SMALL)
    assert load(scenario) is scenario
    assert load(str(file)) == load(file) == scenario
    with pytest.raises(ScenarioError, match=r"use Scenario\.parse"):
        load(SMALL)
    with pytest.raises(ScenarioError, match=r"found a dict: see also Scenario\.from_dict"):
        load({"run": {}})  # type: ignore[arg-type]


# Values put in by key


def test_values_are_put_in_by_dotted_key() -> None:
    scenario = two_paths().with_values(
        {
            "path.*.loss": 0.02,
            "path.path-2.loss": Loss(model="trace", lost=[5]),
            "path.0.queue": "9 packets",
            "association.recv_buffer": "1 MiB",
            "flow.flow-1.reader": "5 Mbit/s",
        }
    )
    assert [path.loss for path in scenario.paths] == [0.02, Loss(model="trace", lost=[5])]
    assert scenario.paths[0].queue == "9 packets"
    assert scenario.flows == (Flow(reader="5 Mbit/s"),)
    assert scenario.association == Association(recv_buffer="1 MiB")


def test_what_follows_from_a_value_follows_from_the_new_one() -> None:
    scenario = two_paths().with_values({"run.seeds": 3}).with_values({"path.path-1.rate": "5 Mbit/s"})
    assert scenario.resolved().paths[0].reverse.rate == "5 Mbit/s"  # type: ignore[union-attr]


def test_a_table_put_in_several_places_is_not_shared() -> None:
    values = {"path.*.reverse": {"queue": "5 packets"}, "path.path-1.reverse.queue": "9 packets"}
    assert [path.reverse for path in two_paths().with_values(values).paths] == [
        Reverse(queue="9 packets"),
        Reverse(queue="5 packets"),
    ]


OVERRIDES = [
    ("run.seeds", "3"),
    ("run.seeds", "[1, 5]"),
    ("run.schemes", '["cmt", "sctp(trigger=4)"]'),
    ("association", "{ streams = 3 }"),
    ("association", "{}"),
    ("association.ordered", "false"),
    ("scheme.new.is", '"cmt"'),
    ("scheme.mine.about", r'"\U0001F980 \"quoted\"\n\u007F"'),
    ("link.shared.delay", '"1 ms"'),
    ("link.*.loss", "0.5"),
    ("link.*.loss", "[]"),
    ("link.*.loss", '[{ model = "trace", lost = [1] }]'),
    ("link.link-2.event", '[{ at = "1 s", up = false }]'),
    ("path.path-1.loss.1.p", "0.25"),
    ("path.path-1.loss.rate", "0.5"),
    ("path.path-1.background.0.rate", '"2 Mbit/s"'),
    ("path.path-1.background.*.count", "2"),
    ("path.path-1.background.1", '{ kind = "cbr", rate = "1 kbit/s", packet = "1 B" }'),
    ("path.0.reverse.loss", "0.125"),
    ("path.path-1.reverse", '{ delay = "1 s" }'),
    ("path.path-1.event.1.loss.p", '"3 %"'),
    ("path.*.name", '"path-1"'),
    ("path.path-9.loss", "0.5"),
    ("flow.*.scheme", '"mine"'),
    ("flow.3.count", "7"),
    ("flow.download.size", '"1 B"'),
    ("flow", '[{ kind = "file", size = "9 B" }]'),
    ("nothing.at.all", "1"),
]


@pytest.mark.parametrize(("key", "value"), OVERRIDES)
def test_values_mean_what_the_native_reader_makes_of_them(key: str, value: str) -> None:
    text, python_value = EVERY_KEY.read_text(), tomli.loads(f"v = {value}")["v"]
    try:
        expected = _native.resolve(text, "file", [(key, value)])
    except ScenarioError:
        with pytest.raises(ScenarioError):
            Scenario.parse(text).with_values({key: python_value})
    else:
        assert Scenario.parse(text).with_values({key: python_value}).to_toml(resolved=True) == expected


def test_a_wrong_value_is_named_with_file_and_key(tmp_path: FilePath) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    scenario = Scenario.read(file)
    for values, message in (
        ({"path.path-1.dealy": "1 ms"}, "unknown key `path.path-1.dealy`"),
        ({"path.path-7.delay": "1 ms"}, "there is no path named `path-7`"),
        ({"path.path-1.loss": "2"}, "invalid value for `path.path-1.loss`"),
        ({"run..seeds": 1}, "is not the key of a value"),
        ({"": 1}, "is not the key of a value"),
    ):
        with pytest.raises(ScenarioError, match=re.escape(message)) as caught:
            scenario.with_values(values)
        assert str(caught.value).startswith(f"{file}: ")


def test_a_conflict_with_a_put_in_value_names_the_line_of_the_authors_file(tmp_path: FilePath) -> None:
    file = tmp_path / "small.toml"
    file.write_text("# A comment that would not be written again.\n\n" + SMALL + '[[flow]]\nstart = "3 s"\n')
    with pytest.raises(ScenarioError, match=rf"{file}:10:9: this flow never starts"):
        Scenario.read(file).with_values({"run.duration": "2 s"})


# Held against the reader in Rust


def keys_that_the_reader_expects(text: str) -> set[str]:
    """The keys that the native reader names when `no-such-key` stands in one of its tables."""
    with pytest.raises(ScenarioError) as caught:
        _native.resolve(text, "file")
    (listed,) = re.findall(r"`[^`]*no-such-key`\n.*\n.*expected one of: ([^;\n]*)", str(caught.value))
    return set(listed.split(", "))


TABLES: list[tuple[type[Table], list[str]]] = [
    (RunSettings, ["[run]\nno-such-key = 1"]),
    (Association, ["[association]\nno-such-key = 1"]),
    (Link, ["[[link]]\nno-such-key = 1"]),
    (Path, ["[[path]]\nno-such-key = 1"]),
    (Reverse, ['[[path]]\nrate = "1 Mbit/s"\n[path.reverse]\nno-such-key = 1']),
    (
        Background,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[[path.background]]\nkind = "{kind}"\nno-such-key = 1'
            for kind in ("cbr", "poisson", "pareto")
        ],
    ),
    (Event, ['[[path]]\nrate = "1 Mbit/s"\n[[path.event]]\nno-such-key = 1']),
    (
        Loss,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[path.loss]\nmodel = "{model}"\nno-such-key = 1'
            for model in ("bernoulli", "gilbert-elliott", "trace")
        ],
    ),
    (Flow, [f'[[flow]]\nkind = "{kind}"\nno-such-key = 1' for kind in ("bulk", "file", "messages")]),
]


@pytest.mark.parametrize(("table", "texts"), TABLES, ids=lambda value: getattr(value, "__name__", ""))
def test_each_dataclass_has_the_keys_of_the_reader_and_no_others(table: type[Table], texts: list[str]) -> None:
    expected = set().union(*map(keys_that_the_reader_expects, texts))
    assert set(table.fields_by_key()) == expected


def test_definitions_and_the_whole_file_have_the_keys_of_the_reader() -> None:
    assert set(Scheme.fields_by_key()) == {"name", *keys_that_the_reader_expects("[scheme.mine]\nno-such-key = 1")}
    assert set(Scenario.fields_by_key()) == keys_that_the_reader_expects("no-such-key = 1")


def test_the_book_lists_the_fields_of_each_dataclass() -> None:
    book = (ROOT / "docs/src/scenarios.md").read_text()
    sections = dict(re.findall(r"^##+ (.*?)$(.*?)(?=^##+ |\Z)", book, flags=re.M | re.S))
    named = {
        "`[run]`": RunSettings,
        "`[association]`": Association,
        "`[scheme.NAME]`": Scheme,
        "Loss": Loss,
        "`[[path.background]]`, `[[link.background]]`": Background,
        "`[[path.event]]`, `[[link.event]]`": Event,
        "`[[flow]]`": Flow,
    }
    for title, table in named.items():
        first_cells = re.findall(r"^\| (`[^|]*`) \|", sections[title], flags=re.M)
        keys = {key for cell in first_cells for key in re.findall(r"`([^`]+)`", cell)}
        assert keys == set(table.fields_by_key()) - ({"name"} if table is Scheme else set()), title


def test_a_key_that_only_the_reader_knows_is_an_error_and_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "resolve", lambda *_: "")
    with pytest.raises(ScenarioError, match="unknown key `colour` of Path"):
        Scenario.parse(SMALL + 'colour = "red"\n')
    with pytest.raises(ScenarioError, match="unknown key `planet` of Scenario"):
        Scenario.parse('planet = "earth"\n' + SMALL)


def test_the_package_offers_scenarios_by_their_short_names() -> None:
    assert ab.Scenario is Scenario
    assert (ab.Path, ab.Flow, ab.Scheme, ab.RunSettings) == (Path, Flow, Scheme, RunSettings)
