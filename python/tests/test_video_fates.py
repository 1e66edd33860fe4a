"""Fates of frames: the dependency rule on hand-made groups, deadlines, and measures of delivery."""

from __future__ import annotations

import numpy as np
import pytest
from video_support import (
    CODING_ORDER,
    DEADLINE_MS,
    arrivals_of,
    decodable_by_neighbours,
    delivered,
    fates_without,
    frames_of,
    letters,
)

from anabranch.errors import VideoError
from anabranch.video.fates import Fate, Playout, deliveries
from anabranch.video.frame import FrameType, display_order
from anabranch.video.measures import delivery_measures
from anabranch.video.packets import packetise

FRAMES = len(CODING_ORDER)


def test_display_order_puts_a_reference_after_its_b_frames() -> None:
    kinds = [FrameType(kind) for kind in CODING_ORDER]
    assert display_order(kinds) == [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11, 15, 13, 14, 18, 16, 17]


def test_without_loss_all_frames_are_good() -> None:
    assert fates_without(CODING_ORDER, []) == "g" * FRAMES


def test_a_lost_b_frame_costs_itself_only() -> None:
    assert fates_without(CODING_ORDER, [4]) == "gggg" + "l" + "g" * (FRAMES - 5)


def test_lost_p_frame_breaks_b_frames_before_and_frames_until_next_i() -> None:
    #                                          I012P45P78I
    assert fates_without(CODING_ORDER, [3]) == "guuluuuuug" + "g" * (FRAMES - 10)


def test_a_lost_last_p_frame_costs_the_b_frames_on_both_sides() -> None:
    assert fates_without(CODING_ORDER, [6]) == "gggguuluug" + "g" * (FRAMES - 10)


def test_lost_i_frame_breaks_its_group_and_last_b_frames_before() -> None:
    #                                          IBBPBBPBBIBBPBBPBBI
    assert fates_without(CODING_ORDER, [9]) == "ggggggguuluuuuuuuug"


def test_a_lost_first_frame_costs_its_group() -> None:
    assert fates_without(CODING_ORDER, [0]) == "luuuuuuuug" + "g" * (FRAMES - 10)


def test_a_lost_last_frame_of_the_clip_costs_the_b_frames_before_it() -> None:
    assert fates_without(CODING_ORDER, [FRAMES - 1]) == "g" * (FRAMES - 3) + "uul"


def test_b_frames_at_a_group_boundary_need_no_frames_after_the_next_i() -> None:
    assert fates_without(CODING_ORDER, [12]) == "g" * 10 + "uuluuuuug"


def test_a_frame_that_is_lost_and_has_lost_references_is_lost() -> None:
    assert fates_without(CODING_ORDER, [3, 4])[3:5] == "ll"


def test_a_b_frame_before_two_references_is_not_decodable() -> None:
    assert fates_without("IBBPBB", []) == "uugggg"


def test_stream_without_b_frames_breaks_from_loss_to_next_i_frame() -> None:
    assert fates_without("IPPPIPPP", [2]) == "gglugggg"


@pytest.mark.parametrize("seed", range(40))
def test_the_rule_agrees_with_a_walk_through_the_predictions(seed: int) -> None:
    random = np.random.default_rng(seed)
    types = "".join(random.choice(["IPBBPBBIBB", "IBB", "PBB", "P", "I"]) for _ in range(12))
    frames = frames_of("IP" + types)
    lost = {int(number) for number in np.flatnonzero(random.random(len(frames)) < 0.15)}
    there = {frame.display for frame in frames if frame.number not in lost}
    found = delivered(frames, arrivals_of(frames, packetise(frames), lost))
    good = {each.frame.display for each in found if each.fate is Fate.GOOD}
    assert good == decodable_by_neighbours(frames, there)
    assert {each.frame.display for each in found if each.fate is Fate.LOST} == set(range(len(frames))) - there


def test_one_lost_packet_of_several_loses_the_frame() -> None:
    frames = frames_of("IPBB", size_bytes=3000)
    packets = packetise(frames)
    assert [packet.frame for packet in packets] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    found = deliveries(frames, packets, arrivals_of(frames, packets, [7]), Playout.of(DEADLINE_MS))
    assert letters(found) == "glgg"
    assert [each.complete_ms is None for each in found] == [False, False, True, False]


def test_the_last_packet_to_arrive_decides_whether_a_frame_is_late() -> None:
    frames = frames_of("I", size_bytes=3000)
    packets = packetise(frames)
    playout = Playout.of(DEADLINE_MS)
    on_time = deliveries(frames, packets, {0: 100.0, 1: 1.0, 2: 2.0}, playout)
    assert (letters(on_time), on_time[0].delay_ms) == ("g", 100.0)
    assert letters(deliveries(frames, packets, {0: 1.0, 1: 100.001, 2: 2.0}, playout)) == "t"


def test_frames_that_need_a_late_frame_are_undecodable() -> None:
    frames = frames_of(CODING_ORDER)
    arrivals = arrivals_of(frames, packetise(frames))
    number = next(frame.number for frame in frames if frame.display == 6)
    arrivals[number] += 10_000
    assert letters(delivered(frames, arrivals)) == "gggguutuug" + "g" * (FRAMES - 10)


def test_every_frame_has_at_least_the_deadline_and_b_frames_have_no_more() -> None:
    frames = frames_of(CODING_ORDER)
    playout = Playout.of(DEADLINE_MS)
    due_ms = playout.due_ms(frames)
    left_ms = {frame.display: round(due - frame.time_ms) for frame, due in zip(frames, due_ms, strict=True)}
    assert min(left_ms.values()) == DEADLINE_MS
    for frame in frames:
        if frame.type is FrameType.B:
            assert left_ms[frame.display] == DEADLINE_MS
    # A P frame is sent before the two B frames that are displayed before it.
    assert left_ms[3] == DEADLINE_MS + 100
    assert left_ms[0] == DEADLINE_MS + 33


@pytest.mark.parametrize("deadline_ms", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_invalid_deadline_is_refused(deadline_ms: float) -> None:
    with pytest.raises(VideoError, match=r"a deadline of .* ms: give one above 0"):
        Playout.of(deadline_ms)


def test_measures_count_frames_by_type_and_fate() -> None:
    frames = frames_of(CODING_ORDER)
    lost = [frame.number for frame in frames if frame.display in (6, 13)]
    measures = delivery_measures(delivered(frames, arrivals_of(frames, packetise(frames), lost)))
    assert measures.frames == FRAMES
    assert measures.fates[FrameType.P][Fate.LOST] == 1
    assert measures.fates[FrameType.B] == {Fate.GOOD: 7, Fate.LOST: 1, Fate.LATE: 0, Fate.UNDECODABLE: 4}
    assert [measures.dropped(kind) for kind in FrameType] == [0, 1, 5]
    assert measures.decodable_ratio == (FRAMES - 6) / FRAMES


def test_stalls_are_stretches_of_frames_that_are_not_shown() -> None:
    frames = frames_of(CODING_ORDER)
    lost = [frame.number for frame in frames if frame.display in (6, 13)]
    measures = delivery_measures(delivered(frames, arrivals_of(frames, packetise(frames), lost)))
    # Frames 4 to 8, and 13.
    found = (measures.stalls, measures.stall_s, measures.longest_stall_s)
    assert found == pytest.approx((2, 6 / 30, 5 / 30), abs=2e-6)


def test_delays_count_complete_frames_and_use_nearest_rank() -> None:
    frames = frames_of("IPPPPPPPPP")
    arrivals = {frame.number: frame.time_ms + 10.0 * (frame.number + 1) for frame in frames}
    del arrivals[9]
    delays = delivery_measures(delivered(frames, arrivals)).delays
    assert delays is not None
    assert delays.frames == 9
    assert delays.mean_ms == pytest.approx(50)
    assert delays.largest_ms == pytest.approx(90)
    assert delays.percentiles_ms[50] == pytest.approx(50)
    assert delays.percentiles_ms[99] == pytest.approx(90)


def test_with_everything_lost_there_are_no_delays() -> None:
    frames = frames_of(CODING_ORDER)
    measures = delivery_measures(delivered(frames, {}))
    assert measures.delays is None
    assert measures.decodable_ratio == 0
    assert (measures.stalls, measures.stall_s) == pytest.approx((1, FRAMES / 30), abs=2e-6)
