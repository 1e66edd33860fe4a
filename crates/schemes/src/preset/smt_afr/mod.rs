//! `smt-afr`: CMT whose fast retransmit needs fewer reports the fuller the peer's receive buffer is.

use anabranch_core::policy::Policies;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::definition::{Card, Choice, ChoiceParameter, Kind, Parameter, Preset, Role, Value, Values};
use crate::loss::MissingReports;
use crate::loss::missing_reports::sfr;
use crate::preset::cmt;
use crate::preset::smt_afr::adaptive_trigger::{Adaptation, AdaptiveTrigger, FreeSpace, Pivots};
use crate::retransmit::rtx;

pub mod adaptive_trigger;

const fn pivot(name: &'static str, default: f64, about: &'static str) -> Parameter {
    Parameter {
        name,
        kind: Kind::Decimal { min: 0.0, max: 1.0 },
        unit: "",
        default: Value::Decimal(default),
        about,
        source: "Khan 2018 gives no values; from its text on Fig. 2",
    }
}

const CONSECUTIVE: ChoiceParameter<bool> = ChoiceParameter {
    name: "counted",
    options: &[("all", false), ("consecutive", true)],
    default: "all",
    about: "`true` if SACKs in another zone end the count",
    source: "Khan 2018, Fig. 4: they do not",
};

const FREE: ChoiceParameter<FreeSpace> = ChoiceParameter {
    name: "free",
    options: &[("advertised", FreeSpace::Advertised), ("less-outstanding", FreeSpace::LessOutstanding)],
    default: "advertised",
    about: "measure of the free space: the advertised window, or that minus outstanding data",
    source: "Khan 2018, Fig. 4: `buffer space advertised`",
};

const PARAMETERS: &[Parameter] = &[
    pivot("p1", 0.4, "free share of the receive buffer below which it is critical"),
    pivot("p2", 0.8, "free share from which it is moderate"),
    pivot("p3", 0.9, "free share above which it is tolerable"),
    Parameter {
        name: "occurrences",
        kind: Kind::Count { min: 1, max: 1000 },
        unit: "SACKs",
        default: Value::Number(10),
        about: "number of SACKs in a zone that lower the next pivot (O_TD)",
        source: "Khan 2018 gives no value",
    },
    CONSECUTIVE.parameter(),
    FREE.parameter(),
    rtx("rtx-cwnd"),
    sfr(false),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but the number of reports that declare a chunk lost depends on the free share of the peer's",
        "receive buffer: 3 in the critical zone, 4 in the substantial, 5 in the moderate and 6 in the tolerable one.",
        "Three pivots separate the zones. SACKs within a zone lower the pivot above it, so that the same level",
        "requires more reports later; only the critical zone resets the pivots.",
    ],
    equations: &[adaptive_trigger::RULES],
    choices: &[&[
        Choice {
            question: "What are the initial pivots?",
            answer: "0.4 and 0.8, which the text on Fig. 2 names as the limits of a trigger of 3 and of 5; 0.9 is half way up \
                     from there.",
            parameter: "p1, p2, p3",
        },
        Choice {
            question: "How many SACKs make an occurrence threshold?",
            answer: "10: more than the reordering within one window; the paper has no number.",
            parameter: "occurrences",
        },
        Choice {
            question: "What is r?",
            answer: "The advertised window over the first advertised one: Fig. 4 mentions the space advertised.",
            parameter: "free",
        },
        Choice {
            question: "Does leaving a zone reset its count?",
            answer: "No, not even the critical zone does: Fig. 4 resets a count only if it moves a pivot.",
            parameter: "counted",
        },
        Choice {
            question: "Fig. 4 has r = P3 in two zones. Which one is it?",
            answer: "Moderate: the first condition of Fig. 4 that holds.",
            parameter: "",
        },
        Choice {
            question: "When is the trigger set?",
            answer: "At each SACK with a hole, before its reports are counted. Without a hole there is nothing to report, and \
                     no out-of-order data fills the buffer.",
            parameter: "",
        },
        Choice {
            question: "Whose reports count: those about the chunk's own path (split fast retransmit), or all?",
            answer: "All. The text counts duplicate acknowledgements, which SACKs cause independently of the path of the data, \
                     does not mention split fast retransmit, and adapts the waiting time of a chunk that data of another path \
                     has overtaken. With `sfr=true` no such data reports it, and there is hardly anything to adapt.",
            parameter: "sfr",
        },
    ]],
};

pub(crate) const PRESET: Preset = Preset {
    name: "smt-afr",
    about: "CMT with a fast-retransmit trigger of 3 to 6 reports that follows the peer's free receive buffer",
    source: "Khan, Qadir, Khan 2018 (SMT-AFR)",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[Role::LossDetection, Role::CongestionControl],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    let pivots = Pivots {
        substantial: values.decimal("p1"),
        moderate: values.decimal("p2"),
        tolerable: values.decimal("p3"),
    };
    let adaptation = Adaptation {
        pivots,
        occurrences: values.number("occurrences"),
        consecutive: CONSECUTIVE.get(values),
        free_space: FREE.get(values),
    };
    Policies {
        loss: Box::new(AdaptiveTrigger::new(MissingReports::from_values(values), adaptation)),
        ..cmt::build(values)
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::parse;
    use crate::testing::{World, path};
    use anabranch_core::policy::{Event, Missing, PathSack, SackDone, SackView, Scheme};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Time;
    use anabranch_core::units::WindowBytes;

    /// Returns the trigger at the last of these SACKs, given as advertised and left in percent of the buffer.
    fn trigger(text: &str, sacks: &[(u64, u64)]) -> Option<u32> {
        let mut policies = parse(text).expect(text).policies();
        let mut world = World::new(Profile::ns2_multipath(), 1);
        world.association.peer_window_initial = WindowBytes::new(100);
        let acked = PathSack { new_gap_ack: true, highest_gap_acked: Some(103), ..PathSack::default() };
        let mut trigger = None;
        for &(a_rwnd, left) in sacks {
            let sack = SackView {
                paths: &[acked],
                cumulative: 100,
                highest_newly_acked: 103,
                new_cumulative: false,
                flags: 1,
                a_rwnd: WindowBytes::new(a_rwnd),
                peer_window: WindowBytes::new(left),
            };
            policies.loss.holes(&sack, &world.view());
            trigger = (1..20).find(|reports| {
                let hole = Missing { reports: reports - 1, ..Missing::sent_once(101, path(0), Time::ZERO) };
                policies.loss.missing(&hole, &sack, &world.view()).lost
            });
            let done = SackDone { paths: &[], new_cumulative: false, cumulative: 100 };
            world.dispatch(&mut *policies.loss, &Event::SackDone(&done));
        }
        trigger
    }

    #[test]
    fn the_pivots_are_where_the_parameters_put_them() {
        let at = |text, share| trigger(text, &[(share, 0)]);
        assert_eq!([39, 40, 80, 91].map(|share| at("smt-afr", share)), [Some(3), Some(4), Some(5), Some(6)]);
        let moved = "smt-afr(p1=0.1,p2=0.2,p3=0.3)";
        assert_eq!([9, 10, 20, 31].map(|share| at(moved, share)), [Some(3), Some(4), Some(5), Some(6)]);
    }

    #[test]
    fn free_space_counts_and_sequence_are_parameters() {
        assert_eq!(trigger("smt-afr(free=less-outstanding)", &[(95, 10)]), Some(3));
        assert_eq!(trigger("smt-afr(occurrences=1)", &[(50, 0); 2]), Some(5));
        assert_eq!(trigger("smt-afr", &[(50, 0); 10]), Some(4));
        assert_eq!(trigger("smt-afr", &[(50, 0); 11]), Some(5));
        let interrupted = [(50, 0), (30, 0), (50, 0), (50, 0)];
        assert_eq!(trigger("smt-afr(occurrences=2)", &interrupted), Some(5));
        assert_eq!(trigger("smt-afr(occurrences=2,counted=consecutive)", &interrupted), Some(4));
    }
}
