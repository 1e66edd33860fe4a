"""Files with the results of studies, in docs/results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch.experiments.pages.document import Block, Folded, Items, Paragraph, Table
from anabranch.experiments.stored import About, read_compact, write_compact

FORMAT = "anabranch study 1"


def write_study(file: Path, about: About, content: Mapping[str, Any]) -> None:
    """Writes results as a file that `read_study` reads."""
    write_compact(file, {"format": FORMAT, "about": about, **content})


def read_study(results: Path, name: str) -> dict[str, Any]:
    """Reads the stored results of a study. Raises `ExperimentError` if they cannot be read."""
    file = results / f"{name}.json.xz"
    return read_compact(file, FORMAT, f"make study NAME={name} ARGS='--store {file}'")


def block_json(block: Block) -> dict[str, Any]:
    """Returns a block as JSON has it."""
    match block:
        case Table():
            return {"header": list(block.header), "rows": [list(row) for row in block.rows], "right": [*block.right]}
        case Paragraph():
            return {"text": block.text}
        case Items():
            return {"items": list(block.items)}
        case Folded():
            return {"summary": block.summary, "block": block_json(block.block)}
    raise TypeError(f"{type(block).__name__} cannot be stored")


def block_of(content: Mapping[str, Any]) -> Block:
    if "text" in content:
        return Paragraph(content["text"])
    if "items" in content:
        return Items(content["items"])
    if "summary" in content:
        return Folded(content["summary"], block_of(content["block"]))
    return Table(content["header"], content["rows"], frozenset(content["right"]))
