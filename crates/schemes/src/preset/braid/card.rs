//! Documentation card of `braid`.

use crate::component::cubic::curve;
use crate::component::rack;
use crate::definition::{Card, Choice, Equation, SACK_PROCESSING};
use crate::preset::braid::{
    chunk_timer, coupling, doubled, drain, in_order, late_head, loss, mode, model, pace, rate_test, revival,
    round_trips, unmeasured, window,
};
use crate::preset::{bonded, cmt_pf};
use crate::retransmit::soonest::RTX_SOONEST;

pub(super) const CARD: Card = Card {
    summary: &[
        "Alone on a path it keeps two packets in the queue, measured round by round (Vegas); where a queue stays",
        "although it gives way it grows as CUBIC does. Losses that come as often with a short queue as with a",
        "long one leave the window. Paths that meet congestion are coupled. Packets are paced. New data goes to",
        "the path with the shortest holding time, and to others as far as the receive window holds what arrives",
        "meanwhile. The book's chapter about it says what each part gains.",
    ],
    equations: &[
        round_trips::RULES,
        model::RULES,
        mode::RULES,
        drain::RULES,
        window::RULES,
        curve::RULES,
        loss::RULES,
        rate_test::RULES,
        unmeasured::RULES,
        coupling::RULES,
        pace::RULES,
        in_order::RULES,
        doubled::RULES,
        chunk_timer::RULES,
        late_head::RULES,
        revival::RULES,
        OTHERS,
    ],
    choices: &[CHOICES],
};

const OTHERS: &[Equation] = &[
    RTX_SOONEST,
    Equation {
        name: "T3",
        rule: "restarts with every acknowledgement on its path: RACK finds what is lost on a path that answers",
        file: SACK_PROCESSING,
    },
    Equation { name: "RACK-TLP", rule: "as `+rack(repeated-probes=true)`", file: rack::FILE },
    Equation { name: "PF", rule: "as `cmt-pf`", file: cmt_pf::FILE },
    Equation { name: "silence", rule: "as `bonded`", file: bonded::FILE },
];

const CHOICES: &[Choice] = &[
    Choice {
        question: "Is it published?",
        answer: "Its parts are, except the test of losses, the scheduler's rule and the timer of retransmissions; the combination is ours.",
        parameter: "",
    },
    Choice {
        question: "Why does it acknowledge every packet?",
        answer: "Round trips are measured to a fraction of a packet's time, and a delayed SACK adds a packet's time to every \
                 second one.",
        parameter: "sack-every",
    },
    Choice {
        question: "Why two packets in the queue?",
        answer: "One is what pacing and cross traffic of a packet at a time leave in any queue; with two the path does not run \
                 empty when one is late. Vegas aims at 2 to 4.",
        parameter: "delay",
    },
    Choice {
        question: "Why is a path with a short queue not coupled?",
        answer: "Nobody loses anything to it: it gives way as soon as a queue builds.",
        parameter: "coupling",
    },
    Choice {
        question: "What if a lossy link has no queue of its own and others fill it?",
        answer: "Then losses are over-represented at long queues, and cut the window. A loss at a short queue never does.",
        parameter: "noise",
    },
];
