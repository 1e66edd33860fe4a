//! Documentation card of `braid`.

use crate::component::cubic::curve;
use crate::component::rack;
use crate::definition::{Card, Choice, Equation, SACK_PROCESSING};
use crate::preset::braid::{
    acceleration, ambiguous_rtt, chunk_timer, coupling, drain, head_of_line_retransmission, in_order, loss,
    lossy_plateau, mode, model, pace, path_probe, policer, redundant_retransmission, round_trips, shortfall,
    soonest, supervisor, validation, window,
};
use crate::preset::{bonded, cmt_pf};

pub(super) const CARD: Card = Card {
    summary: &[
        "Without competing flows on a path it keeps two packets in the queue, round by round (Vegas). If the queue",
        "persists although the window shrinks, it grows as CUBIC does. Losses that are as frequent at short queues",
        "as at long ones do not reduce the window. Congested paths are coupled, and packets are paced. New data",
        "goes to the path with the shortest holding time, and to others as far as the receive window has room for",
        "the data that arrives meanwhile. The book has a chapter about its parts.",
    ],
    equations: &[
        round_trips::RULES,
        model::RULES,
        mode::RULES,
        acceleration::RULES,
        drain::RULES,
        window::RULES,
        validation::RULES,
        curve::RULES,
        loss::RULES,
        lossy_plateau::RULES,
        policer::RULES,
        ambiguous_rtt::RULES,
        coupling::RULES,
        pace::RULES,
        in_order::RULES,
        soonest::RULES,
        redundant_retransmission::RULES,
        chunk_timer::RULES,
        head_of_line_retransmission::RULES,
        path_probe::RULES,
        shortfall::RULES,
        supervisor::RULES,
        OTHERS,
    ],
    choices: &[CHOICES],
};

const OTHERS: &[Equation] = &[
    Equation {
        name: "T3",
        rule: "restarts with every acknowledgement on its path: RACK detects losses on a path that answers",
        file: SACK_PROCESSING,
    },
    Equation { name: "RACK-TLP", rule: "as `+rack(repeated-probes=true)`", file: rack::FILE },
    Equation { name: "PF", rule: "as `cmt-pf`", file: cmt_pf::FILE },
    Equation { name: "silence", rule: "as `bonded`", file: bonded::FILE },
];

const CHOICES: &[Choice] = &[
    Choice {
        question: "Is it published?",
        answer: "Its parts are, except the loss test, the scheduler's rule and the timer of retransmissions; the combination \
                 is new.",
        parameter: "",
    },
    Choice {
        question: "Why does it acknowledge every packet?",
        answer: "Round-trip times are measured to a fraction of a packet's transmission time, and a delayed SACK adds such a \
                 time to every second one.",
        parameter: "sack-every",
    },
    Choice {
        question: "Why two packets in the queue?",
        answer: "Pacing and cross traffic of single packets leave one in any queue. With two packets the path does not run \
                 empty when one is late. Vegas aims at 2 to 4.",
        parameter: "delay",
    },
    Choice {
        question: "Why is a path with a short queue not coupled?",
        answer: "Its window shrinks as soon as a queue builds, so it causes no losses of other flows.",
        parameter: "coupling",
    },
    Choice {
        question: "What happens if other flows fill the queue of a lossy link?",
        answer: "Then losses are more frequent at long queues, and reduce the window. A loss at a short queue never does.",
        parameter: "noise",
    },
];
