"""Keys of runs of schemes in Python: a change of behaviour changes the key, or excludes the runs from the cache."""

from __future__ import annotations

import _random
import copy
import decimal
import importlib
import locale
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from book import run_chapter
from identity_variations import HELPER, HONEST, VARIATIONS

import anabranch as ab
from anabranch.policy.identity import Identity, identity_of
from anabranch.policy.python_scheme import resolve_scheme


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Folder for modules and files of a scheme. Changes of the process by schemes are reverted."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("ANABRANCH_TEST_V", "0")
    kept = [(of, dict(vars(of))) for of in (math, random, random.Random, _random.Random, ab.Scheduler, ab.Wait)]
    limit, state, context = sys.getrecursionlimit(), random.getstate(), decimal.getcontext().copy()
    yield tmp_path
    for name in ("helper_of_test", "scheme_of_test"):
        sys.modules.pop(name, None)
    sys.setrecursionlimit(limit)
    random.setstate(state)
    decimal.setcontext(context)
    vars(ab.Scheduler.pick).clear()
    for of, before in kept:
        for name in set(vars(of)) - set(before):
            delattr(of, name)
        for name, value in before.items():
            if vars(of)[name] is not value:
                setattr(of, name, value)


def load(source: str, value: int, folder: Path) -> ab.policy.Policy:
    """Makes the scheme of a module, as a new process does."""
    (folder / "helper_of_test.py").write_text("import anabranch as ab\n" + HELPER.replace("<V>", str(value)))
    (folder / "value.txt").write_text(str(value))
    sys.modules.pop("helper_of_test", None)
    importlib.invalidate_caches()
    module = ModuleType("scheme_of_test")
    sys.modules["scheme_of_test"] = module
    vars(module).update(ab=ab, PLACE=str(folder / "value.txt"))
    exec(compile(source.replace("<V>", str(value)), "<string>", "exec"), vars(module))
    scheme: ab.policy.Policy = module.Scheme()
    return scheme


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", VARIATIONS)
def test_changed_behaviour_changes_key_or_is_not_cached(name: str, restored: Path) -> None:
    identities: list[Identity] = []
    answers: list[object] = []
    for value in (1, 2):
        scheme = load(VARIATIONS[name], value, restored)
        identities.append(identity_of(scheme))
        played = copy.deepcopy(scheme)
        played.random = random.Random("1/0")
        answers.append(played.pick(None, None))  # type: ignore[attr-defined]
    assert answers[0] != answers[1], "the two schemes have to behave differently"
    if all(identity.is_complete for identity in identities):
        assert identities[0].digest != identities[1].digest


@pytest.mark.parametrize("name", HONEST)
def test_honest_scheme_is_cached(name: str, restored: Path) -> None:
    first, second = (identity_of(load(HONEST[name], 1, restored)) for _ in range(2))
    assert first.reasons == ()
    assert first == second


def queueing(path: ab.policy.PathFacts) -> float:
    return (path.latest_rtt_ms or 0.0) - (path.min_rtt_ms or 0.0)


LIMIT = 3


class Limited(ab.Scheduler):
    def __init__(self, limit: object = 2) -> None:
        self.limit = limit

    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> ab.policy.PathFacts | None:
        return min((path for path in view.ready() if path.error_count < LIMIT), key=queueing, default=None)


def test_identity_covers_parameters_base_and_code_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = identity_of(Limited())
    assert first.is_complete
    assert first == identity_of(Limited())
    monkeypatch.setattr(Limited, "base", "cmt-pf")
    based = identity_of(Limited())
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "LIMIT", 4)
    limited = identity_of(Limited())
    monkeypatch.setitem(globals(), "queueing", lambda path: path.rto_ms)
    others = [based, limited, identity_of(Limited()), identity_of(Limited(3)), identity_of(Limited(3.0))]
    assert all(other.is_complete for other in others)
    assert len({first.digest, *(other.digest for other in others)}) == 6


def test_comments_and_order_of_a_set_leave_the_key() -> None:
    def typed(answer: str) -> Identity:
        names: dict[str, Any] = {"ab": ab, "__name__": "nowhere"}
        exec(f"class Typed(ab.Scheduler):\n    def pick(self, ask, view):\n        {answer}", names)
        return identity_of(names["Typed"]())

    assert typed("return 0") == typed("return 0  # the same")
    assert typed("return 0 in {'a', 'b', 'c'}") == typed("return 0 in {'c', 'b', 'a'}")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("return open('x').read()", "`Typed.pick` uses the built-in `open`"),
        ("import json; return 0", "`Typed.pick` imports `json`: import it where the module begins"),
        ("return missing()", "`Typed.pick` uses `missing`, which is not there"),
        (
            "return random.random()",
            "`Typed.pick` uses `random.random`, which may give different results in each run",
        ),
        ("return self.random.seed()", "`Typed.pick` uses `seed`, which may take randomness from the machine"),
        ("return [x for x in {view}]", "`Typed.pick` uses a set, whose order may differ in each process"),
        (
            "return list({'a': 0}.keys() & {'b': 0}.keys())",
            "`Typed.pick` uses `keys`, which can make a set, except in a loop",
        ),
        ("return list(view.t.items() - [])", "`Typed.pick` uses `items`, which can make a set"),
        ("return list([] - view.t.keys())", "`Typed.pick` uses `keys`, which can make a set"),
        ("keys = view.t.keys(); return keys", "`Typed.pick` uses `keys`, which can make a set"),
        ("return max(view.t.keys(), [])", "`Typed.pick` uses `keys`, which can make a set"),
        ("return dict.keys(view)", "`Typed.pick` uses `keys`, which can make a set"),
        ("return sorted(view.t.keys())", "`Typed.pick` uses a `sorted` that is not the built-in"),
        ("self.random.__init__()", "`Typed.pick` uses `__init__` of an object: call it as `super().__init__()`"),
        ("return self.__init__", "`Typed.pick` uses `__init__` of an object: call it as `super().__init__()`"),
        ("(self.random if view else list).__init__()", "`Typed.pick` uses `__init__` of an object"),
        ("(view.f if view else super)().__init__()", "`Typed.pick` uses `__init__` of an object"),
        ("return (view.f if view else list)(view.keys())", "`Typed.pick` uses `keys`, which can make a set"),
        ("return ('{0.a}' if view else '{0}').format(view)", "`Typed.pick` uses `format`"),
        ("return hash(view)", "`Typed.pick` uses the built-in `hash`"),
        ("print(view)", "`Typed.pick` uses the built-in `print`"),
    ],
)
def test_uncached_scheme_has_a_reason(lines: str, reason: str) -> None:
    names: dict[str, Any] = {"ab": ab, "random": random, "sorted": sorted, "__name__": "nowhere"}
    exec(f"class Typed(ab.Scheduler):\n    seed = 5\n    def pick(self, ask, view):\n        {lines}", names)
    assert identity_of(names["Typed"]()).reasons[0].startswith(reason)


BEFORE_THE_FIRST_RUN = {
    "method added to a slot": "ab.Scheduler.helper = lambda self: 1",
    "method of a slot": "ab.Scheduler.on_event = lambda self, event, view: None",
    "base of a slot": "ab.Scheduler.__bases__ = (type('B', ab.Scheduler.__bases__, {}),)",
    "function of a standard module": "import math; math.floor = math.ceil",
    "object in a standard module": "import heapq, functools; heapq.heappush = functools.partial(list.append)",
    "class in a standard module": "import collections; collections.deque = type('deque', (list,), {})",
    "built-in": "import builtins; builtins.min = max",
    "randomness": "import random; random.Random.random = lambda self: 0.1",
    "class of randomness": "import random; random.Random = type('R', (random.Random,), {'random': lambda self: 0.1})",
}
LIBRARY_USER = """
import collections, heapq, math
class Scheme(ab.Scheduler):
    def pick(self, ask, view):
        heapq.heappush(collections.deque(), math.floor(0.5))
        return min(1, 2)
from anabranch.policy.identity import identity_of
identity = identity_of(Scheme())
print(identity.digest if identity.is_complete else "")
"""


def test_change_before_the_first_run_is_in_the_key() -> None:
    def digest(change: str) -> str:
        code = f"import anabranch as ab\n{change}\n{LIBRARY_USER}"
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    unchanged = digest("")
    assert unchanged
    assert unchanged == digest("")
    assert [name for name, change in BEFORE_THE_FIRST_RUN.items() if digest(change) == unchanged] == []


def test_settings_of_the_process_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = identity_of(Limited())
    monkeypatch.setattr(locale, "localeconv", lambda: {"decimal_point": ","})
    assert identity_of(Limited()).digest != first.digest
    monkeypatch.undo()
    monkeypatch.setattr(random.Random.gauss, "__defaults__", (9.0, 1.0))
    assert identity_of(Limited()).digest != first.digest
    monkeypatch.undo()
    assert identity_of(Limited()) == first


class Reading(ab.Scheduler):
    def __init__(self, limit: object = 2) -> None:
        self.limit = limit

    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> int:
        return int(Path("value").read_text())


def test_version_makes_runs_cacheable_until_it_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not identity_of(Reading()).is_complete
    monkeypatch.setattr(Reading, "version", "1", raising=False)
    first = identity_of(Reading())
    assert first.is_complete
    assert first.digest != identity_of(Reading(3)).digest
    monkeypatch.setattr(Reading, "version", "2")
    assert identity_of(Reading()).digest != first.digest


def test_classes_of_one_name_and_version_in_two_files_have_two_keys(restored: Path) -> None:
    source = VARIATIONS["global"].replace("    def pick", "    version = '1'\n    def pick")
    identities = []
    for value, file in ((1, "one.py"), (2, "two.py"), (2, "two.py")):
        scheme = load(source, value, restored)
        sys.modules["scheme_of_test"].__file__ = str(restored / file)
        identities.append(identity_of(scheme))
    assert identities[0].is_complete
    assert identities[0] != identities[1]
    assert identities[1] == identities[2]


def test_version_in_the_class_leaves_unreadable_attributes_uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reading, "version", "1", raising=False)
    assert "attribute `limit`" in identity_of(Reading(object())).reasons[0]
    own = Reading(object())
    own.version = "weights 7"
    assert identity_of(own).is_complete


@pytest.mark.parametrize("version", [2, "", "x" * 101])
def test_version_that_is_no_short_text_is_refused(version: object) -> None:
    scheme = Reading()
    scheme.version = version  # type: ignore[assignment]
    with pytest.raises(ab.errors.SchemeError, match="`version` of Reading is"):
        resolve_scheme(scheme)


def test_attributes_beyond_all_bounds_leave_runs_uncached() -> None:
    doubled: tuple[Any, ...] = ()
    for _ in range(60):
        doubled = (doubled, doubled)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    assert "more than 200000 values" in identity_of(Limited(list(range(300_000)))).reasons[0]
    assert identity_of(Limited(doubled)).is_complete
    assert identity_of(Limited(deep)).reasons == ("it is nested too deeply",)
    assert identity_of(Limited(cyclic)).is_complete


def test_schemes_of_the_book_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemes of the chapter on schemes in Python, which another test executes."""
    names = run_chapter("python-schemes.md", tmp_path, monkeypatch)
    classes = [each for each in names.values() if isinstance(each, type) and issubclass(each, ab.policy.Policy)]
    assert len(classes) >= 6
    assert [identity_of(each()).reasons for each in classes] == [()] * len(classes)
