"""Public view of the package: its names, the cost of its import, its exceptions and its types."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pickle
import pkgutil
import subprocess
import sys
from importlib import resources
from types import ModuleType

import pytest

import anabranch
from anabranch import errors

# Importing these modules takes about a second in total.
HEAVY = ["pandas", "pyarrow", "scipy", "statsmodels", "matplotlib", "plotly", "distributed", "polars", "numpy"]


def loaded_after(code: str) -> set[str]:
    """Returns the modules that a fresh interpreter has loaded after these statements."""
    code += "\nimport sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(ended.stderr))


def printed_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def names_for_type_checkers() -> dict[str, str]:
    """Returns the names that the package imports for type checkers only, with their modules."""
    tree = ast.parse(resources.files("anabranch").joinpath("__init__.py").read_text(encoding="utf-8"))
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for line in statement.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {name.asname or name.name: str(line.module) for name in line.names}
    return found


def test_type_checkers_see_the_names_that_there_are() -> None:
    seen = names_for_type_checkers()
    assert {seen.pop(name) for name in anabranch._MODULES} == {"anabranch"}
    assert seen == anabranch._HOMES


def test_every_name_equals_that_of_its_module() -> None:
    for name, home in anabranch._HOMES.items():
        assert getattr(anabranch, name) is getattr(importlib.import_module(home), name)
    for name in anabranch._MODULES:
        assert getattr(anabranch, name) is importlib.import_module(f"anabranch.{name}")
    assert anabranch.__version__ == anabranch.engine().version


def test_dir_lists_the_names_and_other_ones_are_refused() -> None:
    assert {"engine", "errors", "__version__"} <= set(dir(anabranch))
    with pytest.raises(AttributeError, match="module 'anabranch' has no attribute 'nonsense'"):
        _ = anabranch.nonsense  # type: ignore[attr-defined]


def test_no_public_name_is_also_a_module() -> None:
    packages = [info.name for info in pkgutil.walk_packages(anabranch.__path__, "anabranch.") if info.ispkg]
    for package in [anabranch, *map(importlib.import_module, packages)]:
        assert not public_names(package) & submodules(package), package.__name__


def test_no_public_name_has_two_meanings() -> None:
    meanings: dict[str, set[int]] = {}
    packages = ("experiments", "figures", "policy", "results", "scenario", "series", "statistics", "transfer", "video")
    modules = [anabranch, *(importlib.import_module(f"anabranch.{name}") for name in packages)]
    for module in modules:
        for name in public_names(module):
            meanings.setdefault(name, set()).add(id(getattr(module, name)))
    assert [name for name, objects in meanings.items() if len(objects) > 1] == []


def public_names(module: ModuleType) -> set[str]:
    """Returns the names of classes, functions and values that a package exports."""
    names = anabranch._HOMES if module is anabranch else getattr(module, "__all__", ())
    return {name for name in names if not isinstance(getattr(module, name), ModuleType)}


def submodules(package: ModuleType) -> set[str]:
    """Returns the names of the modules in a package."""
    return {info.name for info in pkgutil.iter_modules(package.__path__)}


@pytest.mark.parametrize(
    "code",
    [
        "import anabranch",
        "from anabranch.command import main; main(['--help'])",
        "from anabranch.command import main; main(['schemes'])",
    ],
)
def test_no_library_is_loaded_before_it_is_used(code: str) -> None:
    assert not loaded_after(code) & set(HEAVY)


def test_importing_the_package_does_not_even_load_the_native_module() -> None:
    assert "anabranch._native" not in loaded_after("import anabranch")


def test_all_exceptions_descend_from_one() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.AnabranchError), name
    assert not issubclass(errors.AnabranchError, (OSError, ValueError))


def test_exceptions_come_back_from_other_processes() -> None:
    for name in errors.__all__:
        error = getattr(errors, name)("two-path.toml: what is wrong")
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == "two-path.toml: what is wrong"


def test_types_are_part_of_the_package() -> None:
    files = resources.files("anabranch")
    assert files.joinpath("py.typed").is_file()
    assert files.joinpath("_native.pyi").is_file()


def test_stub_of_the_native_module_matches_its_contents() -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install 'anabranch[test]'")
    command = [sys.executable, "-m", "mypy.stubtest", "anabranch._native", "--concise"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
