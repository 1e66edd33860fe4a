"""Columns of the three tables. The book defines each figure (chapter "Figures of a run")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from anabranch.results import Table
from anabranch.values import Value, kind

RUN_FIGURES = pa.schema(
    [
        pa.field("profile", pa.string(), nullable=False),
        pa.field("goodput_kbps", pa.float64(), nullable=False),
        pa.field("duration_s", pa.float64(), nullable=False),
        pa.field("retransmissions", pa.int64(), nullable=False),
        pa.field("timeouts", pa.int64(), nullable=False),
        pa.field("heartbeat_timeouts", pa.int64(), nullable=False),
        pa.field("fast_retransmits", pa.int64(), nullable=False),
        pa.field("spurious_retransmissions", pa.int64(), nullable=False),
        pa.field("peak_reorder_bytes", pa.int64(), nullable=False),
        pa.field("rwnd_blocked_s", pa.float64(), nullable=False),
        # Null if there is only one flow.
        pa.field("jain_index", pa.float64()),
        # Text; null if the run succeeded.
        pa.field("failure", pa.string()),
    ]
)

PATH_FIGURES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("data_packets", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("drops", pa.int64(), nullable=False),
        pa.field("sent_packets", pa.int64(), nullable=False),
        pa.field("share", pa.float64(), nullable=False),
    ]
)

FLOW_FIGURES = pa.schema(
    [
        pa.field("flow", pa.string(), nullable=False),
        pa.field("flow_scheme", pa.string(), nullable=False),
        pa.field("goodput_kbps", pa.float64(), nullable=False),
        pa.field("delivered_bytes", pa.int64(), nullable=False),
        # Only for transfers.
        pa.field("transfer_s", pa.float64()),
        pa.field("intact", pa.bool_()),
        pa.field("failure", pa.string()),
    ]
)

DELIVERY_FIGURES = pa.schema(
    [
        # Only for flows with a limit.
        pa.field("abandoned_messages", pa.int64()),
        # Only for videos.
        pa.field("frames", pa.int64()),
        pa.field("frames_not_due", pa.int64()),
        pa.field("dropped_i_frames", pa.int64()),
        pa.field("dropped_p_frames", pa.int64()),
        pa.field("dropped_b_frames", pa.int64()),
        # Lost or late, decodable or not.
        pa.field("missing_i_frames", pa.int64()),
        pa.field("missing_p_frames", pa.int64()),
        pa.field("missing_b_frames", pa.int64()),
        pa.field("lost_frames", pa.int64()),
        pa.field("late_frames", pa.int64()),
        pa.field("undecodable_frames", pa.int64()),
        pa.field("decodable_frame_ratio", pa.float64()),
        pa.field("stalls", pa.int64()),
        pa.field("stall_s", pa.float64()),
        pa.field("longest_stall_s", pa.float64()),
        pa.field("frame_delay_mean_ms", pa.float64()),
        pa.field("frame_delay_p50_ms", pa.float64()),
        pa.field("frame_delay_p95_ms", pa.float64()),
        pa.field("frame_delay_p99_ms", pa.float64()),
        # Counts of frames with the first letter of their fate, in the order of display.
        pa.field("frame_fates", pa.string()),
    ]
)
"""Columns of table `flows` that earlier versions did not write."""

FLOW_FIGURES = pa.schema([*FLOW_FIGURES, *DELIVERY_FIGURES])

FIGURES: dict[Table, pa.Schema] = {"runs": RUN_FIGURES, "paths": PATH_FIGURES, "flows": FLOW_FIGURES}

_ARROW = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}


def schema(table: Table, over: Mapping[str, Sequence[Value]]) -> pa.Schema:
    """Returns all columns of a table: the run's key, a column for each swept key, scheme, seed, and the figures."""
    swept = [pa.field(key, _ARROW[kind(values)], nullable=False) for key, values in over.items()]
    return pa.schema(
        [
            pa.field("run", pa.string(), nullable=False),
            *swept,
            pa.field("scheme", pa.string(), nullable=False),
            pa.field("seed", pa.int64(), nullable=False),
            *FIGURES[table],
        ]
    )
