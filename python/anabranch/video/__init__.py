"""Quality of real-time video: clips, their coding, the fate of each frame, and the quality of the shown pictures.

    clip = video.write_coded("photographs", Path("out/photographs"))
    evaluation = video.evaluate(clip, [video.RunArrivals("cmt", Path("cmt.csv"))], deadline_ms=150)
    print(evaluation.runs[0].quality.mean("psnr_db"))

Needs `pip install 'anabranch[video]'`. Functions on frames and packets alone, such as `deliveries`, need no more.
"""

from __future__ import annotations

from anabranch.video.arrivals import read_arrivals, write_arrivals
from anabranch.video.clip_cache import cached_clip
from anabranch.video.coded import CodedClip, read_coded, write_coded
from anabranch.video.encoder import Coding
from anabranch.video.evaluation import EvaluatedRun, Evaluation, RunArrivals, evaluate
from anabranch.video.evalvid import read_evalvid
from anabranch.video.fates import Delivery, Fate, Playout, deliveries
from anabranch.video.frame import Frame, FrameType
from anabranch.video.measures import DeliveryMeasures, delivery_measures
from anabranch.video.metrics import Quality, quality
from anabranch.video.packets import Packet, packetise
from anabranch.video.trace import read_frame_trace, write_frame_trace
from anabranch.video.user_clip import ReadOptions

__all__ = [
    "CodedClip",
    "Coding",
    "Delivery",
    "DeliveryMeasures",
    "EvaluatedRun",
    "Evaluation",
    "Fate",
    "Frame",
    "FrameType",
    "Packet",
    "Playout",
    "Quality",
    "ReadOptions",
    "RunArrivals",
    "cached_clip",
    "deliveries",
    "delivery_measures",
    "evaluate",
    "packetise",
    "quality",
    "read_arrivals",
    "read_coded",
    "read_evalvid",
    "read_frame_trace",
    "write_arrivals",
    "write_coded",
    "write_frame_trace",
]
