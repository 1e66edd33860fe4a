//! `nr-sack`: acknowledgements that let the sender release chunks behind a hole.
//!
//! NR-SACK (Yilmaz et al. 2010, draft-natarajan-tsvwg-sctp-nrsack): acknowledgements that also report the data that the receiver
//! will not renege on, so that the sender can release it. The inner policy determines their timing.

use anabranch_core::policy::{
    AckForm, AckPolicy, AckTiming, Arrival, Context, Decision, Event, EventSet, Policies, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;

use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Parameter, Role, Values};

const KEEPS_ALL: ChoiceParameter<bool> = ChoiceParameter {
    name: "keeps",
    options: &[("all", true), ("delivered", false)],
    default: "all",
    about: "data that the receiver never drops: all received data, or data delivered to the application",
    source: "Yilmaz et al. 2010; ns-2.35 has the latter only",
};

const PARAMETERS: &[Parameter] = &[KEEPS_ALL.parameter()];

const CARD: Card = Card {
    summary: &[
        "The receiver answers with NR-SACKs, whose second list of gap ack blocks names data that it never drops.",
        "The sender releases that data at once instead of storing it until the cumulative TSN passes it, which",
        "frees its send buffer while a hole is open. It frees nothing at the receiver, and has no effect",
        "on a sender with an unlimited buffer. The times of SACKs do not change.",
    ],
    equations: &[&[Equation {
        name: "draft-natarajan-tsvwg-sctp-nrsack",
        rule: "release TSN if it is in an NR gap block; loss and windows as with the union of both lists",
        file: file!(),
    }]],
    choices: &[&[Choice {
        question: "Which data does a receiver never drop?",
        answer: "All of it, since this receiver never drops acknowledged data. To promise only data that was delivered to the \
                 application, as ns-2 does, equals SACK on a single ordered stream: no data behind a hole is delivered.",
        parameter: "keeps",
    }]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "nr-sack",
    about: "Acknowledges with NR-SACKs, so that the sender releases data that has arrived behind a hole",
    source: "Yilmaz et al. 2010; draft-natarajan-tsvwg-sctp-nrsack; ns-2.35",
    role: Role::Acknowledgement,
    needs_multipath: false,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let ack = NonRenegable { inner: policies.ack, keeps_all: KEEPS_ALL.get(values) };
    Policies { ack: Box::new(ack), ..policies }
}

/// Policy that sends another policy's acknowledgements as NR-SACKs.
pub struct NonRenegable {
    /// Policy for timing and flags.
    pub inner: Box<dyn AckPolicy>,
    /// Set if the receiver keeps all received data; otherwise it keeps only data delivered to the application.
    pub keeps_all: bool,
}

impl Slot for NonRenegable {
    forward! { inner:
        fn events(&self, profile: &Profile) -> EventSet;
        fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) -> ();
        fn deadline(&self) -> Option<Time>;
    }
}

impl AckPolicy for NonRenegable {
    fn copied(&self) -> Option<Box<dyn AckPolicy>> {
        Some(Box::new(NonRenegable { inner: self.inner.copied()?, ..*self }))
    }

    fn form(&self) -> AckForm {
        AckForm::NrSack { keeps_all: self.keeps_all }
    }

    forward! { inner:
        fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming>;
        fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::DelayedAcks;
    use crate::testing::World;
    use anabranch_core::time::Span;

    const DELAYED: DelayedAcks = DelayedAcks { every: 2, delay: Span::from_millis(200), for_cmt: true };

    #[test]
    fn form_of_sack_reports_retained_data() {
        for keeps_all in [false, true] {
            let acks = NonRenegable { inner: Box::new(DELAYED), keeps_all };
            assert_eq!(acks.form(), AckForm::NrSack { keeps_all });
        }
        assert_eq!(DELAYED.form(), AckForm::Sack);
    }

    #[test]
    fn timing_and_flags_come_from_the_wrapped_policy() {
        let world = World::new(Profile::ns2_multipath(), 2);
        let mut acks = NonRenegable { inner: Box::new(DELAYED), keeps_all: true };
        let mut plain = DELAYED;
        for bits in 0..32 {
            let [gap, duplicate, immediate, first] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let arrival = Arrival { packets: 1 + bits / 16, gap, duplicate, immediate, first };
            assert_eq!(acks.timing(&arrival, &world.view()), plain.timing(&arrival, &world.view()));
        }
        for by_timer in [false, true] {
            for packets in [0, 1, 300] {
                let flags =
                    [&acks as &dyn AckPolicy, &plain].map(|a| a.flags(packets, by_timer, &world.profile));
                assert_eq!(flags[0], flags[1]);
            }
        }
        assert_eq!(acks.deadline(), None);
    }
}
