"""Writes reports."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.errors import ReportError
from anabranch.reporting.choice import Choice, parse
from anabranch.reporting.content import Page
from anabranch.reporting.progress import Progress
from anabranch.reporting.traces_page import page_of_traces, trace_folders

if TYPE_CHECKING:
    from anabranch.results import Results

REPORT_FILE = "report.html"


class ReportWarning(UserWarning):
    """Something in a report is not as it should be; the report says so at its top."""


@dataclass(frozen=True, slots=True)
class Written:
    """A report that was written, and what is to be said of it beside that: the warnings at its top."""

    path: Path
    warnings: tuple[str, ...]


def report(
    source: Results | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    timeline: Sequence[str] = (),
    seed: int | None = None,
    title: str | None = None,
    quiet: bool = True,
) -> Path:
    """Writes a report as one HTML file that loads nothing, and gives its path.

    `source` is a `Results`, a folder that `anabranch sweep` or `Results.write` has written, or one with the traces of
    runs. `out` is the file; `report.html` in the folder if it is left out. `timeline` names runs for the timeline, each
    as `SCHEME[@KEY=VALUE,...]`, where KEY may be `seed`: for results, they are run again, with `seed` if they name none
    (default: the first). There is room for 40. Without it these are all schemes of the first point, and of traces all
    runs, up to ten. `quiet=False` shows progress on a terminal.

    The same source gives the same bytes. The file is replaced as a whole or not at all.

    Raises `ReportError` if there is nothing to report or the file cannot be written, `ChoiceError` (a `ReportError`)
    for runs that are not there, `ResultsError` and `TraceError` for files that are missing or damaged. Warns with
    `ReportWarning` of what the report warns of, such as runs of the timeline that are not the same when made again.

        anabranch.report("out/losses", timeline=["cmt-pf@path.path-2.loss=0.02"])
    """
    written = write_report(source, out, timeline, seed, title, Progress(quiet=quiet))
    for warning in written.warnings:
        warnings.warn(warning, ReportWarning, stacklevel=2)
    return written.path


def write_report(
    source: Results | str | os.PathLike[str],
    out: str | os.PathLike[str] | None,
    timeline: Sequence[str],
    seed: int | None,
    title: str | None,
    progress: Progress,
) -> Written:
    """As `report`, and gives the warnings."""
    choices = [parse(text) for text in timeline]
    target = _target(source, out)
    return write_page(_page(source, choices, seed, title, progress), target)


def write_page(page: Page, target: Path) -> Written:
    """Writes a page, as a whole or not at all. Raises `ReportError` if it cannot be written."""
    _write(target, _render(page))
    return Written(target, page.warnings)


def _page(
    source: Results | str | os.PathLike[str],
    choices: Sequence[Choice],
    seed: int | None,
    title: str | None,
    progress: Progress,
) -> Page:
    from anabranch.reporting.results_page import page_of_results
    from anabranch.results import Results

    if isinstance(source, Results):
        return page_of_results(source, choices, seed, title, progress)
    folder = Path(source)
    if not folder.is_dir():
        raise ReportError(f"{folder}: there is no such folder")
    if (folder / "manifest.json").exists() or any(folder.glob("*.parquet")):
        return page_of_results(Results.read(folder), choices, seed, title, progress)
    if trace_folders(folder):
        return page_of_traces(folder, choices, seed, title, progress)
    raise ReportError(
        f"{folder}: has neither results nor traces; `anabranch sweep --out DIR` writes results, "
        "`anabranch run --trace DIR` traces"
    )


def _target(source: Results | str | os.PathLike[str], out: str | os.PathLike[str] | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(source, (str, os.PathLike)):
        return Path(source) / REPORT_FILE
    raise ReportError("out= has to name the file, as results that were not read from a folder have none")


def _render(page: Page) -> str:
    from anabranch.reporting.page import render

    return render(page)


def _write(target: Path, text: str) -> None:
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(target)
    except OSError as error:
        raise ReportError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            beside.unlink()
