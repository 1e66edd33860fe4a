"""Instructions that reproduce results, their figures and their report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tomli_w

from anabranch.reporting.content import Document, Recipe
from anabranch.reporting.points import value_text
from anabranch.reporting.rerun import RunKey

if TYPE_CHECKING:
    from anabranch.results import Results

REPORT_COMMAND = ("anabranch", "report", "results")
"""Command that writes the report of results again, in the folder of the recipes."""

_PLAN = "plan.toml"


def documents_of(results: Results) -> tuple[Document, ...]:
    """Returns the scenario and the plan of the sweep, and the scenario with all defaults."""
    manifest = results.manifest
    return (
        Document(f"{_scenario_file(results)}: the scenario as it was given", manifest["source"]),
        Document(f"{_PLAN}: what was swept", tomli_w.dumps(_plan(results))),
        Document("The scenario with every default in it", manifest["scenario"]),
    )


def recipes_of(results: Results, wanted: Sequence[RunKey], figures: Sequence[str]) -> tuple[Recipe, ...]:
    """Returns commands and lines of Python for results, figures, a run of the timeline and the report."""
    if not wanted:
        return (_figures(figures),)
    words = [*REPORT_COMMAND, *timeline_words(wanted, _in_plans(results))]
    report = Recipe("This report", (), f"{shlex.join(words)}\n")
    return (_sweep(results), _figures(figures), _run(results, wanted[0]), report)


def timeline_words(wanted: Sequence[RunKey], schemes: Sequence[str]) -> list[str]:
    """Returns the options of `anabranch report` for these runs. The choice `all` stands for `schemes`."""
    groups: dict[tuple[tuple[tuple[str, Any], ...], int], list[str]] = {}
    for run in wanted:
        groups.setdefault((run.point, run.seed), []).append(run.scheme)
    words = []
    for (point, seed), found in groups.items():
        at = ",".join([*(f"{key}={value_text(value)}" for key, value in point), f"seed={seed}"])
        is_all = len(found) > 1 and set(found) == set(schemes)
        words += [word for scheme in (["all"] if is_all else found) for word in ("--timeline", f"{scheme}@{at}")]
    return words


def _in_plans(results: Results) -> list[str]:
    """Returns the schemes that are not written in Python."""
    own = results.manifest.get("own_schemes", {})
    return [scheme for scheme in results.manifest["schemes"] if scheme not in own]


def _scenario_file(results: Results) -> str:
    return f"{results.manifest['scenario_name']}.toml"


def _plan(results: Results) -> dict[str, Any]:
    """Returns the plan of the sweep, in the format of a plan file."""
    manifest = results.manifest
    seeds = list(manifest["seeds"])
    plan: dict[str, Any] = {
        "scenario": _scenario_file(results),
        "schemes": _in_plans(results),
        "seeds": len(seeds) if seeds == list(range(1, len(seeds) + 1)) else seeds,
    }
    swept = dict(manifest["over"])
    for keys in manifest["together"]:
        plan.setdefault("over", {})[", ".join(keys)] = [
            list(values) for values in zip(*(swept.pop(key) for key in keys), strict=True)
        ]
    if swept:
        plan["over"] = {**plan.get("over", {}), **swept}
    if manifest["set"]:
        plan["set"] = dict(manifest["set"])
    if manifest["precision"]:
        plan["until"] = manifest["precision"]
        # The stopping rule has the maximum number of seeds.
        del plan["seeds"]
    return plan


def _sweep(results: Results) -> Recipe:
    manifest = results.manifest
    about = (
        f"With {_scenario_file(results)} and {_PLAN} from above in one folder, and version {manifest['version']} of "
        f"anabranch, built from commit {manifest['commit']}:"
    )
    lines = [about]
    if own := manifest.get("own_schemes"):
        lines.append(f"Schemes in Python are in no plan: {', '.join(own)}.")
    return Recipe("The results", tuple(lines), f"anabranch sweep {_PLAN} --out results\n")


def _figures(code: Sequence[str]) -> Recipe:
    lines = ["import anabranch", "", 'results = anabranch.Results.read("results")', *code]
    return Recipe("The figures, in Python", (), "\n".join(lines) + "\n")


def _run(results: Results, wanted: RunKey) -> Recipe:
    settings = [*map(tuple, results.manifest["set"]), *wanted.point]
    words = ["anabranch", "run", _scenario_file(results), "--schemes", wanted.scheme, "--seeds", f"{wanted.seed},"]
    for key, value in settings:
        words += ["--set", f"{key}={value_text(value)}"]
    command = shlex.join([*words, "--trace", "traces"])
    return Recipe("A run of the timeline", (), f"{command}\nanabranch explain traces\nanabranch report traces\n")
