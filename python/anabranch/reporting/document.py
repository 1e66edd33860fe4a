"""Writer of reports."""

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
    """Warning about a problem in a report. The top of the report shows it, too."""


@dataclass(frozen=True, slots=True)
class Written:
    """Report that was written, with the warnings at its top."""

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
    """Writes a report as one HTML file that loads nothing, and returns its path.

    `source` is a `Results`, a folder that `anabranch sweep` or `Results.write` has written, or a folder with the traces
    of runs. `out` is the file (default: `report.html` in the folder). `timeline` names runs for the timeline, each as
    `SCHEME[@KEY=VALUE,...]`, where KEY may be `seed`. For results they are run again, with `seed` if they name none
    (default: the first). At most 40 are shown. By default the timeline has all schemes of the first point, or all
    traced runs, up to ten. `quiet=False` shows progress on a terminal.

    The same source gives the same bytes. The file is replaced atomically.

    Raises `ReportError` if there is nothing to report or the file cannot be written, `ChoiceError` (a `ReportError`)
    for runs that do not exist, `ResultsError` and `TraceError` for files that are missing or damaged. Issues a
    `ReportWarning` for each warning of the report, for example if a repeated run of the timeline gives other results.

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
    """Writes a report as `report` does. Returns the path and the warnings."""
    choices = [parse(text) for text in timeline]
    target = _target(source, out)
    return write_page(_page(source, choices, seed, title, progress), target)


def write_page(page: Page, target: Path) -> Written:
    """Writes a page atomically. Raises `ReportError` if it cannot be written."""
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
        raise ReportError(f"{folder}: no such folder")
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
