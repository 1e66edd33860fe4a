//! `bbr`: windows and rates from a model of each path, BBR version 3.

use anabranch_core::policy::Policies;
use anabranch_core::time::{Rate, Span};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::control::BbrControl;
use crate::definition::{Card, Choice, Component, Role, Values};

mod aggregation;
mod control;
mod full_pipe;
mod min_rtt;
mod path;
mod rounds;
mod signals;
mod state;

const CARD: Card = Card {
    summary: &[
        "On each path the largest delivery rate and the least round trip of late say how fast to send and how",
        "much may be in flight. Every few seconds the path is probed with a quarter more, and after five seconds",
        "without a round trip as short as the least it is emptied to measure that again. A loss matters only if",
        "a probe lost more than 2 %, or as a bound that lasts until the next probe.",
    ],
    equations: &[
        path::RULES[0],
        state::RULES,
        full_pipe::RULES,
        path::RULES[1],
        signals::RULES,
        path::RULES[2],
        min_rtt::RULES,
        path::RULES[3],
    ],
    choices: &[&[
        Choice {
            question: "TCP and QUIC have one path here. What of several?",
            answer: "Every path has a model of its own; they are not coupled. Paths that share a bottleneck probe it apart from each other.",
            parameter: "",
        },
        Choice {
            question: "Which acknowledgements are samples?",
            answer: "Those of chunks that were sent once: of a retransmitted chunk it is not certain which way it came. For the least round \
                     trip the SACK must have come back on the path too; a path that never sees one goes by its smoothed round trip.",
            parameter: "",
        },
        Choice {
            question: "What counts as limited by the application?",
            answer: "That nothing waits, and that the scheduler or another policy leaves a path's room unused. A closed receive window counts \
                     as a limit of the network, as section 4.1.1.3.1 has it, though another path's hole may have closed it.",
            parameter: "",
        },
        Choice {
            question: "Startup ends after losses in six discontiguous ranges. What if the path has every other TSN?",
            answer: "As in Linux the SACKs that tell of losses count, not the ranges.",
            parameter: "",
        },
        Choice {
            question: "When is a recovery spurious (section 5.5.11)?",
            answer: "When the receiver has reported a duplicate of every chunk that was retransmitted in it. SCTP has no other sign.",
            parameter: "",
        },
        Choice {
            question: "What is unlike the draft because of SCTP or of this core?",
            answer: "Core decides how much leaves at once (send_quantum); the budget for it is QUIC's. After T3 the window is one chunk, and the \
                     one before comes back when what T3 covered is repaired. RFC 9260's halving of an idle path's window is left out, as the \
                     draft leaves the window. The rate of a path that was idle is that of its state until its first SACK. There is no ECN.",
            parameter: "",
        },
        Choice {
            question: "Drain: does inflight_longterm bound the window?",
            answer: "No, as in the draft's pseudocode and in Linux; the table in section 5.6.1 says that it does.",
            parameter: "",
        },
        Choice {
            question: "What is ssthresh?",
            answer: "BBR has none. Policies that ask see no bound in Startup and the window itself after it.",
            parameter: "",
        },
        Choice {
            question: "Has it parameters?",
            answer: "None: the draft's constants are constants.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "bbr",
    about: "BBRv3 on each path: rate and window follow the largest delivery rate and the least round trip",
    source: "draft-ietf-ccwg-bbr-06 (Cardwell, Swett, Beshay 2026)",
    role: Role::CongestionControl,
    needs_multipath: false,
    parameters: &[],
    card: CARD,
    apply,
};

fn apply(_: &Values, policies: Policies) -> Policies {
    Policies { congestion: Box::<BbrControl>::default(), ..policies }
}

/// Returns the bytes that a rate carries in a time.
fn volume(rate: Rate, time: Span) -> ChunkBytes {
    // A conversion to an integer saturates.
    ChunkBytes::new((rate.as_bps() as f64 / 8.0 * time.as_secs_f64()) as u64)
}

/// Returns the rate that carries these bytes in a time.
fn rate(bytes: ChunkBytes, time: Span) -> Rate {
    let seconds = time.max(Span::from_nanos(1)).as_secs_f64();
    Rate::from_bps((bytes.get() as f64 * 8.0 / seconds) as u64)
}

fn scaled(bytes: ChunkBytes, factor: f64) -> ChunkBytes {
    ChunkBytes::new((bytes.get() as f64 * factor) as u64)
}

fn scaled_rate(rate: Rate, factor: f64) -> Rate {
    Rate::from_bps((rate.as_bps() as f64 * factor) as u64)
}
