"""Traces written by hand, in place of those of runs that are hard to produce."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

PATH_HEADER = (
    "time_s,flow,path,state,cwnd_bytes,ssthresh_bytes,outstanding_bytes,lost_unsent_bytes,partial_bytes_acked,"
    "srtt_ms,rttvar_ms,rto_ms,error_count,peer_window_bytes,queued_bytes"
)
DECISION_HEADER = (
    "time_s,flow,decision,path,tsn,detail,reason,figure,value,refused,"
    "cwnd_before_bytes,cwnd_bytes,ssthresh_before_bytes,ssthresh_bytes"
)
PACKET_HEADER = "time_s,flow,direction,path,event,tsn,chunk_bytes"
QUEUE_HEADER = "time_s,link,queue_packets,queue_bytes"


def path_row(time_s: float, path: str = "path-1", cwnd_bytes: int = 4380, flow: str = "flow-1") -> str:
    """Returns a row of `FLOW-paths.csv`."""
    return f"{time_s:.9f},{flow},{path},Active,{cwnd_bytes},65536,0,0,0,,,1000.000,0,65536,0"


def decision_row(time_s: float, decision: str, path: str = "", tsn: str = "", detail: str = "") -> str:
    """Returns a row of `FLOW-decisions.csv`."""
    return f'{time_s:.9f},flow-1,{decision},{path},{tsn},{detail},"because, so",,,,,,,'


def packet_row(time_s: float, event: str, tsn: int, path: str = "path-1", direction: str = "forward") -> str:
    """Returns a row of `packets.csv`, of a chunk of 1000 bytes."""
    return f"{time_s:.9f},flow-1,{direction},{path},{event},{tsn},1000"


def write_trace(
    folder: Path,
    *,
    paths: Sequence[str] = (),
    decisions: Sequence[str] = (),
    packets: Sequence[str] = (),
    queues: Sequence[str] = (),
    path_names: Sequence[str] = ("path-1", "path-2"),
    ended_s: float | None = 1.0,
    **manifest: Any,
) -> Path:
    """Writes the trace of a run with the forward flow `flow-1`. If `ended_s` is not given, the run did not end."""
    folder.mkdir(parents=True, exist_ok=True)
    sender = {"name": "flow-1", "flow": "flow-1", "direction": "forward", "scheme": "cmt", "paths": list(path_names)}
    sender |= {"start_s": 0.0, "lost_counts_until_resent": False}
    about = {"format": 2, "version": "0.1.0", "scheme": "cmt", "seed": 1, "profile": "rfc9260", "sender": [sender]}
    (folder / "run.toml").write_text(tomli_w.dumps({**about, **manifest}))
    tables = {
        "flow-1-paths.csv": [PATH_HEADER, *paths],
        "flow-1-decisions.csv": [DECISION_HEADER, *decisions],
        "packets.csv": [PACKET_HEADER, *packets],
        "queues.csv": [QUEUE_HEADER, *queues],
    }
    for name, rows in tables.items():
        (folder / name).write_text("".join(f"{row}\n" for row in rows))
    if ended_s is not None:
        sizes = {name: (folder / name).stat().st_size for name in tables}
        (folder / "result.json").write_text(json.dumps({"ended_s": ended_s, "file_bytes": sizes, "result": {}}))
    return folder
