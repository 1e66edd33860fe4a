"""Output of `anabranch sweep` at its end."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path

from anabranch.counting import counted
from anabranch.results import TABLES, Results
from anabranch.results.files import MANIFEST, file_name
from anabranch.sweeps.cache import Cache
from anabranch.sweeps.summary import as_table, summarise

# Maximum number of rows of a table or list that is printed.
_ROWS_SHOWN = 60


def failures(results: Results) -> list[str]:
    """Returns the failures of runs as text."""
    return [failure for failure in results.runs["failure"].to_pylist() if failure is not None]


def as_json(results: Results, out: Path) -> str:
    """Returns one object: the place of the files, the cost of the sweep, and goodput for each point and scheme."""
    points = [
        {
            **dict(zip(results.over, row.point, strict=True)),
            "scheme": row.scheme,
            "n": row.n,
            "goodput_kbps": row.mean,
            "half_width_kbps": row.half_width,
        }
        for row in summarise(results)
    ]
    taken = asdict(results.effort) if results.effort else {}
    head = {"out": str(out), "runs": results.runs.num_rows, "failed": len(failures(results))}
    return json.dumps({**head, **taken, "points": points}, ensure_ascii=False)


def as_text(results: Results, out: Path, cache: Cache | None) -> str:
    """Returns a table of goodput with notes."""
    rows = summarise(results)
    cells = [[*map(str, row.point), row.scheme, str(row.n), row.in_words] for row in rows]
    header = [*results.over, "scheme", "n", "goodput kbit/s"]
    right = [*(True for _ in results.over), False, True, True]
    lines = list(as_table(header, cells[:_ROWS_SHOWN], right))
    if len(cells) > _ROWS_SHOWN:
        lines.append(f"and {len(cells) - _ROWS_SHOWN} more rows")
    lines.append("")
    if any(row.half_width is not None for row in rows):
        lines.append("± is the 95 % confidence interval of the mean, by Student's t")
    files = [*(file_name(table) for table in TABLES), MANIFEST]
    return "\n".join([*lines, *_notes(results, cache), f"written to {shlex.quote(str(out))}: {', '.join(files)}"])


def _notes(results: Results, cache: Cache | None) -> list[str]:
    notes: list[str] = []
    if effort := results.effort:
        found = f"{effort.cached} from the cache in {cache.folder}" if cache else "no cache"
        notes.append(f"{counted(results.runs.num_rows, 'run')}: {effort.computed} computed, {found}")
        if effort.resumed:
            notes.append(f"{counted(effort.resumed, 'run')} from the same sweep, which had been interrupted")
        if effort.uncached:
            reasons = "; ".join(effort.uncached_reasons)
            notes.append(f"{counted(effort.uncached, 'run is', 'runs are')} not in the cache: {reasons}")
        if effort.unstored:
            notes.append(f"{counted(effort.unstored, 'run')} could not be written to the cache")
        if effort.overhead is not None:
            notes.append(f"{counted(effort.units, 'unit')} of work, with an overhead of {effort.overhead:.1%}")
        notes += [
            f"less exact than requested, with the maximum number of seeds: {cell}"
            for cell in effort.capped[:_ROWS_SHOWN]
        ]
        if len(effort.capped) > _ROWS_SHOWN:
            notes.append(f"and {len(effort.capped) - _ROWS_SHOWN} more")
    if failed := failures(results):
        notes.append(f"{counted(len(failed), 'run')} failed, the first: {failed[0]}")
    return notes
