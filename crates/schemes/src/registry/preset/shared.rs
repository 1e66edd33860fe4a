//! Parameters that many schemes share, and the policies they choose.

use anabranch_core::policy::RetransmitPath;

use crate::ack::DelayedAcks;
use crate::congestion::GrowthGate;
use crate::loss::MissingReports;
use crate::registry::{Kind, Parameter, Value, Values};
use crate::retransmit::{Alternate, Asap, Best, Preference, Same};

pub(crate) const RTX_NAMES: &[&str] = &["rtx-same", "rtx-asap", "rtx-cwnd", "rtx-ssthresh", "rtx-lossrate"];

pub(crate) const TRIGGER: Parameter = Parameter {
    name: "trigger",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "missing reports",
    default: Value::Number(3),
    about: "reports that make a chunk lost",
    source: "RFC 9260 section 7.2.4: 3; RFC 2960 and the papers' text: 4",
};

pub(crate) const SACK_EVERY: Parameter = Parameter {
    name: "sack-every",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "packets",
    default: Value::Number(2),
    about: "packets that one SACK answers",
    source: "RFC 9260 section 6.2",
};

pub(crate) const SACK_DELAY: Parameter = Parameter {
    name: "sack-delay",
    kind: Kind::Milliseconds { min: 0, max: 500 },
    unit: "ms",
    default: Value::Number(200),
    about: "longest delay of a SACK",
    source: "RFC 9260 section 6.2",
};

pub(crate) const fn rtx(default: &'static str) -> Parameter {
    Parameter {
        name: "rtx",
        kind: Kind::Choice(RTX_NAMES),
        unit: "",
        default: Value::Choice(default),
        about: "where a lost chunk goes again",
        source: "Iyengar 2006, section on retransmission policies",
    }
}

pub(crate) const fn switch(
    name: &'static str,
    default: bool,
    about: &'static str,
    source: &'static str,
) -> Parameter {
    Parameter { name, kind: Kind::Switch, unit: "", default: Value::Switch(default), about, source }
}

pub(crate) const fn sfr(default: bool) -> Parameter {
    switch(
        "sfr",
        default,
        "split fast retransmit: only acks of a chunk's own path report it missing",
        "Iyengar 2006, SFR",
    )
}

pub(crate) const fn cuc(default: bool) -> Parameter {
    switch(
        "cuc",
        default,
        "a path's window grows with its own pseudo-cumulative TSN",
        "Iyengar 2006, CUC version 2",
    )
}

pub(crate) const fn dac(default: bool) -> Parameter {
    switch(
        "dac",
        default,
        "gaps do not hurry SACKs, which say how many packets they answer",
        "Iyengar 2006, DAC",
    )
}

pub(crate) fn retransmit(values: &Values) -> Box<dyn RetransmitPath> {
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

pub(crate) fn acks(values: &Values) -> DelayedAcks {
    DelayedAcks {
        every: values.number("sack-every"),
        delay: values.milliseconds("sack-delay"),
        for_cmt: values.switch("dac"),
    }
}

pub(crate) fn missing_reports(values: &Values) -> MissingReports {
    MissingReports {
        trigger: values.number("trigger"),
        split: values.switch("sfr"),
        delayed_acks: values.switch("dac"),
    }
}

pub(crate) fn gate(values: &Values) -> GrowthGate {
    if values.switch("cuc") { GrowthGate::PseudoCumulative } else { GrowthGate::Cumulative }
}
