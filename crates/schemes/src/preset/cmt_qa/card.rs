//! Documentation card of `cmt-qa`.

use crate::definition::{Card, Choice};
use crate::loss::missing_reports::TEXT_HAS_FOUR_REPORTS;
use crate::preset::cmt_qa::data_distribution::formulas;
use crate::preset::cmt_qa::path_quality::{group, sampling};
use crate::preset::cmt_qa::{data_distribution, least_delay, path_quality, quality_aware, random_loss};

pub(super) const CARD: Card = Card {
    summary: &[
        "Each path has its own queue. The time per byte of a path is measured from entering the queue to the SACK,",
        "and new data is bound to the path that is predicted to deliver it first. A path with losses at shorter",
        "intervals than its time-out gets none. A loss while the window is within the measured limit counts as",
        "random and does not reduce it. Lost chunks are retransmitted on the path with the lowest delay, and",
        "a path that timed out is used again when it answers a HEARTBEAT.",
    ],
    equations: &[
        group::RULES,
        sampling::RULES,
        path_quality::RULES,
        formulas::RULES,
        data_distribution::RULES,
        random_loss::RULES,
        least_delay::RULES,
        quality_aware::RULES,
    ],
    choices: &[CHOICES],
};

const CHOICES: &[Choice] = &[
    Choice {
        question: "What is the unit of Q, and which values are better?",
        answer: "Seconds per byte, and smaller is better, although the text calls it a rate: Q cwnd is a time in equation 9, \
                 and rtt / cwnd is compared with it.",
        parameter: "",
    },
    Choice {
        question: "What is the group of chunks that equation 1 measures?",
        answer: "All chunks that enter a path's queue between two updates of Q, as far as they are acknowledged by the second: \
                 the section requires intervals longer than a round trip, and a window is acknowledged in about one. A group \
                 ends early when all of it is acknowledged, so that a pause of the application does not count as slowness.",
        parameter: "group",
    },
    Choice {
        question: "Which value of the confidence interval counts?",
        answer: "Its upper end. With few samples the lower one is negative, and a path would be withdrawn without evidence.",
        parameter: "bound",
    },
    Choice {
        question: "What are the three heartbeat intervals of the initial sample?",
        answer: "Three round-trip times. Three times HB.interval would be 90 s, nearly the whole of a run of 100 s.",
        parameter: "initial-sample",
    },
    Choice {
        question: "Line 16 of Algorithm 1 has no word between its two causes of loss. What is the effect of a second lost \
                   chunk?",
        answer: "Either cause counts, as in the text. A further chunk of the same window ends no sample: it was sent, and \
                 perhaps lost, before the start of the time that it would end. Without a transmission since the previous \
                 loss, there is no sample.",
        parameter: "loss-unit",
    },
    Choice {
        question: "With what is the interval compared?",
        answer: "With the current RTO, as printed. Since RTO is at least a second, a path that carries 100 packets per second \
                 reaches the limit at 1 % of loss. `unclamped` omits the minimum and the back-off.",
        parameter: "inactive-below",
    },
    Choice {
        question: "How many samples does a judgement of a path require?",
        answer: "Two, including the first measured one: the initial sample contains no information about losses.",
        parameter: "judge-after",
    },
    Choice {
        question: "What happens if no path is left?",
        answer: "If every active path is marked, all of them are used, since data needs a path.",
        parameter: "",
    },
    Choice {
        question: "When does a path that was marked because of its interval return?",
        answer: "After an answered HEARTBEAT, as a path that timed out. The next loss judges it again, with all samples.",
        parameter: "readmit",
    },
    Choice {
        question: "How long is an interval if the samples give less than a round-trip time?",
        answer: "A round-trip time: according to the section, a shorter one cannot be distinguished from chance.",
        parameter: "",
    },
    Choice {
        question: "Algorithm 2 taken at D_i = 0 has k = 0 and T_i = 0 for every path, and adds nothing if cwnd is one MTU.",
        answer: "k is that of D_i and the chunk to be placed: \"the next dispatched data\" of line 13.",
        parameter: "",
    },
    Choice {
        question: "Is data assigned by the chunk or by the round?",
        answer: "By the round, cwnd + (k - 1) MTU, as in line 20. Since all data of a round has the same T_i, the two differ \
                 only if figures change within a round.",
        parameter: "piece",
    },
    Choice {
        question: "When is D_i reset?",
        answer: "With each period, to the data that still waits in the path's queue: P_d and T_i refer to one period.",
        parameter: "distributed",
    },
    Choice {
        question: "D_max limits the data of a period, but is not in Algorithm 2. When is it computed?",
        answer: "For each chunk. If it were computed once, a period would carry one free window of each path, and a fast path \
                 could not get the P_d / T_handle windows of the text. Without it, the whole peer's window is bound at once.",
        parameter: "d-max",
    },
    Choice {
        question: "Whose room does D_max count, and how much data may wait in a path's queue?",
        answer: "A path's own: it gets data while its window has room for more than is outstanding or bound. The text \
                 describes a term of equation 7 as the data that may be transmitted on that path, limits a path's data by \
                 that path's cwnd as well as by D_max (after Algorithm 2), and never mentions binding data to a full path. \
                 `clamped` lets data wait for a full path, but does not subtract it from the room of others; `pooled` \
                 subtracts it from the common room; `rounds` lets as much wait as the period has rounds for.",
        parameter: "queue",
    },
    Choice {
        question: "Section 4 gives each path a part of the send buffer, sized by its current capacity. How large is that part?",
        answer: "No part is defined, since it would have no effect: ns-2's send buffer is unlimited unless a script sets it, \
                 and the publication has no size. Each path has its own queue, which is the division that equation 1 needs. \
                 The section prints no formula; D_max limits the bytes of a path by its window.",
        parameter: "",
    },
    Choice {
        question: "Which paths have close capabilities?",
        answer: "All active paths, since there is no criterion.",
        parameter: "closeness",
    },
    Choice {
        question: "What happens to queued data when conditions change?",
        answer: "It stays, since the publication removes no data from a path's buffer, unless its path leaves service or is \
                 withdrawn: then it is assigned again.",
        parameter: "replan",
    },
    Choice {
        question: "What is Q before the first measurement?",
        answer: "SRTT / cwnd, a window for each round trip; without a round-trip time RTO / cwnd.",
        parameter: "pqem",
    },
    Choice {
        question: "What happens if all data is delivered before the period ends?",
        answer: "The next one begins, since a wait would have no benefit.",
        parameter: "",
    },
    Choice {
        question: "Which of several paths with the same T_i is chosen?",
        answer: "The first one, by line 15.",
        parameter: "",
    },
    Choice {
        question: "Algorithm 3 as printed reduces the window after the test has not reduced it. What is meant?",
        answer: "The reductions are the other branch, as in the text.",
        parameter: "algorithm-3",
    },
    Choice {
        question: "When are losses consecutive?",
        answer: "When another one is detected on the path within SRTT. It reduces the window even if it is in the same window, \
                 of which other controls process one loss.",
        parameter: "consecutive",
    },
    Choice {
        question: "Can a time-out be a random loss?",
        answer: "No: according to the section, time-outs indicate failures, and gap reports random losses.",
        parameter: "excuse-t3",
    },
    Choice {
        question: "Which round-trip time is rtt_i?",
        answer: "The smoothed one. In a steady state Q is close to rtt / cwnd, so that the test is near its threshold in \
                 either case.",
        parameter: "loss-rtt",
    },
    Choice {
        question: "What is the transfer delay of a path?",
        answer: "SRTT / 2: one way through the network. Paths without room are skipped, because the chunk is to be sent as \
                 soon as possible.",
        parameter: "delay, await-room",
    },
    Choice {
        question: "What is the inactive status of a path that timed out?",
        answer: "Potentially failed: no data, and a HEARTBEAT at each RTO until one is answered. Without another path the one \
                 with the fewest errors is used. When it answers, its window is still the one packet after the time-out; \
                 `cmt-pf` sets two.",
        parameter: "",
    },
    Choice {
        question: "Section 6: after the SACK for the retransmitted data, DDS continues over the rest of the paths. Does DDS \
                   stop until then?",
        answer: "No. Retransmissions are sent first, and new data follows in the same period. The rest of the paths are those \
                 that are still active, since a path that timed out gets no data. A stop of all paths from each loss to its \
                 SACK would take at least a round trip, and Algorithms 2 and 3 have no line for it.",
        parameter: "",
    },
    TEXT_HAS_FOUR_REPORTS,
];
