"""Minimum versions of the packages that this one needs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# First version with the fix, and the advisory.
FIXED = {
    "distributed": ("2026.1.1", "CVE-2026-23528, script in pages of the dashboard"),
    "jinja2": ("3.1.6", "CVE-2025-27516 and four before it, escape from the sandbox and attributes of templates"),
    "numpy": ("1.22", "CVE-2021-41496, overflow of a buffer"),
    "pyarrow": ("23.0.1", "CVE-2026-25087, use after free; 14.0.1: CVE-2023-47248, code from Parquet files"),
    "pytest": ("9.0.3", "CVE-2025-71176, predictable folders in /tmp"),
    "scipy": ("1.10", "CVE-2023-25399, memory that is not freed"),
    "tqdm": ("4.66.3", "CVE-2024-34062, code from options of the command line"),
}
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")


def requirements() -> list[tuple[str, str]]:
    """Returns all requirements of the package and its extras with their minimum versions."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    found = [REQUIREMENT.fullmatch(text) for text in texts]
    assert all(found), texts
    return [(match[1], match[2]) for match in found if match]


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@pytest.mark.parametrize("name", FIXED)
def test_minimum_version_has_no_known_vulnerability(name: str) -> None:
    least = [version(found) for package, found in requirements() if package == name]
    assert least, "it is no requirement any more"
    assert min(least) >= version(FIXED[name][0]), FIXED[name][1]


def test_package_has_one_minimum_version_in_all_extras() -> None:
    found = set(requirements())
    assert len({name for name, _ in found}) == len(found), sorted(found)


def test_notebook_extra_can_execute_the_notebook() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {"ipykernel", "nbclient", "nbformat"}
    assert needed <= {text.partition(">")[0] for text in project["optional-dependencies"]["notebook"]}
