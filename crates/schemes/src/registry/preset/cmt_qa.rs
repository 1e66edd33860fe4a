//! `cmt-qa`: CMT that measures its paths, distributes data by predicted arrival, and tells random losses from congestion.

use anabranch_core::policy::{Policies, RetransmitPath};

use crate::congestion::{Consecutive, RandomLoss, RandomLossRules, Reading, RoundTrip};
use crate::estimator::{
    Bound, GroupSpan, InitialSample, LossUnit, Patience, QUANTILES, QualityEstimator, QualityRules,
    Readmission,
};
use crate::failover::QualityAware;
use crate::registry::preset::shared::{
    SACK_DELAY, SACK_EVERY, TRIGGER, cuc, dac, floor, floored, rtx, sfr, switch,
};
use crate::registry::preset::{Preset, cmt};
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Role, Value, Values};
use crate::retransmit::{LeastDelay, TransferDelay};
use crate::scheduler::{Allowance, DataDistribution, Distributed, DistributionRules, Piece, QueueBound};

const fn choice(
    name: &'static str,
    names: &'static [&'static str],
    default: &'static str,
    about: &'static str,
    source: &'static str,
) -> Parameter {
    Parameter { name, kind: Kind::Choice(names), unit: "", default: Value::Choice(default), about, source }
}

const PARAMETERS: &[Parameter] = &[
    switch(
        "pqem",
        true,
        "paths are measured and judged; without it dds takes SRTT / cwnd for Q, and no loss looks random",
        "Xu 2013, section 4",
    ),
    switch(
        "dds",
        true,
        "new data goes where it is predicted to arrive first; without it as in `cmt`",
        "Xu 2013, section 5",
    ),
    switch(
        "orp",
        true,
        "losses are told apart and sent again on the path with the least delay; without it as in `cmt`",
        "Xu 2013, section 6",
    ),
    choice(
        "bound",
        &["upper", "mean", "lower"],
        "upper",
        "pqem: the figure of the confidence interval that counts",
        "Xu 2013, equation 6, names none",
    ),
    choice(
        "confidence",
        &["80", "90", "95", "98", "99"],
        "95",
        "pqem: level of the confidence interval in percent",
        "Xu 2013, section 4 and Table 1",
    ),
    choice(
        "initial-sample",
        &["rtt", "heartbeat", "none"],
        "rtt",
        "pqem: three times the first round-trip time, or HB.interval, or no initial sample",
        "Xu 2013, section 4: three heartbeat intervals",
    ),
    choice(
        "group",
        &["interval", "window"],
        "interval",
        "pqem: Q is measured over what enters between two updates, or until a window's worth has",
        "Xu 2013, equation 1",
    ),
    choice(
        "loss-unit",
        &["event", "chunk"],
        "event",
        "pqem: a loss is what a window answers as one, or each chunk declared lost",
        "Xu 2013, Algorithm 1, lines 16 to 20",
    ),
    choice(
        "inactive-below",
        &["rto", "unclamped", "never"],
        "rto",
        "pqem: a path is withdrawn if its loss-free time is below RTO, or SRTT + 4 RTTVAR, or never",
        "Xu 2013, section 4",
    ),
    Parameter {
        name: "judge-after",
        kind: Kind::Count { min: 1, max: 100 },
        unit: "samples",
        default: Value::Number(2),
        about: "pqem: samples, the initial one included, before a path may be withdrawn",
        source: "Xu 2013 names none",
    },
    choice(
        "readmit",
        &["heartbeat", "interval", "recovery"],
        "heartbeat",
        "pqem: a withdrawn path comes back with an answered HEARTBEAT, after its interval, or not before it failed",
        "Xu 2013, section 6, for paths that timed out",
    ),
    choice(
        "piece",
        &["round", "chunk"],
        "round",
        "dds: what is placed at a time: a path's whole round, or one chunk",
        "Xu 2013, Algorithm 2, line 20; text before equation 11",
    ),
    choice(
        "distributed",
        &["period", "undelivered"],
        "period",
        "dds: D_i is what a path was given in this period, or what it has not delivered",
        "Xu 2013, equation 12",
    ),
    choice(
        "d-max",
        &["running", "period", "none"],
        "running",
        "dds: D_max is taken for each chunk, or once for a whole period, or only the peer's window counts",
        "Xu 2013, equation 7; Algorithm 2 has none",
    ),
    choice(
        "queue",
        &["d-max", "rounds"],
        "d-max",
        "dds: what bounds a path's queue: D_max, or also the rounds that a period has room for",
        "Xu 2013, text after equation 10",
    ),
    Parameter {
        name: "closeness",
        kind: Kind::Decimal { min: 0.0, max: 1000.0 },
        unit: "",
        default: Value::Decimal(0.0),
        about: "dds: paths whose T_handle is more than this many times the shortest are left out; 0 leaves none out",
        source: "Xu 2013, text before equation 10, names no figure",
    },
    switch(
        "replan",
        false,
        "dds: what still waits in the queues as a period begins is placed anew",
        "Xu 2013 does not say",
    ),
    choice(
        "algorithm-3",
        &["else", "printed"],
        "else",
        "orp: windows are reduced only for losses that do not look random, or, as printed, for all",
        "Xu 2013, section 6 and Algorithm 3",
    ),
    choice(
        "consecutive",
        &["rtt", "window", "never"],
        "rtt",
        "orp: two losses are consecutive within SRTT, or with less than a window acknowledged between them, or never",
        "Xu 2013, section 6",
    ),
    choice(
        "loss-rtt",
        &["srtt", "latest"],
        "srtt",
        "orp: the round-trip time that is held against Q",
        "Xu 2013, Algorithm 3, line 2",
    ),
    switch("excuse-t3", false, "orp: a T3 expiry may be found random too", "Xu 2013, Algorithm 3"),
    choice(
        "delay",
        &["half-rtt", "handling"],
        "half-rtt",
        "orp: a path's transfer delay: SRTT / 2, or equation 13 for what is in flight and the chunk",
        "Xu 2013, section 6",
    ),
    switch(
        "await-room",
        false,
        "orp: the path with the least delay is waited for if it is full",
        "Xu 2013, section 6: as soon as possible",
    ),
    rtx("rtx-cwnd"),
    Parameter { default: Value::Number(4), ..TRIGGER },
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("4"),
];

const GROUP: &str = "crates/schemes/src/estimator/path_quality/group.rs";
const SAMPLING: &str = "crates/schemes/src/estimator/path_quality/sampling.rs";
const QUALITY: &str = "crates/schemes/src/estimator/path_quality.rs";
const FORMULAS: &str = "crates/schemes/src/scheduler/data_distribution/formulas.rs";
const DISTRIBUTION: &str = "crates/schemes/src/scheduler/data_distribution.rs";
const RANDOM_LOSS: &str = "crates/schemes/src/congestion/random_loss.rs";

const EQUATIONS: &[Equation] = &[
    Equation { name: "equation 1", rule: "Q = (T_l - T_e) / buffersize, in seconds per byte", place: GROUP },
    Equation {
        name: "Algorithm 1",
        rule: "a sample reaches from the first chunk sent after a loss to the last before the next is detected",
        place: SAMPLING,
    },
    Equation { name: "equations 2, 3", rule: "X_N+1 = (X_N N + x_N+1) / (N + 1)", place: SAMPLING },
    Equation {
        name: "equations 4, 5",
        rule: "S_N+1^2 = S_N^2 (N - 1) / N + (x_N+1 - X_N)^2 / (N + 1)",
        place: SAMPLING,
    },
    Equation { name: "equation 6", rule: "u = X +- Z S / sqrt(N), Z = 1.96 for 95 %", place: SAMPLING },
    Equation {
        name: "section 4, text after equation 6",
        rule: "a path whose interval is less than RTO is marked inactive",
        place: QUALITY,
    },
    Equation {
        name: "equation 7",
        rule: "D_max = min(sum of (cwnd_i - outstanding_i), rwnd)",
        place: FORMULAS,
    },
    Equation {
        name: "equation 8",
        rule: "rwnd = a_rwnd - sum of outstanding_i",
        place: "crates/core/src/association/sack_in.rs",
    },
    Equation { name: "equation 9", rule: "T_handle_i = Q_i cwnd_i", place: FORMULAS },
    Equation { name: "equation 10", rule: "P_d = max T_handle_i", place: FORMULAS },
    Equation {
        name: "equations 11, 12",
        rule: "k = ceil((sqrt((2 cwnd_i - MTU)^2 + 8 MTU D_i) - (2 cwnd_i - MTU)) / (2 MTU))",
        place: FORMULAS,
    },
    Equation { name: "equation 13", rule: "T_i = k Q_i cwnd_i", place: FORMULAS },
    Equation {
        name: "Algorithm 2",
        rule: "until P_d ends: to the path with the least T_i; D_i += cwnd_i + (k - 1) MTU",
        place: DISTRIBUTION,
    },
    Equation {
        name: "Algorithm 3, lines 2 to 5",
        rule: "rtt_i / cwnd_i >= Q_i and not consecutive: cwnd stays",
        place: RANDOM_LOSS,
    },
    Equation {
        name: "Algorithm 3, lines 6 to 9",
        rule: "T3: ssthresh = max(cwnd / 2, 4 MTU), cwnd = MTU",
        place: "crates/schemes/src/congestion/cut/halving.rs",
    },
    Equation {
        name: "Algorithm 3, lines 10 to 13",
        rule: "missing reports: ssthresh = max(cwnd / 2, 4 MTU), cwnd = ssthresh",
        place: "crates/schemes/src/congestion/cut/halving.rs",
    },
    Equation {
        name: "Algorithm 3, line 14",
        rule: "again on the active path with the least transfer delay",
        place: "crates/schemes/src/retransmit/least_delay.rs",
    },
    Equation {
        name: "section 6",
        rule: "a path that timed out is inactive until it answers a HEARTBEAT",
        place: "crates/schemes/src/failover/quality_aware.rs",
    },
];

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
        question: "How much may wait in a path's queue?",
        answer: "What D_max allows to all paths together; it counts what is bound and unsent as outstanding. What leaves the \
                 queue is up to the path's window.",
        parameter: "queue",
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
                 the fewest errors serves.",
        parameter: "",
    },
    Choice {
        question: "How many missing reports make a loss?",
        answer: "Four, as Algorithms 1 and 3 say, and not the three of RFC 4960, which the paper cites.",
        parameter: "trigger",
    },
];

const CARD: Card = Card {
    summary: &[
        "Each path has a queue of its own. How long the path takes for a byte is measured from entering the",
        "queue to the SACK, and new data is bound to the path that is predicted to deliver it first. A path",
        "that loses something before a time-out would show it gets none. A loss while the window is within",
        "what was measured counts as random and leaves it; what is lost goes again on the path with the",
        "least delay, and a path that timed out serves again when it answers a HEARTBEAT.",
    ],
    equations: EQUATIONS,
    choices: CHOICES,
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-qa",
    about: "CMT with measured paths, data placed by predicted arrival, and random losses told from congestion",
    source: "Xu, Liu, Guan, Zhang, Muntean 2013",
    multipath: true,
    coupled: false,
    unfair_because: "DDS counts free room in one path's window as given away once as much data is bound to any path, so \
                     windows stand open while bound data waits for another; two such paths take about one flow's share. \
                     With `dds=false` they take two.",
    owns: &[Role::Scheduler, Role::Failover],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

fn quality_rules(values: &Values) -> QualityRules {
    let level = values.choice("confidence");
    let quantile = QUANTILES.iter().find(|(percent, _)| percent.to_string() == level);
    QualityRules {
        bound: match values.choice("bound") {
            "lower" => Bound::Lower,
            "mean" => Bound::Mean,
            _ => Bound::Upper,
        },
        quantile: quantile.map_or(1.96, |(_, z)| *z),
        initial: match values.choice("initial-sample") {
            "heartbeat" => InitialSample::HeartbeatIntervals,
            "none" => InitialSample::Nothing,
            _ => InitialSample::RoundTrips,
        },
        group: if values.choice("group") == "window" { GroupSpan::Window } else { GroupSpan::Interval },
        losses: if values.choice("loss-unit") == "chunk" { LossUnit::Chunk } else { LossUnit::Event },
        patience: match values.choice("inactive-below") {
            "unclamped" => Patience::Unclamped,
            "never" => Patience::Unlimited,
            _ => Patience::Rto,
        },
        samples_to_judge: u64::from(values.number("judge-after")),
        readmission: match values.choice("readmit") {
            "interval" => Readmission::Interval,
            "recovery" => Readmission::Recovery,
            _ => Readmission::Heartbeat,
        },
    }
}

fn distribution_rules(values: &Values) -> DistributionRules {
    let undelivered = values.choice("distributed") == "undelivered";
    let rounds = values.choice("queue") == "rounds";
    DistributionRules {
        piece: if values.choice("piece") == "chunk" { Piece::Chunk } else { Piece::Round },
        distributed: if undelivered { Distributed::Undelivered } else { Distributed::Period },
        allowance: match values.choice("d-max") {
            "period" => Allowance::Period,
            "none" => Allowance::PeerWindow,
            _ => Allowance::Running,
        },
        queue_bound: if rounds { QueueBound::Frequency } else { QueueBound::Allowance },
        closeness: values.decimal("closeness"),
        replans: values.switch("replan"),
    }
}

fn random_loss_rules(values: &Values) -> RandomLossRules {
    let printed = values.choice("algorithm-3") == "printed";
    let latest = values.choice("loss-rtt") == "latest";
    RandomLossRules {
        consecutive: match values.choice("consecutive") {
            "window" => Consecutive::Window,
            "never" => Consecutive::Never,
            _ => Consecutive::RoundTrip,
        },
        reading: if printed { Reading::Printed } else { Reading::Else },
        rtt: if latest { RoundTrip::Latest } else { RoundTrip::Smoothed },
        excuses_timeouts: values.switch("excuse-t3"),
    }
}

fn least_delay(values: &Values) -> Box<dyn RetransmitPath> {
    let handling = values.choice("delay") == "handling";
    let delay = if handling { TransferDelay::Handling } else { TransferDelay::HalfRoundTrip };
    Box::new(LeastDelay { delay, waits: values.switch("await-room") })
}

fn build(values: &Values) -> Policies {
    let mut policies = cmt::build(values);
    if values.switch("pqem") {
        policies.estimator = Box::new(QualityEstimator::new(quality_rules(values)));
    }
    if values.switch("dds") {
        policies.scheduler = Box::new(DataDistribution::new(distribution_rules(values)));
    }
    if values.switch("orp") {
        policies.congestion = Box::new(RandomLoss::new(random_loss_rules(values), policies.congestion));
        policies.retransmit = least_delay(values);
        policies.failover = Box::new(QualityAware);
    }
    policies
}

#[cfg(test)]
mod tests;
