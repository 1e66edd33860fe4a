//! `mptcp-ns2`: Nishida's MPTCP module for ns-2, the papers' MPTCP, as closely as one SCTP association can reproduce it.

use anabranch_core::policy::{CongestionControl, Policies};
use anabranch_core::profile::Profile;

use crate::ack::delayed::{SACK_DELAY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl, Wrapped};
use crate::definition::{Card, Choice, Kind, Parameter, Preset, Role, Value, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::mptcp_lia::LiaGrowth;
use crate::preset::mptcp_ns2::cap::Cap;
use crate::preset::mptcp_ns2::index_order::IndexOrder;
use crate::preset::{cmt, mptcp_lia};
use crate::retransmit::rtx;

pub mod cap;
pub mod index_order;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "window-cap",
        kind: Kind::Count { min: 0, max: 100_000 },
        unit: "chunks",
        default: Value::Number(20),
        about: "largest congestion window of a path; 0 sets no limit",
        source: "ns-2: window_ of a TCP agent is 20 packets unless a script sets it",
    },
    Parameter::switch(
        "shared-window",
        false,
        "the association's receive window limits the outstanding data of all paths together",
        "the module has none",
    ),
    Parameter {
        name: "rto-min",
        kind: Kind::Milliseconds { min: 1, max: 60_000 },
        unit: "ms",
        default: Value::Number(200),
        about: "lower limit of the retransmission time-out",
        source: "ns-2: minrto_ of a TCP agent is 0.2 s",
    },
    rtx("rtx-same"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    Parameter {
        name: "sack-every",
        kind: Kind::Count { min: 1, max: 100 },
        unit: "packets",
        default: Value::Number(1),
        about: "packets that one SACK acknowledges",
        source: "ns-2: segsperack_ of FullTcp is 1",
    },
    SACK_DELAY,
    floor("2"),
];

const CARD: Card = Card {
    summary: &[
        "LIA on every path, windows filled in the order of paths and no larger than 20 packets, lost chunks",
        "retransmitted only on their own path, TCP's time-outs, and no receive window common to all paths.",
        "It represents the simulated MPTCP of the papers, not that of Linux, which has another scheduler,",
        "retransmits the head of line on other paths, and shares its receive window.",
    ],
    equations: &[&[mptcp_lia::LINKED_INCREASE], cap::RULES, index_order::RULES],
    choices: &[&[
        Choice {
            question: "What would a sequence space per subflow change?",
            answer: "A subflow's acknowledgements would be cumulative: duplicate acknowledgements and recovery would refer to \
                     that path only, its round-trip times could be measured at any segment, and data lost on it could never \
                     be sent on another path without a second copy on the first. Split fast retransmit, pseudo-cumulative \
                     TSNs and `rtx-same` give the same results, except for chunks that have been sent more than once and for \
                     SACKs that overtake each other on different paths, which report all paths at once here.",
            parameter: "sfr, cuc, dac, rtx",
        },
        Choice {
            question: "How large may a window become?",
            answer: "20 packets, the default of ns-2's TCP agents; the papers do not mention the setting. There the limit \
                     applies to the data sent, here to the window itself. After a loss both are half of the smaller value.",
            parameter: "window-cap",
        },
        Choice {
            question: "Does a receive window limit all paths together?",
            answer: "No. The module's code has none, although the papers list a receive buffer for MPTCP.",
            parameter: "shared-window",
        },
        Choice {
            question: "What happens to new data on a subflow that has timed out twice?",
            answer: "The module skips it while its time-out is backed off fourfold or more. Here the lost chunk fills its \
                     window of one packet, so that new data has no room there either.",
            parameter: "",
        },
        Choice {
            question: "How many packets does an acknowledgement cover?",
            answer: "One, the default of FullTcp.",
            parameter: "sack-every",
        },
        mptcp_lia::COUPLED_PATHS,
        mptcp_lia::BYTES_COUNTED,
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "mptcp-ns2",
    about: "The MPTCP of the papers' ns-2 runs: LIA, windows filled in order, none larger than 20 packets",
    source: "Nishida 2013, MPTCP for ns-2; Sharma, Verma, Kumar, Experimental Analysis of Concurrent Multi-path Transmission Schemes",
    multipath: true,
    coupled: true,
    unfair_because: "",
    owns: &[Role::Scheduler, Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile,
    build,
};

fn profile(values: &Values, row: Profile) -> Profile {
    let rto_min = values.milliseconds("rto-min").min(row.rto_max);
    floored(values, Profile { rto_min, shared_receive_window: values.switch("shared-window"), ..row })
}

fn build(values: &Values) -> Policies {
    let control = WindowControl::new(GrowthGate::from_values(values)).with_growth(LiaGrowth::default());
    let congestion: Box<dyn CongestionControl> = match values.number("window-cap") {
        0 => Box::new(control),
        chunks => Box::new(Wrapped::new(Cap::new(u64::from(chunks)), Box::new(control))),
    };
    Policies { scheduler: Box::new(IndexOrder), congestion, ..cmt::build(values) }
}
