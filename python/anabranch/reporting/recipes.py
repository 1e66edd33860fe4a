"""How to make results, their figures and their report again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tomli_w

from anabranch.reporting.content import Document, Recipe
from anabranch.reporting.points import value_text
from anabranch.reporting.rerun import Wanted

if TYPE_CHECKING:
    from anabranch.results import Results

_PLAN = "plan.toml"


def documents_of(results: Results) -> tuple[Document, ...]:
    """What the sweep was made from, and what that means in full."""
    manifest = results.manifest
    return (
        Document(f"{_scenario_file(results)}: the scenario as it was given", manifest["source"]),
        Document(f"{_PLAN}: what was swept", tomli_w.dumps(_plan(results))),
        Document("The scenario with every default in it", manifest["scenario"]),
    )


def recipes_of(results: Results, wanted: Sequence[Wanted], figures: Sequence[str]) -> tuple[Recipe, ...]:
    """Commands and lines of Python for results, figures, a run of the timeline and the report."""
    if not wanted:
        return (_figures(figures),)
    return (_sweep(results), _figures(figures), _run(results, wanted[0]), _report(wanted))


def _scenario_file(results: Results) -> str:
    return f"{results.manifest['scenario_name']}.toml"


def _plan(results: Results) -> dict[str, Any]:
    """The plan of the sweep, as a plan file has it."""
    manifest = results.manifest
    seeds = list(manifest["seeds"])
    plan: dict[str, Any] = {
        "scenario": _scenario_file(results),
        "schemes": [scheme for scheme in manifest["schemes"] if scheme not in manifest.get("own_schemes", {})],
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
        # The rule itself says how many there are at the most.
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


def _run(results: Results, wanted: Wanted) -> Recipe:
    settings = [*map(tuple, results.manifest["set"]), *wanted.point]
    words = ["anabranch", "run", _scenario_file(results), "--schemes", wanted.scheme, "--seeds", f"{wanted.seed},"]
    for key, value in settings:
        words += ["--set", f"{key}={value_text(value)}"]
    command = shlex.join([*words, "--trace", "traces"])
    return Recipe("A run of the timeline", (), f"{command}\nanabranch explain traces\nanabranch report traces\n")


def _report(wanted: Sequence[Wanted]) -> Recipe:
    words = ["anabranch", "report", "results", "--seed", str(wanted[0].seed)]
    for run in wanted:
        words += ["--timeline", _choice(run)]
    return Recipe("This report", (), f"{shlex.join(words)}\n")


def _choice(run: Wanted) -> str:
    at = ",".join(f"{key}={value_text(value)}" for key, value in run.point)
    return f"{run.scheme}@{at}" if at else run.scheme
