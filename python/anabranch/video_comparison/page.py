"""Comparison as one HTML page that loads nothing: table, quality over time, fates, and the clips as received.

The template escapes text from users and scenarios. Data for the script are in elements that are no scripts. The
Content-Security-Policy allows only the page's own script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from anabranch.html import templates
from anabranch.reporting.palette import DARK, LIGHT, readable
from anabranch.version import engine
from anabranch.video.browser_clip import write_browser_clip
from anabranch.video.evaluation import SENT
from anabranch.video.fates import Fate
from anabranch.video.metrics import METRICS, Metric, Quality
from anabranch.video.rebuild import rebuild
from anabranch.video_comparison import panels
from anabranch.video_comparison.comparison import FIGURES, ComparedRun, Comparison, Detail, Figure
from anabranch.video_comparison.outcome import cell, cell_of_coding

PAGE = "comparison.html"
# Clips are text in the page. A larger page would be too large for mail and slow to open.
MAX_CLIP_BYTES = 64 << 20
_METRIC_TITLES: Mapping[Metric, str] = {
    "psnr_db": "PSNR, dB",
    "ssim": "SSIM",
    "vqm": "VQM, lower is better",
    "vmaf": "VMAF",
}
_METRIC_DIGITS: Mapping[Metric, int] = {"psnr_db": 2, "ssim": 4, "vqm": 3, "vmaf": 1}
# Groups of figures that fit the width of a page.
_TABLES = {
    "Shown frames": ("decodable_percent", *METRICS, "stalls", "stall_s", "longest_stall_s"),
    "Fates of frames": (
        *("not_shown_I", "not_shown_P", "not_shown_B", "lost", "late", "undecodable", "delay_p95_ms", "abandoned"),
    ),
}
# Colours that differ in lightness, too. The bars of the strip also differ in height.
_COLOURS = {
    "good": "#86b0ef",
    "undecodable": "#6b4fb3",
    "late": "#e8a000",
    "lost": "#b00020",
    "area": "#8fa9c4",
    "dropped": "#b45309",
}
_ABOUT_FATES = {
    Fate.GOOD: "shown",
    Fate.UNDECODABLE: "a frame that it is predicted from is not good",
    Fate.LATE: "complete after its playout",
    Fate.LOST: "a packet did not arrive",
}


@dataclass(frozen=True)
class Table:
    """Some figures of all schemes."""

    title: str
    columns: Sequence[Figure]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Clip:
    """Clip of the page, and its frames in the format of the script."""

    label: str
    about: str
    data: str
    frames: Mapping[str, Any]


@dataclass(frozen=True)
class PathPanel:
    """Path in a run."""

    name: str
    about: str
    drawing: Markup


@dataclass(frozen=True)
class Lane:
    """Run over time."""

    scheme: str
    about: str
    paths: list[PathPanel]
    qualities: list[tuple[Metric, str, str, Markup]]
    fates: Markup


@dataclass(frozen=True)
class Settings:
    """Description of the comparison in the page."""

    title: str
    command: str
    scenario: str
    facts: Sequence[tuple[str, str]]


def write_page(
    comparison: Comparison, out: Path, work: Path, settings: Settings, step: Callable[[], object]
) -> list[str]:
    """Writes the page, and returns notes on omitted content. `work` is a folder for clips.

    `step` is called after each clip.

    Raises `VideoError` and `OSError`.
    """
    shown = [(run, run.detail) for run in comparison.runs if run.detail is not None]
    clips, notes = _clips(comparison, shown, work, step)
    script = _file("page.js")
    text = (
        templates("anabranch.video_comparison", "page")
        .get_template("page.html")
        .render(
            settings=settings,
            comparison=comparison,
            seed=shown[0][0].run.seed if shown else None,
            answer=answer(comparison),
            warnings=[*comparison.warnings, *notes],
            tables=[_table(comparison, title, names) for title, names in _TABLES.items()],
            fates=_ABOUT_FATES,
            metrics=_METRIC_TITLES,
            clips=clips,
            lanes=_lanes(comparison, shown),
            ticks=list(panels.ticks(comparison.clip.source.count, comparison.clip.source.format)),
            data=_data(comparison, clips),
            style=Markup(_style() + _file("page.css")),
            script=Markup(script),
            policy=_policy(script),
            version=engine().version,
        )
    )
    beside = out.with_name(f".{out.name}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(out)
    return notes


def _times(comparison: Comparison) -> dict[str, list[float]]:
    """Returns the time of each frame and the end of the last one in seconds, if the clip's rate varies."""
    source = comparison.clip.source
    if source.format.times_us is None:
        return {}
    return {"times": [round(source.format.time_ms(place) / 1000, 6) for place in range(source.count + 1)]}


def _rate(comparison: Comparison) -> float:
    return float(comparison.clip.source.format.rate)


def _file(name: str) -> str:
    return resources.files("anabranch.video_comparison").joinpath("page", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; media-src blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _style() -> str:
    """Returns all colours on light and on dark paper."""

    def declared(paper: Mapping[str, str]) -> str:
        own = [f"--{name}: {colour};" for name, colour in paper.items() if name not in _COLOURS]
        drawn = [f"--{name}: {readable(colour, paper['paper'], paper['ink'])};" for name, colour in _COLOURS.items()]
        return " ".join([*own, *drawn])

    return (
        f":root {{ {declared(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {declared(DARK)} }} }}\n"
    )


def answer(comparison: Comparison) -> list[str]:
    """Returns a sentence for each scheme but the first: how many more frames it shows, under the same seeds."""
    baseline = comparison.schemes[0]
    own = comparison.estimates(baseline)["decodable_percent"]
    sentences = [f"{baseline} shows {own.mean:.1f} % of the frames."]
    for scheme, difference in comparison.differences(baseline, "decodable_percent"):
        if difference.kind == "interval" and difference.low <= 0 <= difference.high:
            sentences.append(f"{difference.n} seeds are too few to decide whether {scheme} shows more frames.")
        elif difference.kind == "none":
            sentences.append(f"{scheme} has no seed in common with it.")
        elif difference.mean == 0:
            sentences.append(f"{scheme} shows as many.")
        else:
            margin = f" ± {difference.half_width:.1f}" if difference.kind == "interval" else ""
            word = "more" if difference.mean > 0 else "fewer"
            sentences.append(f"{scheme} shows {abs(difference.mean):.1f}{margin} percentage points {word}.")
    return sentences


def _table(comparison: Comparison, title: str, names: Sequence[str]) -> Table:
    columns = [figure for name in names for figure in FIGURES if figure.name == name]
    rows = [[SENT, *(cell_of_coding(comparison, figure) for figure in columns)]]
    for scheme in comparison.schemes:
        estimates = comparison.estimates(scheme)
        rows.append([scheme, *(cell(estimates[figure.name], figure) for figure in columns)])
    return Table(title, columns, rows)


def _clips(
    comparison: Comparison, shown: Sequence[tuple[ComparedRun, Detail]], work: Path, step: Callable[[], object]
) -> tuple[list[Clip], list[str]]:
    """Returns the clip as sent and one for each run, up to the size limit, with notes."""
    count = comparison.decoded.count
    wanted: list[tuple[str, str, Sequence[int | None], Quality | None, str]] = [
        (SENT, "the clip as it left the encoder", range(count), comparison.coding, "g" * count)
    ]
    for run, detail in shown:
        about = f"as received with seed {run.run.seed}"
        wanted.append((run.run.scheme, about, detail.shown, detail.quality, _letters(detail)))
    clips: list[Clip] = []
    notes: list[str] = []
    size_bytes = 0
    for label, about, frames, judged, letters in wanted:
        path = work / "clip.mp4"
        write_browser_clip(rebuild(comparison.decoded, frames, work / "shown.yuv"), path)
        size_bytes += path.stat().st_size
        step()
        if size_bytes > MAX_CLIP_BYTES:
            notes.append(f"The clips from {label} on are left out: a page has {MAX_CLIP_BYTES >> 20} MiB of them.")
            break
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        clips.append(Clip(label, about, data, _frames(frames, letters, judged)))
    return clips, notes


def _letters(detail: Detail) -> str:
    """Returns the first letters of fates in the order of display; `t` stands for late."""
    letter = {Fate.GOOD: "g", Fate.LOST: "l", Fate.LATE: "t", Fate.UNDECODABLE: "u"}
    return "".join(letter[fate] for fate in _fates(detail))


def _fates(detail: Detail) -> list[Fate]:
    return [each.fate for each in sorted(detail.deliveries, key=lambda each: each.frame.display)]


def _frames(shown: Sequence[int | None], letters: str, judged: Quality | None) -> dict[str, Any]:
    values = {} if judged is None else {
        metric: [round(float(value), _METRIC_DIGITS[metric]) for value in judged.frames[metric]] for metric in METRICS
    }  # fmt: skip
    return {"fates": letters, "shown": [-1 if each is None else each for each in shown], "values": values}


def _data(comparison: Comparison, clips: Sequence[Clip]) -> Markup:
    """Returns the data of the script, in a form that cannot end its element."""
    frames = sorted(comparison.clip.frames, key=lambda frame: frame.display)
    content = {
        "rate": _rate(comparison),
        **_times(comparison),
        "frames": comparison.clip.source.count,
        "types": "".join(frame.type.value for frame in frames),
        "clips": [{"label": clip.label, **clip.frames} for clip in clips],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(text)


def _lanes(comparison: Comparison, shown: Sequence[tuple[ComparedRun, Detail]]) -> list[Lane]:
    scales = _quality_scales(comparison, shown)
    shape, count = comparison.clip.source.format, comparison.clip.source.count
    fastest = [value for run, _ in shown for path in run.run.timeline["paths"].values() for value in path["kbps"]]
    path_scale = panels.scale_of(fastest, from_zero=True)
    lanes: list[Lane] = []
    for run, detail in shown:
        timeline = run.run.timeline
        paths = [
            PathPanel(name, _path_about(path), panels.path_panel(path, timeline, count, shape, path_scale))
            for name, path in timeline["paths"].items()
        ]
        qualities = [] if detail.quality is None else [
            (metric, title, _range(scales[metric], metric),
             panels.quality_panel(detail.quality.frames[metric], scales[metric]))
            for metric, title in _METRIC_TITLES.items()
        ]  # fmt: skip
        lanes.append(Lane(run.run.scheme, _lane_about(run), paths, qualities, panels.fate_strip(_fates(detail))))
    return lanes


def _quality_scales(comparison: Comparison, shown: Sequence[tuple[ComparedRun, Detail]]) -> dict[Metric, panels.Scale]:
    """Returns one scale of each metric for all runs, so that they are comparable."""
    judged = [comparison.coding, *(detail.quality for _, detail in shown if detail.quality is not None)]
    return {
        metric: panels.scale_of([float(end(each.frames[metric])) for each in judged for end in (min, max)])
        for metric in METRICS
    }


def _range(scale: panels.Scale, metric: Metric) -> str:
    digits = min(_METRIC_DIGITS[metric], 2)
    return f"{scale.low:.{digits}f} to {scale.high:.{digits}f}"


def _path_about(path: Mapping[str, Any]) -> str:
    return f"up to {max(path['kbps'], default=0):.0f} kbit/s, {sum(path['dropped'])} dropped"


def _lane_about(run: ComparedRun) -> str:
    figures = run.figures
    quality = f", PSNR {figures['psnr_db']:.2f} dB" if run.has_picture else ", nothing to see"
    stalls = "1 stall" if figures["stalls"] == 1 else f"{figures['stalls']:.0f} stalls"
    return f"{figures['decodable_percent']:.1f} % shown, {stalls}{quality}"
