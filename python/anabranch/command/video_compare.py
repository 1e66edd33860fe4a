"""`anabranch video compare`: compares schemes by the quality that a viewer sees, in simulated runs of one clip."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command.status import INPUT_ERROR, INTERRUPTED
from anabranch.command.video_values import deadline_ms, whole_number
from anabranch.errors import SchemeError, SweepError, VideoError

if TYPE_CHECKING:
    from anabranch.scenario import Scenario
    from anabranch.sweeps.grid import Grid
    from anabranch.video.coded import CodedClip
    from anabranch.video.reliability import Reliability
    from anabranch.video_comparison.comparison import Comparison
    from anabranch.video_comparison.page import Settings
    from anabranch.video_comparison.runs import Runs

# The figures of each run are kept in memory, and the tables have a row for it.
MAX_RUNS = 1000
_DEFAULT_DEADLINE_MS = 150.0
_CLIP = "clip"

_EXAMPLES = """\
Examples:
  Two paths, three schemes, ten seeds:
    anabranch video compare photographs --paths rate=2Mbit,delay=20ms,loss=2% rate=1Mbit,delay=60ms,loss=5% \\
        --schemes sctp,cmt,cmt-qa --out out/compared
  A clip that was encoded before, the paths of a scenario, and limits by type of frame:
    anabranch video compare out/highway --scenario scenarios/two-path.toml --seeds 20 --deadline 300ms \\
        --reliability I=full --reliability retransmissions:2 --out out/compared

A path has the form of a link of `anabranch relay`. Without `reverse`, both directions are equal. The folder stores
finished runs: the same command continues from there, and another command performs only runs that are missing.
exit status: 0 done, 1 a file cannot be read, decoded or written, 2 wrong command line, path or scheme, 130 Ctrl-C
"""


def add_compare(commands: Any) -> None:
    """Adds the command `compare`."""
    parser = commands.add_parser(
        "compare",
        help="compare schemes over simulated paths by video quality",
        description="Sends a clip over simulated paths with each scheme and seed, and writes a table of frames by "
        "fate, stalls, PSNR, SSIM, VQM and VMAF with intervals over seeds, and a page with quality over time, stills "
        "and the clips as received.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "clip",
        metavar="CLIP|DIR",
        help="a folder of `anabranch video encode --out DIR`, or a clip, which is encoded first",
    )
    add(
        "--paths",
        metavar="PATH",
        nargs="+",
        help="paths such as rate=2Mbit,delay=20ms,loss=2%%,queue=50p, the first of which is the primary one",
    )
    add("--scenario", metavar="FILE", type=Path, help="take paths and settings of a scenario in place of --paths")
    add("--schemes", metavar="LIST", default="sctp,cmt,cmt-pf", help="[default: sctp,cmt,cmt-pf]")
    add("--seeds", metavar="N|LIST", default="10", help="seeds: 10 means 1 to 10; 3,7,10-12 is a list [default: 10]")
    add("--deadline", metavar="TIME", type=deadline_ms, default=_DEFAULT_DEADLINE_MS, help="[default: 150ms]")
    add(
        "--reliability",
        metavar="[TYPE=]LIMIT",
        action="append",
        default=[],
        help="full, lifetime:TIME, retransmissions:N or priority:N, of all frames or of those of one type; can be "
        "repeated [default: a lifetime equal to the deadline]",
    )
    add("--frames", metavar="N", type=whole_number, help="the first N frames of a clip that is encoded first")
    add("--against", choices=("source", "sent"), default="source", help="reference of quality [default: source]")
    add("--show-seed", metavar="N", type=whole_number, help="the seed whose runs the page shows [default: the first]")
    add("--out", metavar="DIR", type=Path, required=True, help="the folder to write")
    add("--no-page", dest="page", action="store_false", help="write tables only")
    add("--json", action="store_true", help="print the summary as JSON in place of the table")
    add("-q", "--quiet", action="store_true", help="no progress, and no output except with --json")
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    if bool(options.paths) == (options.scenario is not None):
        print("error: give the network with --paths or --scenario", file=sys.stderr)
        return INPUT_ERROR
    from anabranch.video.reliability import read_reliability
    from anabranch.video_comparison.runs import Runs

    try:
        base, name = _base(options)
        seeds = _seeds(options)
    except (SweepError, VideoError) as error:
        return _input_error(error)
    try:
        reliability = read_reliability(options.reliability, options.deadline)
    except VideoError as error:
        return _input_error(f"--reliability: {error}")
    clip = _clip(options)
    scenario = _scenario(options, clip, base, name, reliability)
    try:
        grid = _grid(options, scenario, seeds)
    except SweepError as error:
        return _input_error(error)
    runs = Runs(grid, clip, options.out)
    runs.resume()
    try:
        with _progress(options, len(runs), "run", len(runs.finished)) as bar:
            runs.make(bar.update)
        with tempfile.TemporaryDirectory(prefix="anabranch-") as work:
            comparison = _judged(options, clip, runs, Path(work))
            _write(options, comparison, scenario, Path(work))
    except KeyboardInterrupt:
        from anabranch.sweeps.resuming import finished_text, resume_text

        finished = finished_text(len(runs.finished), len(runs))
        print(f"interrupted: {resume_text(finished, options.out, 'command')}", file=sys.stderr)
        return INTERRUPTED
    return 0


def _input_error(error: object) -> int:
    print(f"error: {error}", file=sys.stderr)
    return INPUT_ERROR


def _base(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Returns the table of a scenario with paths, and its name in messages."""
    from anabranch.scenario import load
    from anabranch.video_comparison.setting import paths_of

    if options.scenario is not None:
        return load(options.scenario).to_table(), str(options.scenario)
    return {"path": paths_of(options.paths)}, "--paths"


def _clip(options: argparse.Namespace) -> CodedClip:
    from anabranch.video.coded import MANIFEST, read_coded, write_coded
    from anabranch.video.user_clip import ReadOptions

    if Path(options.clip, MANIFEST).exists():
        if options.frames is not None:
            raise VideoError(f"{options.clip}: is encoded already: leave --frames out, or encode fewer frames")
        return read_coded(Path(options.clip))
    return write_coded(options.clip, options.out / _CLIP, reading=ReadOptions(frames=options.frames))


def _scenario(
    options: argparse.Namespace, clip: CodedClip, base: dict[str, Any], name: str, reliability: Reliability
) -> Scenario:
    from anabranch.video.fates import Playout
    from anabranch.video_comparison.setting import scenario_of

    Playout.of(options.deadline)
    return scenario_of(clip, base, options.deadline, reliability, name)


def _seeds(options: argparse.Namespace) -> list[int]:
    from anabranch.sweeps.seeds import parse_seeds, read_seeds

    try:
        seeds = read_seeds(parse_seeds(options.seeds), None) or []
    except SweepError as error:
        raise SweepError(f"--seeds: {error}") from error
    if options.show_seed is not None and options.show_seed not in seeds:
        raise SweepError(f"--show-seed {options.show_seed}: is none of the seeds of --seeds {options.seeds}")
    return seeds


def _grid(options: argparse.Namespace, scenario: Scenario, seeds: list[int]) -> Grid:
    from anabranch.sweeps.steps import read_grid

    try:
        schemes = scenario.native.schemes_of(options.schemes)
    except SchemeError as error:
        raise SweepError(f"--schemes: {error}") from error
    if len(schemes) * len(seeds) > MAX_RUNS:
        raise SweepError(f"{len(schemes) * len(seeds)} runs are more than {MAX_RUNS}: give fewer --schemes or --seeds")
    return read_grid(scenario, {"scheme": [options.schemes]}, seeds, None, None)


def _judged(options: argparse.Namespace, clip: CodedClip, runs: Runs, work: Path) -> Comparison:
    from anabranch.video_comparison.comparison import PAIRS, compare
    from anabranch.video_comparison.outcome import warnings_of
    from anabranch.video_comparison.runs import failures

    made = runs.in_order()
    with _progress(options, 0, "frame") as bar:
        comparison = compare(
            clip,
            made,
            options.deadline,
            work,
            shown_seed=made[0].seed if options.show_seed is None else options.show_seed,
            against=options.against,
            cache=options.out / PAIRS,
            step=_total(bar),
        )
    comparison.warnings.extend([*failures(made), *warnings_of(comparison)])
    return comparison


def _write(options: argparse.Namespace, comparison: Comparison, scenario: Scenario, work: Path) -> None:
    from anabranch.video_comparison.outcome import as_text, summary, write_comparison
    from anabranch.video_comparison.page import PAGE, write_page

    settings = {"command": _command(options), "scenario": scenario.to_toml()}
    write_comparison(comparison, options.out, settings)
    if options.page:
        with _progress(options, 1 + len(comparison.schemes), "clip") as bar:
            notes = write_page(
                comparison, options.out / PAGE, work, _page_settings(options, comparison, scenario), bar.update
            )
        for note in notes:
            print(f"anabranch video: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps(summary(comparison, settings), indent=2))
    elif not options.quiet:
        print(as_text(comparison))
        if options.page:
            print(f"\n{options.out / PAGE}")


def _command(options: argparse.Namespace) -> str:
    """Returns the command line that repeats the comparison."""
    words = ["anabranch", "video", "compare", options.clip]
    words += ["--paths", *options.paths] if options.paths else ["--scenario", str(options.scenario)]
    words += ["--schemes", options.schemes, "--seeds", options.seeds, "--deadline", f"{options.deadline:g}ms"]
    for limit in options.reliability:
        words += ["--reliability", limit]
    if options.frames is not None:
        words += ["--frames", str(options.frames)]
    return shlex.join([*words, "--against", options.against, "--out", str(options.out)])


def _page_settings(options: argparse.Namespace, comparison: Comparison, scenario: Scenario) -> Settings:
    from anabranch.video.reliability import read_reliability
    from anabranch.video_comparison.page import Settings

    clip = comparison.clip
    manifest, shape = clip.manifest, clip.source.format
    limits = read_reliability(options.reliability, options.deadline)
    facts = [
        ("Clip", f"{manifest.get('clip')}: {clip.source.count} frames of {shape.size}, {float(shape.rate):g} a second"),
        (
            "Bitstream",
            f"{len(clip.stream)} bytes in {len(clip.packets)} packets, SHA-256 {manifest['bitstream_sha256']}",
        ),
        ("Encoder", str(manifest.get("encoder"))),
        ("Deadline", f"{comparison.deadline_ms:g} ms"),
        ("Reliability", ", ".join(f"{kind.value}: {limit}" for kind, limit in limits.items())),
        ("Seeds", ", ".join(map(str, comparison.seeds))),
        ("Quality against", "the source" if comparison.against == "source" else "the clip as sent"),
    ]
    title = f"{manifest.get('clip')}: {', '.join(comparison.schemes)}"
    return Settings(title, _command(options), scenario.to_toml(), facts)


def _progress(options: argparse.Namespace, total: int, unit: str, begun: int = 0) -> Any:
    from tqdm import tqdm

    # With None, tqdm shows the bar on a terminal only.
    disabled = True if options.quiet else None
    shown = {"desc": "video", "disable": disabled, "leave": False, "dynamic_ncols": True, "initial": begun}
    return tqdm(total=total, unit=unit, **shown)


def _total(bar: Any) -> Callable[[int, int], object]:
    def step(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return step
