//! Parameters that many schemes share, and the policies they choose.

use anabranch_core::policy::RetransmitPath;
use anabranch_core::profile::Profile;

use crate::ack::DelayedAcks;
use crate::congestion::cut::Floor;
use crate::congestion::growth::{Applies, RateDifferenceGrowth, RttSource};
use crate::congestion::{FirstWindow, GrowthGate};
use crate::loss::MissingReports;
use crate::registry::{Kind, Length, Parameter, Value, Values};
use crate::retransmit::{Alternate, Asap, Best, Preference, Same, Soonest};

pub(crate) const RTX_NAMES: &[&str] =
    &["rtx-same", "rtx-asap", "rtx-cwnd", "rtx-ssthresh", "rtx-lossrate", "rtx-cl", "rtx-soonest"];

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

/// The least threshold after a cut, for schemes that leave it to the profile or name a number of chunks.
pub(crate) const fn floor(default: &'static str) -> Parameter {
    Parameter {
        name: "floor",
        kind: Kind::Choice(&["profile", "2", "4"]),
        unit: "",
        default: Value::Choice(default),
        about: "least slow-start threshold after a loss: the profile's, or 2 or 4 largest chunks",
        source: "RFC 9260 section 7.2.3: 4; ns-2's CMT agent: 2",
    }
}

/// The same for schemes whose publication has a rule of its own.
pub(crate) const fn own_floor(source: &'static str) -> Parameter {
    Parameter {
        name: "floor",
        kind: Kind::Choice(&["published", "profile", "2", "4"]),
        unit: "",
        default: Value::Choice("published"),
        about: "least slow-start threshold after a loss: the publication's, the profile's, or 2 or 4 largest chunks",
        source,
    }
}

/// The rules with the floor that the parameter says.
pub(crate) fn floored(values: &Values, row: Profile) -> Profile {
    let chunks = match values.choice("floor") {
        "2" => 2,
        "4" => 4,
        _ => return row,
    };
    Profile { fast_retransmit_floor: chunks, timeout_floor: chunks, ..row }
}

/// Whose floor a rule with one of its own has to keep to.
pub(crate) fn whose_floor(values: &Values) -> Floor {
    if values.choice("floor") == "published" { Floor::Published } else { Floor::Profile }
}

pub(crate) const fn rtx(default: &'static str) -> Parameter {
    Parameter {
        name: "rtx",
        kind: Kind::Choice(RTX_NAMES),
        unit: "",
        default: Value::Choice(default),
        about: "where a lost chunk goes again",
        source: "Iyengar 2006, section on retransmission policies; `rtx-cl`: DB-CMT section 4.2; `rtx-soonest`: ours",
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

/// Which round-trip time delay-based rules look at.
pub(crate) const RTT: Parameter = Parameter {
    name: "rtt",
    kind: Kind::Choice(&["srtt", "latest"]),
    unit: "",
    default: Value::Choice("srtt"),
    about: "a path's present round-trip time: smoothed, or the latest sample",
    source: "DB-CMT section 4.1 says RTT only",
};

pub(crate) const LAMBDA: Parameter = Parameter {
    name: "lambda",
    kind: Kind::Length,
    unit: "",
    default: Value::Length(Length::Chunks(1.0)),
    about: "rate difference below which a window grows by a whole chunk",
    source: "not published; TCP Vegas's alpha in ns-2: 1 packet",
};

pub(crate) const DELTA: Parameter = Parameter {
    name: "delta",
    kind: Kind::Length,
    unit: "",
    default: Value::Length(Length::Chunks(3.0)),
    about: "rate difference above which a window does not grow",
    source: "not published; TCP Vegas's beta in ns-2: 3 packets",
};

pub(crate) const APPLY: Parameter = Parameter {
    name: "apply",
    kind: Kind::Choice(&["avoidance", "every-sack"]),
    unit: "",
    default: Value::Choice("avoidance"),
    about: "where the rate difference decides: on each step of congestion avoidance, or on each SACK that lets a window grow",
    source: "DB-CMT equation 4 does not say",
};

pub(crate) fn rtt_source(values: &Values) -> RttSource {
    if values.choice("rtt") == "latest" { RttSource::Latest } else { RttSource::Smoothed }
}

/// Growth by DB-CMT's equation 4.
pub(crate) fn rate_difference_growth(values: &Values) -> RateDifferenceGrowth {
    let every_sack = values.choice("apply") == "every-sack";
    RateDifferenceGrowth {
        lambda: values.length("lambda"),
        delta: values.length("delta"),
        rtt: rtt_source(values),
        applies: if every_sack { Applies::EverySack } else { Applies::Avoidance },
    }
}

/// rpMin of resource pooling.
pub(crate) const RP_MIN: Parameter = Parameter {
    name: "rp-min",
    kind: Kind::Decimal { min: 0.0, max: 100.0 },
    unit: "",
    default: Value::Decimal(1.0),
    about: "least slow-start threshold of resource pooling, in largest chunks",
    source: "INET: cmtRPMinCwnd, 1",
};

pub(crate) const INITIAL_WINDOW: Parameter = Parameter {
    name: "initial-window",
    kind: Kind::Choice(&["shared", "whole"]),
    unit: "",
    default: Value::Choice("shared"),
    about: "first windows: four chunks shared by all paths, or what the profile gives each",
    source: "INET and usrsctp share it",
};

pub(crate) fn first_window(values: &Values) -> FirstWindow {
    if values.choice("initial-window") == "whole" { FirstWindow::Whole } else { FirstWindow::Shared }
}

pub(crate) fn retransmit(values: &Values) -> Box<dyn RetransmitPath> {
    match values.choice("rtx") {
        "rtx-same" => Box::new(Same),
        "rtx-soonest" => Box::new(Soonest),
        "rtx-asap" => Box::new(Asap),
        "rtx-ssthresh" => Box::new(Best { by: Preference::Ssthresh }),
        "rtx-lossrate" => Box::new(Best { by: Preference::LossRate }),
        "rtx-cl" => Box::new(Best { by: Preference::CwndThenLossRate }),
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
