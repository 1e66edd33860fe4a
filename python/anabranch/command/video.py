"""`anabranch video`: makes clips, encodes them for a sender, and evaluates arrivals."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command import video_compare, video_live
from anabranch.command.parser import Parser
from anabranch.command.quantities import size_bytes
from anabranch.command.video_values import deadline_ms, frame_rate, frame_size, whole_number

if TYPE_CHECKING:
    from anabranch.video.coded import CodedClip
    from anabranch.video.evaluation import Evaluation
    from anabranch.video.user_clip import ReadOptions


_STATUS = "exit status: 0 done, 1 a file cannot be read, decoded or written, 2 wrong command line, 130 Ctrl-C"
_EXAMPLES = f"""\
Examples:
  Encode the clip of photographs, and print its frames and packets:
    anabranch video encode photographs --frames 300 --out out/photographs
  Encode a clip of your own:
    anabranch video encode highway_qcif.yuv --out out/highway
  Compare schemes over two simulated paths, as a table and as a page:
    anabranch video compare out/highway --paths rate=2Mbit,delay=20ms,loss=2% rate=1Mbit,delay=60ms,loss=5% \\
        --schemes sctp,cmt,cmt-qa --out out/compared
  Send it to a player on another machine, over all available paths:
    anabranch video play --out out/played
    anabranch video send out/highway player.example --deadline 150ms
  Rate the received video of two schemes, with 150 ms from sending to playout:
    anabranch video evaluate out/highway --arrivals cmt=cmt.csv --arrivals cmt-qa=cmt-qa.csv --deadline 150ms \\
        --out out/quality

{_STATUS}
"""
_CLIP_EXAMPLES = f"""\
Examples:
  anabranch video clip photographs --out photographs.y4m
  anabranch video clip synthetic --frames 300 --size 352x288 --out synthetic.y4m

{_STATUS}
"""
_ENCODE_EXAMPLES = f"""\
Examples:
  anabranch video encode photographs --out out/photographs
  anabranch video encode holiday.mp4 --scale 176x144 --frames 2000 --out out/holiday
  anabranch video encode highway.yuv --size 176x144 --rate 30 --out out/highway

{_STATUS}
"""
_EVALUATE_EXAMPLES = f"""\
Examples:
  anabranch video evaluate out/photographs --arrivals cmt.csv --deadline 150ms --out out/quality
  anabranch video evaluate out/photographs --arrivals cmt=a.parquet --arrivals cmt-qa=b.parquet --deadline 0.3s \\
      --against sent --no-pictures --json --out out/quality

A file of arrivals has the columns packet (the number in packets.csv) and arrival_ms (the time since the first frame was
handed to the sender). Packets that the file does not list count as lost.

{_STATUS}
"""


def main(arguments: list[str]) -> int:
    """Runs the command, and returns its exit status. `command.dispatch` handles errors."""
    options = _parser().parse_args(arguments)
    return int(options.run(options))


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch video",
        description="Real-time video: makes clips, encodes them as MPEG-4 with I, P and B frames, and computes the "
        "fate of each frame and the quality of the shown video. Needs pip install 'anabranch[video]'.",
        epilog=_EXAMPLES,
    )
    commands = parser.add_subparsers(title="Commands", required=True, metavar="COMMAND")
    _add_clip(commands)
    _add_encode(commands)
    _add_evaluate(commands)
    video_live.add_send(commands)
    video_live.add_play(commands)
    video_compare.add_compare(commands)
    return parser


def _add_clip(commands: Any) -> None:
    parser = commands.add_parser(
        "clip",
        help="write a clip as raw frames",
        description="Writes a clip as YUV4MPEG2, which most players and encoders read. Nothing is downloaded.",
        epilog=_CLIP_EXAMPLES,
    )
    _add_source(parser)
    parser.add_argument("--out", metavar="FILE.y4m", type=Path, required=True, help="the file to write")
    parser.set_defaults(run=_clip)


def _add_encode(commands: Any) -> None:
    parser = commands.add_parser(
        "encode",
        help="encode a clip: bitstream, frame trace and packets",
        description="Encodes a clip as MPEG-4 part 2, and writes the bitstream, the trace of its frames and packets "
        "for a sender, and a manifest with hashes. The same clip and encoder give the same bytes.",
        epilog=_ENCODE_EXAMPLES,
    )
    _add_source(parser)
    add = parser.add_argument
    add("--out", metavar="DIR", type=Path, required=True, help="the folder to write")
    add("--gop", metavar="N", type=whole_number, default=9, help="frames from one I frame to the next [default: 9]")
    add("--b-frames", metavar="N", type=whole_number, default=2, help="B frames between references [default: 2]")
    add("--quantiser", metavar="Q", type=whole_number, default=8, help="1 (best) to 31, for all frames [default: 8]")
    add("--payload", metavar="SIZE", type=size_bytes, default=1452, help="most data in a packet [default: 1452]")
    add("--json", action="store_true", help="print the manifest in place of the summary")
    parser.set_defaults(run=_encode)


def _add_source(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("clip", metavar="CLIP", help="photographs, synthetic, or a file: .yuv, .y4m or any format that ffmpeg reads")
    add(
        "--frames",
        metavar="N",
        type=whole_number,
        help="the first N frames [default: 2000 of a computed clip, all of a file]",
    )
    add(
        "--size",
        metavar="WxH",
        type=frame_size,
        help="size of a computed clip or a .yuv file [default: 176x144, or by its name]",
    )
    add(
        "--rate", metavar="R", type=frame_rate, help="frames a second, as 30 or 30000/1001 [default: the file's, or 30]"
    )
    add("--scale", metavar="WxH", type=frame_size, help="scale a file to this size")
    add("-q", "--quiet", action="store_true", help="no progress, and no output except with --json")


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="fate of each frame, and PSNR, SSIM, VQM and VMAF of the shown video",
        description="Computes from the arrivals of packets which frames can be shown, shows the last good frame in "
        "place of the others, and compares the result with the source. Writes summary.json, frames.parquet, stills and "
        "a clip for each run.",
        epilog=_EVALUATE_EXAMPLES,
    )
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="what `anabranch video encode --out DIR` wrote")
    add(
        "--arrivals",
        metavar="[NAME=]FILE",
        action="append",
        required=True,
        help="arrival times of packets, .csv or .parquet; can be repeated; NAME is by default the name of the file",
    )
    add("--deadline", metavar="TIME", type=deadline_ms, required=True, help="from sending to playout, as 150ms or 0.3s")
    add("--out", metavar="DIR", type=Path, required=True, help="the folder to write")
    add(
        "--against",
        choices=("source", "sent"),
        default="source",
        help="reference of quality: the source, or the encoded clip [default: source]",
    )
    add("--no-pictures", dest="pictures", action="store_false", help="write no stills and no clips")
    add("--json", action="store_true", help="print the summary as JSON in place of the table")
    add("-q", "--quiet", action="store_true", help="no progress, and no output except with --json")
    parser.set_defaults(run=_evaluate)


def _reading(options: argparse.Namespace) -> ReadOptions:
    from anabranch.video.user_clip import ReadOptions

    return ReadOptions(options.frames, options.size, options.rate, options.scale)


def _clip(options: argparse.Namespace) -> int:
    import tempfile

    from anabranch.video.clips import as_y4m, make_clip

    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder, _progress(options, _computed(options)) as step:
        made = make_clip(options.clip, Path(folder) / "clip.yuv", _reading(options), step)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("wb") as file:
            file.writelines(as_y4m(made))
    if not options.quiet:
        print(options.out)
    return 0


def _encode(options: argparse.Namespace) -> int:
    from anabranch.video.coded import write_coded
    from anabranch.video.encoder import Coding

    coding = Coding(options.gop, options.b_frames, options.quantiser)
    with _progress(options, _computed(options)) as step:
        clip = write_coded(
            options.clip,
            options.out,
            reading=_reading(options),
            coding=coding,
            payload_bytes=options.payload,
            step=step,
        )
    if options.json:
        print(json.dumps(dict(clip.manifest), indent=2))
    elif not options.quiet:
        print(_described(clip))
    return 0


def _described(clip: CodedClip) -> str:
    manifest = clip.manifest
    frames = ", ".join(f"{count} {kind}" for kind, count in manifest["frames_by_type"].items())
    packets = ", ".join(f"{count} of {kind}" for kind, count in manifest["packets_by_type"].items())
    return (
        f"{clip.folder}: {frames} frames of {clip.source.format.size}; {manifest['packets']} packets: {packets}\n"
        f"{manifest['bitstream_bytes']} bytes, SHA-256 {manifest['bitstream_sha256']}"
    )


def _evaluate(options: argparse.Namespace) -> int:
    from anabranch.video.coded import read_coded
    from anabranch.video.evaluation import RunArrivals, evaluate, steps
    from anabranch.video.outcome import as_text, summary, write_outcome

    runs = [RunArrivals(*_named(text)) for text in options.arrivals]
    clip = read_coded(options.folder)
    options.out.mkdir(parents=True, exist_ok=True)
    with _progress(options, steps(runs), "run") as step:
        evaluation = evaluate(
            clip,
            runs,
            options.deadline,
            against=options.against,
            pictures=options.out if options.pictures else None,
            step=step,
        )
    write_outcome(evaluation, options.out)
    _warn(evaluation, options.pictures)
    if options.json:
        print(json.dumps(summary(evaluation), indent=2))
    elif not options.quiet:
        print(as_text(evaluation))
    return 0


def _named(text: str) -> tuple[str, Path]:
    """Returns the label and the file. A file whose name has an equals sign needs a label before it."""
    label, equals, file = text.partition("=")
    return (label, Path(file)) if equals else (Path(text).stem, Path(text))


def _warn(evaluation: Evaluation, pictures: bool) -> None:
    from anabranch.video.outcome import NOTHING_DECODABLE
    from anabranch.video.stills import MAX_COLUMNS

    for run in evaluation.runs:
        if run.quality is None:
            print(f"anabranch video: {run.label}: {NOTHING_DECODABLE}", file=sys.stderr)
    if pictures and len(evaluation.runs) >= MAX_COLUMNS:
        print(f"anabranch video: the stills show the first {MAX_COLUMNS - 1} runs", file=sys.stderr)


def _computed(options: argparse.Namespace) -> int:
    """Returns the number of frames to compute, which takes time; 0 for a file, which is read at once."""
    from anabranch.video.clips import DEFAULT_FRAMES, SOURCES

    return (options.frames or DEFAULT_FRAMES) if options.clip in SOURCES else 0


def _progress(options: argparse.Namespace, total: int, unit: str = "frame") -> Any:
    from anabranch.reporting.progress import Progress

    return Progress(quiet=options.quiet, name="video").bar(total, unit)
