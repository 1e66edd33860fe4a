"""Dataclasses of scenarios, compared with the reader in Rust and with the book."""

from __future__ import annotations

import re

import pytest
from scenario_support import ROOT

import anabranch as ab
from anabranch import _native
from anabranch.errors import ScenarioError
from anabranch.scenario import (
    Aggregation,
    AssociationSettings,
    Background,
    CapacityTrace,
    Datagrams,
    Exchange,
    Fading,
    Flow,
    Jitter,
    Link,
    LinkEvent,
    Loss,
    Path,
    Policer,
    Queue,
    Reverse,
    RunSettings,
    Scenario,
    Scheme,
    SeriesTrace,
    SmallMessages,
)
from anabranch.scenario.table import Table


def keys_that_the_reader_expects(text: str) -> set[str]:
    """Returns the keys that the native reader lists when `no-such-key` is in one of its tables."""
    with pytest.raises(ScenarioError) as caught:
        _native.resolve(text, "file")
    (listed,) = re.findall(r"`[^`]*no-such-key`\n.*\n.*expected one of: ([^;\n]*)", str(caught.value))
    return set(listed.split(", "))


TABLES: list[tuple[type[Table], list[str]]] = [
    (RunSettings, ["[run]\nno-such-key = 1"]),
    (AssociationSettings, ["[association]\nno-such-key = 1"]),
    (Link, ["[[link]]\nno-such-key = 1"]),
    (Path, ["[[path]]\nno-such-key = 1"]),
    (Reverse, ['[[path]]\nrate = "1 Mbit/s"\n[path.reverse]\nno-such-key = 1']),
    (
        Background,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[[path.background]]\nkind = "{kind}"\nno-such-key = 1'
            for kind in ("cbr", "poisson", "pareto", "transfers", "video")
        ],
    ),
    (LinkEvent, ['[[path]]\nrate = "1 Mbit/s"\n[[path.event]]\nno-such-key = 1']),
    (
        Loss,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[path.loss]\nmodel = "{model}"\nno-such-key = 1'
            for model in ("bernoulli", "gilbert-elliott", "trace")
        ],
    ),
    (Policer, ['[[path]]\nrate = "1 Mbit/s"\n[path.policer]\nno-such-key = 1']),
    (
        Jitter,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[path.reverse.jitter]\nmodel = "{model}"\nno-such-key = 1'
            for model in ("uniform", "normal", "retransmission")
        ],
    ),
    (Fading, ['[[path]]\nrate = "1 Mbit/s"\n[path.fading]\nno-such-key = 1']),
    (Aggregation, ['[[path]]\nrate = "1 Mbit/s"\n[path.aggregation]\nno-such-key = 1']),
    (
        Queue,
        [
            f'[[path]]\nrate = "1 Mbit/s"\n[path.queue]\ndiscipline = "{discipline}"\nno-such-key = 1'
            for discipline in ("drop-tail", "codel", "fq-codel", "pie", "red")
        ],
    ),
    (CapacityTrace, ["[[path]]\n[path.capacity]\nno-such-key = 1"]),
    (SeriesTrace, ["[[path]]\n[path.delay_trace]\nno-such-key = 1"]),
    (SmallMessages, ['[[flow]]\n[flow.messages]\nsize = "200 B"\ninterval = "20 ms"\nno-such-key = 1']),
    (
        Flow,
        [f'[[flow]]\nkind = "{kind}"\nno-such-key = 1' for kind in ("bulk", "file", "messages", "video", "forward")],
    ),
    (Exchange, ['[[flow]]\nkind = "forward"\n[flow.keystrokes]\ninterval = "1 s"\nno-such-key = 1']),
    (
        Datagrams,
        ['[[flow]]\nkind = "forward"\n[flow.datagrams]\nsize = "9 B"\ninterval = "1 s"\nno-such-key = 1'],
    ),
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
        "`[association]`": AssociationSettings,
        "`[scheme.NAME]`": Scheme,
        "Loss": Loss,
        "Policer": Policer,
        "Jitter": Jitter,
        "Aggregation": Aggregation,
        "Fading": Fading,
        "Queues": Queue,
        "Traces": CapacityTrace,
        "`[[path.background]]`, `[[link.background]]`": Background,
        "`[[path.event]]`, `[[link.event]]`": LinkEvent,
        "`[[flow]]`": Flow,
        "Small messages beside the bulk": SmallMessages,
        "Forwarded programs": Exchange,
        "Forwarded datagrams": Datagrams,
    }
    for title, table in named.items():
        first_cells = re.findall(r"^\| (`[^|]*`) \|", sections[title], flags=re.M)
        keys = {key for cell in first_cells for key in re.findall(r"`([^`]+)`", cell)}
        assert keys == set(table.fields_by_key()) - ({"name"} if table is Scheme else set()), title


def test_key_without_field_is_an_error_and_not_dropped() -> None:
    with pytest.raises(ScenarioError, match="unknown key `colour` of Path"):
        Path.from_table({"rate": "1 Mbit/s", "colour": "red"})
    with pytest.raises(ScenarioError, match="unknown key `planet` of Scenario"):
        Scenario.arguments({"planet": "earth"})


def test_the_package_offers_scenarios_by_their_short_names() -> None:
    assert ab.Scenario is Scenario
    assert (ab.Path, ab.Flow, ab.Scheme, ab.RunSettings) == (Path, Flow, Scheme, RunSettings)
