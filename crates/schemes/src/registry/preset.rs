//! The presets: what each scheme is made of.

use anabranch_core::policy::{Policies, RetransmitPath};

use crate::ack::DelayedAcks;
use crate::buffer::Unshared;
use crate::congestion::{GrowthGate, Standard};
use crate::estimator::MeasuredLossRate;
use crate::failover::{Plain, PotentiallyFailed};
use crate::loss::MissingReports;
use crate::registry::{Kind, Parameter, Value, Values};
use crate::retransmit::{Alternate, Asap, Best, Preference, Same};
use crate::scheduler::{PrimaryOnly, RotatingWindowFill};

/// A scheme before its parameters are chosen.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Whether new data uses several paths.
    pub multipath: bool,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(crate) build: fn(&Values) -> Policies,
}

const RTX_NAMES: &[&str] = &["rtx-same", "rtx-asap", "rtx-cwnd", "rtx-ssthresh", "rtx-lossrate"];

const TRIGGER: Parameter = Parameter {
    name: "trigger",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "missing reports",
    default: Value::Number(3),
    about: "reports that make a chunk lost",
    source: "RFC 9260 section 7.2.4: 3; RFC 2960 and the papers' text: 4",
};

const SACK_EVERY: Parameter = Parameter {
    name: "sack-every",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "packets",
    default: Value::Number(2),
    about: "packets that one SACK answers",
    source: "RFC 9260 section 6.2",
};

const SACK_DELAY: Parameter = Parameter {
    name: "sack-delay",
    kind: Kind::Milliseconds { min: 0, max: 500 },
    unit: "ms",
    default: Value::Number(200),
    about: "longest delay of a SACK",
    source: "RFC 9260 section 6.2",
};

const fn rtx(default: &'static str) -> Parameter {
    Parameter {
        name: "rtx",
        kind: Kind::Choice(RTX_NAMES),
        unit: "",
        default: Value::Choice(default),
        about: "where a lost chunk goes again",
        source: "Iyengar 2006, section on retransmission policies",
    }
}

const fn switch(name: &'static str, default: bool, about: &'static str, source: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Switch, unit: "", default: Value::Switch(default), about, source }
}

const fn sfr(default: bool) -> Parameter {
    switch("sfr", default, "split fast retransmit: only acks of a chunk's own path report it missing", "Iyengar 2006, SFR")
}

const fn cuc(default: bool) -> Parameter {
    switch("cuc", default, "a path's window grows with its own pseudo-cumulative TSN", "Iyengar 2006, CUC version 2")
}

const fn dac(default: bool) -> Parameter {
    switch("dac", default, "gaps do not hurry SACKs, which say how many packets they answer", "Iyengar 2006, DAC")
}

const SCTP: &[Parameter] = &[
    Parameter {
        name: "rtx",
        kind: Kind::Choice(&["alternate-on-timeout", "alternate", "rtx-same"]),
        unit: "",
        default: Value::Choice("alternate-on-timeout"),
        about: "where a lost chunk goes again",
        source: "RFC 9260 section 6.4.1; `alternate` is ns-2's default",
    },
    TRIGGER,
    SACK_EVERY,
    SACK_DELAY,
];

const CMT: &[Parameter] = &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY];

const NAIVE: &[Parameter] = &[rtx("rtx-cwnd"), TRIGGER, sfr(false), cuc(false), dac(false), SACK_EVERY, SACK_DELAY];

const CMT_PF: &[Parameter] = &[
    Parameter {
        name: "pf",
        kind: Kind::Choice(&["pf1", "pf2"]),
        unit: "",
        default: Value::Choice("pf2"),
        about: "window of a path that answers its probe: one chunk (pf1) or two (pf2)",
        source: "Natarajan 2009; ns-2's default is two",
    },
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
];

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "sctp",
        about: "Single-path SCTP: new data on the primary path, the others only as stand-ins",
        source: "RFC 9260",
        multipath: false,
        parameters: SCTP,
        build: build_sctp,
    },
    Preset {
        name: "naive-cmt",
        about: "Data on all paths at once without CMT's three repairs",
        source: "Iyengar, Amer, Stewart 2006, as the baseline; ns-2 with its three switches off",
        multipath: true,
        parameters: NAIVE,
        build: build_cmt,
    },
    Preset {
        name: "cmt",
        about: "Concurrent multipath transfer with split fast retransmit, window update and delayed acks of its own",
        source: "Iyengar, Amer, Stewart 2006; ns-2.35",
        multipath: true,
        parameters: CMT,
        build: build_cmt,
    },
    Preset {
        name: "cmt-pf",
        about: "CMT with a potentially-failed state: one time-out takes a path out until it answers a probe",
        source: "Natarajan et al. 2008, 2009; ns-2.35; RFC 7829",
        multipath: true,
        parameters: CMT_PF,
        build: build_cmt_pf,
    },
];

fn retransmit(values: &Values) -> Box<dyn RetransmitPath> {
    match values.choice("rtx") {
        "rtx-same" => Box::new(Same),
        "rtx-asap" => Box::new(Asap),
        "rtx-ssthresh" => Box::new(Best { by: Preference::Ssthresh }),
        "rtx-lossrate" => Box::new(Best { by: Preference::LossRate }),
        "alternate" => Box::new(Alternate { fast_retransmissions_too: true }),
        "alternate-on-timeout" => Box::new(Alternate { fast_retransmissions_too: false }),
        _ => Box::new(Best { by: Preference::Cwnd }),
    }
}

fn acks(values: &Values) -> DelayedAcks {
    DelayedAcks {
        every: values.number("sack-every"),
        delay: values.milliseconds("sack-delay"),
        for_cmt: values.switch("dac"),
    }
}

fn missing_reports(values: &Values) -> MissingReports {
    MissingReports {
        trigger: values.number("trigger"),
        split: values.switch("sfr"),
        delayed_acks: values.switch("dac"),
    }
}

fn gate(values: &Values) -> GrowthGate {
    if values.switch("cuc") { GrowthGate::PseudoCumulative } else { GrowthGate::Cumulative }
}

fn build_sctp(values: &Values) -> Policies {
    Policies {
        estimator: Box::new(MeasuredLossRate::default()),
        scheduler: Box::new(PrimaryOnly),
        congestion: Box::new(Standard::new(GrowthGate::Cumulative, None)),
        loss: Box::new(missing_reports(values)),
        retransmit: retransmit(values),
        ack: Box::new(acks(values)),
        buffer: Box::new(Unshared),
        failover: Box::new(Plain),
    }
}

fn build_cmt(values: &Values) -> Policies {
    Policies {
        scheduler: Box::new(RotatingWindowFill::default()),
        congestion: Box::new(Standard::new(gate(values), None)),
        ..build_sctp(values)
    }
}

fn build_cmt_pf(values: &Values) -> Policies {
    let chunks = if values.choice("pf") == "pf1" { 1 } else { 2 };
    Policies {
        congestion: Box::new(Standard::new(gate(values), Some(chunks))),
        failover: Box::new(PotentiallyFailed),
        ..build_cmt(values)
    }
}
