"""Text files with a byte order mark, which some editors write at the beginning, are read like others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from studies.bounds.points import DATA as POINTS
from studies.bounds.points import read_points
from written_traces import path_row, write_trace

from anabranch.experiments.fields import read_toml
from anabranch.experiments.limits.known import Broken, read_known, write_known
from anabranch.reporting.qlog.logs import read_logs
from anabranch.scenario import Scenario
from anabranch.series import read_trace as read_series
from anabranch.sweeps.plan import read_plan
from anabranch.text_file import BYTE_ORDER_MARK
from anabranch.video.evalvid import read_evalvid
from anabranch.video.trace import read_frame_trace

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path(__file__).parent / "data" / "qlog"
FRAMES = b"number,type,size_bytes,time_ms\n0,I,900,0\n1,P,100,33.333\n"


def known(folder: Path) -> bytes:
    write_known(folder / "known.json", [Broken("cmt", "one-link", "a")])
    return (folder / "known.json").read_bytes()


@pytest.mark.parametrize(
    ("read", "name", "content"),
    [
        (Scenario.read, "two-path.toml", (ROOT / "scenarios/two-path.toml").read_bytes()),
        (read_plan, "plan.toml", b'scenario = "two-path.toml"\n[over]\nscheme = ["cmt"]\n'),
        (read_points, "points.toml", POINTS.read_bytes()),
        (read_toml, "claims.toml", b'title = "Claims"\n'),
        (read_frame_trace, "trace.csv", FRAMES),
        (read_evalvid, "st.txt", b"1\tH\t29\t1\t0.000\n2\tI\t900\t1\t0.000\n3\tP\t100\t1\t33.333\n"),
        (read_known, "known.json", None),
        (lambda file: len(read_logs([file]).connections), "one.sqlog", (LOGS / "quic-go.sqlog").read_bytes()),
    ],
    ids=["scenario", "plan", "points", "claims", "frames", "evalvid", "known", "qlog"],
)
def test_byte_order_mark_changes_no_input(
    read: Callable[[Path], object], name: str, content: bytes | None, tmp_path: Path
) -> None:
    content = known(tmp_path) if content is None else content
    for folder in ("plain", "marked"):
        (tmp_path / folder).mkdir()
    (tmp_path / "plain" / name).write_bytes(content)
    (tmp_path / "marked" / name).write_bytes(BYTE_ORDER_MARK + content)
    plain, marked = read(tmp_path / "plain" / name), read(tmp_path / "marked" / name)
    assert repr(marked).replace("marked", "plain") == repr(plain)


def test_byte_order_marks_change_no_trace(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "trace", paths=[path_row(0.5)])
    plain = read_series(folder)
    for name in ("run.toml", "result.json"):
        file = folder / name
        file.write_bytes(BYTE_ORDER_MARK + file.read_bytes())
    marked = read_series(folder)
    assert (marked.manifest, marked.end_s) == (plain.manifest, plain.end_s)
