//! `bbr`: windows and rates from a model of each path, BBR version 3.

use anabranch_core::policy::Policies;
use anabranch_core::time::{Rate, Span};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::control::BbrControl;
use crate::definition::{Card, Choice, Component, Role, Values};

mod aggregation;
mod control;
pub(crate) mod full_pipe;
mod min_rtt;
mod path;
mod rounds;
mod signals;
mod state;

const CARD: Card = Card {
    summary: &[
        "On each path, the recent maximum delivery rate and minimum round-trip time determine the sending rate and",
        "the amount in flight. Every few seconds the path is probed with a quarter more. After five seconds without",
        "a round-trip time near the minimum, the path is drained to measure it again. Losses count only",
        "if a probe loses more than 2 %, or as a limit until the next probe.",
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
            question: "TCP and QUIC have one path here. How are several paths handled?",
            answer: "Every path has its own model; they are not coupled. Paths that share a bottleneck probe it independently.",
            parameter: "",
        },
        Choice {
            question: "Which acknowledgements are samples?",
            answer: "Those of chunks that were sent once: a retransmitted chunk does not identify its path. For the minimum \
                     round-trip time, the SACK must also have returned on the same path. A path without such SACKs uses its \
                     smoothed round-trip time.",
            parameter: "",
        },
        Choice {
            question: "What counts as limited by the application?",
            answer: "No data waits, or the scheduler or another policy leaves room of a path unused. A closed receive window \
                     counts as a limit of the network, as in section 4.1.1.3.1, although a hole on another path may have \
                     closed it.",
            parameter: "",
        },
        Choice {
            question: "Startup ends after losses in six discontiguous ranges. How are they counted if the path has every other \
                       TSN?",
            answer: "As in Linux, by the SACKs that report losses, and not by the ranges.",
            parameter: "",
        },
        Choice {
            question: "When is a recovery spurious (section 5.5.11)?",
            answer: "If the receiver has reported a duplicate of every chunk that was retransmitted in it. SCTP has no other \
                     evidence.",
            parameter: "",
        },
        Choice {
            question: "How do SCTP and this core differ from the draft?",
            answer: "Core decides how much is sent at once (send_quantum), with the budget of QUIC. After T3 the window is one \
                     chunk, and the previous window is restored once the chunks that T3 declared lost are acknowledged. RFC \
                     9260's halving of an idle path's window is omitted, since the draft keeps the window. The rate of a path \
                     after idleness is that of its state until its first SACK. There is no ECN.",
            parameter: "",
        },
        Choice {
            question: "Drain: does inflight_longterm bound the window?",
            answer: "No, as in the draft's pseudocode and in Linux; the table in section 5.6.1 says that it does.",
            parameter: "",
        },
        Choice {
            question: "What is ssthresh?",
            answer: "BBR has none. Policies that read it see no limit in Startup, and the window itself afterwards.",
            parameter: "",
        },
        Choice {
            question: "Which parameters does it have?",
            answer: "None: the constants are those of the draft.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "bbr",
    about: "BBRv3 on each path: rate and window follow the maximum delivery rate and the minimum round-trip time",
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
