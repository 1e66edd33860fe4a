//! NR-SACK (Yilmaz et al. 2010, draft-natarajan-tsvwg-sctp-nrsack): acknowledgements that also say what the receiver will
//! never drop again, so that the sender need not keep it. When they are sent is the affair of the policy inside.

use anabranch_core::policy::{AckForm, AckPolicy, AckTiming, Arrival, Context, Decision, Event, Slot, View};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;

/// Another policy's acknowledgements, as NR-SACKs.
pub struct NonRenegable {
    /// When to acknowledge, and with what flags.
    pub inner: Box<dyn AckPolicy>,
    /// Whether the receiver keeps all that has arrived, or only what the application has been handed.
    pub keeps_all: bool,
}

impl Slot for NonRenegable {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl AckPolicy for NonRenegable {
    fn form(&self) -> AckForm {
        AckForm::NrSack { keeps_all: self.keeps_all }
    }

    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming> {
        self.inner.timing(arrival, view)
    }

    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        self.inner.flags(packets, by_timer, profile)
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
    fn the_form_says_what_is_kept() {
        for keeps_all in [false, true] {
            let acks = NonRenegable { inner: Box::new(DELAYED), keeps_all };
            assert_eq!(acks.form(), AckForm::NrSack { keeps_all });
        }
        assert_eq!(DELAYED.form(), AckForm::Sack);
    }

    #[test]
    fn timing_and_flags_are_those_of_the_policy_inside() {
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
