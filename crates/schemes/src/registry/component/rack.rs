//! `rack`: losses by time, and probes of tails.

use anabranch_core::policy::Policies;

use crate::loss::{Rack, RackSettings};
use crate::registry::component::{Component, Role, unchanged};
use crate::registry::preset::shared::switch;
use crate::registry::{Card, Choice, Equation, Kind, Parameter, Value, Values};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "divisor",
        kind: Kind::Count { min: 1, max: 100 },
        unit: "parts",
        default: Value::Number(4),
        about: "parts of the least round-trip time of which the reordering window has one or more",
        source: "RFC 8985 section 6.2 step 4",
    },
    switch(
        "reports",
        true,
        "enough missing reports close the reordering window while nothing was reordered",
        "RFC 8985 section 6.2 step 4: DupThresh",
    ),
    switch("tail-probe", true, "probe a tail that nothing acknowledges", "RFC 8985 section 7"),
    Parameter {
        name: "ack-delay",
        kind: Kind::Milliseconds { min: 0, max: 500 },
        unit: "ms",
        default: Value::Number(200),
        about: "longest delay of the peer's SACKs, for the probe of a single chunk",
        source: "RFC 8985 section 7.2: TLP.max_ack_delay; RFC 9260 section 6.2: 200 ms",
    },
];

const RECORD: &str = "crates/schemes/src/loss/rack/record.rs";
const TAIL: &str = "crates/schemes/src/loss/rack/tail.rs";

const CARD: Card = Card {
    summary: &[
        "On each path a chunk is lost when something that left later on the same path has been delivered",
        "and a round trip plus a reordering window has passed since it left. That holds for retransmissions",
        "too, which missing reports cannot find lost. The window widens when retransmissions prove needless.",
        "Two round trips after the last of a path's data left or was acknowledged, its latest chunk goes",
        "again as a probe. T3 stays as the last resort.",
    ],
    equations: &[
        Equation {
            name: "RFC 8985 section 6.2 step 2",
            rule: "RACK.rtt = now - sent; skip a retransmission answered in less than min_RTT",
            place: RECORD,
        },
        Equation {
            name: "RFC 8985 section 6.2 step 3",
            rule: "reordering seen: a chunk sent once arrives after one with a higher TSN",
            place: RECORD,
        },
        Equation {
            name: "RFC 8985 section 6.2 step 4",
            rule: "reo_wnd = min(mult * min_RTT / 4, srtt); 0 in recovery or after enough reports without reordering",
            place: RECORD,
        },
        Equation {
            name: "RFC 8985 section 6.2 step 5",
            rule: "lost if sent before the latest delivered and sent + RACK.rtt + reo_wnd <= now",
            place: RECORD,
        },
        Equation {
            name: "RFC 8985 section 7.2",
            rule: "PTO = 2 * srtt (+ ack-delay for a single chunk), or 1 s without srtt",
            place: TAIL,
        },
    ],
    choices: &[
        Choice {
            question: "TCP has one path. What becomes of RACK with several?",
            answer: "Every variable is the path's own, since order and round trips mean nothing across paths. A round of \
                     duplicate reports ends when something sent on the path after its beginning arrives.",
            parameter: "",
        },
        Choice {
            question: "What are DupThresh and segs_sacked?",
            answer: "The missing reports and the trigger of the scheme that this is added to, chunk by chunk.",
            parameter: "reports",
        },
        Choice {
            question: "What is probed with?",
            answer: "Always the latest chunk of the path. RFC 8985 prefers new data, whatever the window says, if there is some; \
                     a loss policy has no say in new data here.",
            parameter: "tail-probe",
        },
        Choice {
            question: "What does a loss do that only the probe repaired (section 7.4)?",
            answer: "Nothing: no SACK tells a chunk that arrived late from one that its probe replaced, unless it reports a duplicate.",
            parameter: "",
        },
        Choice {
            question: "A probe that was not needed is reported as a duplicate. Does it widen the window?",
            answer: "No: it left without any suspicion of a loss.",
            parameter: "",
        },
        Choice {
            question: "What does T3 mark (section 6.3)?",
            answer: "What it marks without RACK: all of the path (RFC 9260 section 6.3.3 E3). PTO is not cut to the time that T3 has \
                     left; if T3 comes first it ends the wait.",
            parameter: "",
        },
    ],
};

pub(crate) const COMPONENT: Component = Component {
    name: "rack",
    about: "Finds losses by time instead of counts alone, retransmissions included, and probes tails",
    source: "RFC 8985 (RACK-TLP), applied to each path",
    role: Role::LossDetection,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    profile: unchanged,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let settings = RackSettings {
        divisor: values.number("divisor"),
        reports_count: values.switch("reports"),
        tail_probe: values.switch("tail-probe"),
        ack_delay: values.milliseconds("ack-delay"),
    };
    Policies { loss: Box::new(Rack::new(policies.loss, settings)), ..policies }
}
