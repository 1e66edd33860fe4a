//! Documentation card of `cmt-qa`.

use crate::definition::{Card, Choice};
use crate::loss::missing_reports::TEXT_HAS_FOUR_REPORTS;
use crate::preset::cmt_qa::data_distribution::formulas;
use crate::preset::cmt_qa::path_quality::{group, sampling};
use crate::preset::cmt_qa::{data_distribution, least_delay, path_quality, quality_aware, random_loss};

pub(super) const CARD: Card = Card {
    summary: &[
        "Each path has a queue of its own. How long the path takes for a byte is measured from entering the",
        "queue to the SACK, and new data is bound to the path that is predicted to deliver it first. A path",
        "that loses something before a time-out would show it gets none. A loss while the window is within",
        "what was measured counts as random and leaves it; what is lost is retransmitted on the path with the",
        "least delay, and a path that timed out serves again when it answers a HEARTBEAT.",
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
        question: "In what unit is Q, and is large good?",
        answer: "Seconds per byte, and small is good, although the text calls it a rate: Q cwnd is a time in equation 9, and \
                 rtt / cwnd is compared with it.",
        parameter: "",
    },
    Choice {
        question: "What is the group of chunks that equation 1 measures?",
        answer: "All that enters a path's queue between two updates of Q, as far as it has left by the second: the section asks \
                 for intervals longer than a round trip, and a window's worth passes in about one. A group ends early when all \
                 of it has left, so that a pause of the application does not count as slowness.",
        parameter: "group",
    },
    Choice {
        question: "Which value of the confidence interval is meant?",
        answer: "Its upper end. With few samples the lower one is negative, and a path would be given up on no evidence.",
        parameter: "bound",
    },
    Choice {
        question: "What are the three heartbeat intervals of the initial sample?",
        answer: "Three round-trip times. Three times HB.interval are 90 s, nearly the whole of a run of 100 s.",
        parameter: "initial-sample",
    },
    Choice {
        question: "Line 16 of Algorithm 1 has no word between its two causes of loss. What does a second lost chunk do?",
        answer: "Either cause, as the text says. A further chunk of the same window ends no sample: it was sent, and perhaps \
                 lost, before the time began that it would end. If nothing was sent since the loss before, there is no sample.",
        parameter: "loss-unit",
    },
    Choice {
        question: "What is the interval held against?",
        answer: "The RTO in force, as printed. Since RTO is at least a second, a path that carries 100 packets a second is then \
                 at the limit with 1 % of loss. `unclamped` leaves out the least value and the back-off.",
        parameter: "inactive-below",
    },
    Choice {
        question: "From how many samples on is a path judged?",
        answer: "From two on, that is, from the first that was measured: the initial one says nothing about losses.",
        parameter: "judge-after",
    },
    Choice {
        question: "What if no path is left?",
        answer: "If every active path is marked, all of them are used: data has to go somewhere.",
        parameter: "",
    },
    Choice {
        question: "What brings back a path that was marked because of its interval?",
        answer: "An answered HEARTBEAT, which is what brings back one that timed out. The next loss judges it again, with all \
                 samples.",
        parameter: "readmit",
    },
    Choice {
        question: "How long is an interval when the samples say less than a round-trip time?",
        answer: "A round-trip time: no shorter one can be told from chance, says the section.",
        parameter: "",
    },
    Choice {
        question: "Algorithm 2 taken at D_i = 0 has k = 0 and T_i = 0 for every path, and adds nothing if cwnd is one MTU.",
        answer: "k is that of D_i and the chunk to be placed: \"the next dispatched data\" of line 13.",
        parameter: "",
    },
    Choice {
        question: "Is data placed by the chunk or by the round?",
        answer: "By the round, cwnd + (k - 1) MTU, as line 20 has it. Since all of a round has one T_i the two differ only \
                 if figures change within a round.",
        parameter: "piece",
    },
    Choice {
        question: "When does D_i begin anew?",
        answer: "With each period, at what still waits in the path's queue: P_d and T_i are about one period.",
        parameter: "distributed",
    },
    Choice {
        question: "D_max bounds what a period distributes, but is not in Algorithm 2. When is it taken?",
        answer: "For each chunk. Taken once, a period would carry one free window of each path, and a fast path could not be \
                 served the P_d / T_handle times that the text wants; left out, all of the peer's window is bound at once.",
        parameter: "d-max",
    },
    Choice {
        question: "Whose room does D_max count, and how much may wait in a path's queue?",
        answer: "A path's own: it takes part while its window has room for more than is outstanding or bound. The text calls a \
                 term of equation 7 what may be transmitted for that path, bounds what a path is given by that path's cwnd as \
                 well as by D_max (after Algorithm 2), and nowhere speaks of binding data to a path that is full. `clamped` \
                 lets data wait for a full path, but takes its room from no other; `pooled` takes it from all together; \
                 `rounds` lets as much wait as the period has rounds for.",
        parameter: "queue",
    },
    Choice {
        question: "Section 4 gives each path a part of the send buffer, sized by its current capacity. How large is that part?",
        answer: "No part is set, since it would have no effect: ns-2's send buffer is unlimited unless a script sets \
                 it, and the publication names no size. Each path has a queue of its own, which is the division that \
                 equation 1 needs. The section prints no formula; D_max bounds the bytes that a path may hold by its \
                 window.",
        parameter: "",
    },
    Choice {
        question: "Which paths have close capabilities?",
        answer: "All that are active: no criterion is given.",
        parameter: "closeness",
    },
    Choice {
        question: "What becomes of data that waits in a queue when things change?",
        answer: "It stays, since the publication takes nothing out of a path's buffer, unless its path leaves service or is \
                 withdrawn: then it is placed anew.",
        parameter: "replan",
    },
    Choice {
        question: "What is Q before the first measurement?",
        answer: "SRTT / cwnd, a window for each round trip; without a round-trip time RTO / cwnd.",
        parameter: "pqem",
    },
    Choice {
        question: "What if all is delivered before the period ends?",
        answer: "The next one begins: nothing can come of waiting.",
        parameter: "",
    },
    Choice {
        question: "Which of several paths with the same T_i?",
        answer: "The first, by line 15.",
        parameter: "",
    },
    Choice {
        question: "Algorithm 3 as printed reduces the window after the test has left it alone.",
        answer: "The reductions are the other branch, as the text says.",
        parameter: "algorithm-3",
    },
    Choice {
        question: "When do losses happen consecutively?",
        answer: "When another one is detected on the path within SRTT. It reduces the window even if it is in the same window, of \
                 which a control otherwise hears once.",
        parameter: "consecutive",
    },
    Choice {
        question: "Can a time-out be a random loss?",
        answer: "No: time-outs show failures, gap reports show random losses, says the section.",
        parameter: "excuse-t3",
    },
    Choice {
        question: "Which round-trip time is rtt_i?",
        answer: "The smoothed one. In a steady state Q is close to rtt / cwnd, so that the test stands near its threshold either way.",
        parameter: "loss-rtt",
    },
    Choice {
        question: "What is the transfer delay of a path?",
        answer: "SRTT / 2: once through the network. Paths without room now are passed over, because the chunk is to go as soon as possible.",
        parameter: "delay, await-room",
    },
    Choice {
        question: "What is the inactive status of a path that timed out?",
        answer: "Potentially failed: no data, and a HEARTBEAT at each RTO until one is answered. With no path left the one with \
                 the fewest errors serves. When it answers, its window is still the one packet that the time-out left; \
                 `cmt-pf` gives it two.",
        parameter: "",
    },
    Choice {
        question: "Section 6: after the SACK for the retransmitted data, DDS continues over the rest of the paths. Does DDS stop until then?",
        answer: "No. Retransmissions leave first and new data follows in the same period; the rest of the paths are \
                 those that are still active, since a path that timed out gets no data. A stop of all paths from each \
                 loss to its SACK would take a round trip at least, and Algorithms 2 and 3 have no line for it.",
        parameter: "",
    },
    TEXT_HAS_FOUR_REPORTS,
];
