"""Values put into scenarios by dotted key."""

from __future__ import annotations

import re
from pathlib import Path as FilePath

import pytest
import tomli
from scenario_support import EVERY_KEY, SMALL, two_paths

from anabranch import _native
from anabranch.errors import ScenarioError
from anabranch.scenario import (
    AssociationSettings,
    Flow,
    Loss,
    Reverse,
    Scenario,
)


def test_values_are_put_in_by_dotted_key() -> None:
    scenario = two_paths().with_values(
        {
            "path.*.loss": 0.02,
            "path.path-2.loss": Loss(model="trace", lost=[5]),
            "path.0.queue": "9 packets",
            "association.recv_buffer": "1 MiB",
            "flow.flow-1.read_rate": "5 Mbit/s",
        }
    )
    assert [path.loss for path in scenario.paths] == [0.02, Loss(model="trace", lost=[5])]
    assert scenario.paths[0].queue == "9 packets"
    assert scenario.flows == (Flow(read_rate="5 Mbit/s"),)
    assert scenario.association == AssociationSettings(recv_buffer="1 MiB")


def test_dependent_defaults_follow_the_new_value() -> None:
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
    ("scheme.new.expression", '"cmt"'),
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
    ("flow", "[]"),
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


def test_no_flows_are_the_same_as_none_given() -> None:
    scenario = Scenario.parse("flow = []\n" + SMALL)
    assert scenario == Scenario.parse(SMALL)
    assert scenario.to_toml(resolved=True) == Scenario.parse(SMALL).to_toml(resolved=True)
    again = two_paths().with_values({"flow": [{"kind": "bulk"}]}).with_values({"flow": [], "flow.0.name": "only"})
    assert again.flows == (Flow(name="only"),)


def test_a_wrong_value_is_named_with_file_and_key(tmp_path: FilePath) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    scenario = Scenario.read(file)
    for values, message in (
        ({"path.path-1.dealy": "1 ms"}, "unknown key `path.path-1.dealy`"),
        ({"path.path-7.delay": "1 ms"}, "no path is named `path-7`"),
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
