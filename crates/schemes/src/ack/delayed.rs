//! Delayed acknowledgements (RFC 9260 section 6.2), with or without CMT's rule for gaps.

use anabranch_core::policy::{AckForm, AckPolicy, AckTiming, Arrival, Decision, Reason, View};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;

use crate::definition::{Equation, Kind, Parameter, Value, Values};

pub(crate) const SACK_EVERY: Parameter = Parameter {
    name: "sack-every",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "packets",
    default: Value::Number(2),
    about: "packets that one SACK acknowledges",
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

pub(crate) const fn dac(default: bool) -> Parameter {
    Parameter::switch(
        "dac",
        default,
        "gaps trigger no SACK at once, and SACKs state the number of packets that they acknowledge",
        "Iyengar 2006, DAC",
    )
}

pub(crate) const DELAYED_ACKS: Equation = Equation {
    name: "RFC 9260 section 6.2, delayed acknowledgements",
    rule: "a SACK for every `sack-every` packets with DATA, at the latest `sack-delay` after the first of them; at once for a \
           duplicate, for a chunk with the I bit, and for a gap",
    file: file!(),
};

pub(crate) const DAC_RECEIVER: Equation = Equation {
    name: "DAC, receiver",
    rule: "a gap triggers no SACK at once; the flags of a SACK contain the number of packets with DATA that it acknowledges",
    file: file!(),
};

/// Policy that sends a SACK for every n-th packet or after a delay.
#[derive(Clone, Copy, Debug)]
pub struct DelayedAcks {
    /// Number of packets per SACK.
    pub every: u32,
    /// Maximum delay.
    pub delay: Span,
    /// Enables CMT's delayed acks (Iyengar 2006, algorithm DAC): a gap does not trigger an immediate SACK, and the flags of a SACK
    /// report how many packets it answers.
    pub for_cmt: bool,
}

impl DelayedAcks {
    pub(crate) fn from_values(values: &Values) -> Self {
        DelayedAcks {
            every: values.number("sack-every"),
            delay: values.milliseconds("sack-delay"),
            for_cmt: values.switch("dac"),
        }
    }

    /// Returns the reason for acknowledging this packet at once, or `None`.
    fn immediate_reason(&self, arrival: &Arrival, view: &View<'_>) -> Option<&'static str> {
        //= docs/rfc9260.txt#section-6.2
        //# Upon receipt of an SCTP packet containing a DATA chunk with the I bit set, the receiver SHOULD NOT delay the
        //# sending of the corresponding SACK chunk, i.e., the receiver SHOULD immediately respond with the corresponding
        //# SACK chunk.
        if arrival.immediate {
            // RFC 7053 section 4.2.
            return Some("the sender requested it");
        }
        //= docs/rfc9260.txt#section-6.2
        //# When a packet arrives with duplicate DATA chunk(s) and with no new DATA chunk(s), the endpoint MUST
        //# immediately send a SACK chunk with no delay.
        if arrival.duplicate {
            // RFC 9260 section 6.7.
            return Some("a duplicate arrived");
        }
        if arrival.first {
            // RFC 9260 section 5.1.
            return Some("the first DATA arrived");
        }
        //= docs/rfc9260.txt#section-6.7
        //# If the endpoint detects a gap in the received DATA chunk sequence, it SHOULD send a SACK chunk with Gap Ack
        //# Blocks immediately.
        //= docs/rfc9260.txt#section-7.2.4
        //# However, whenever an endpoint notices a hole in the arriving TSN sequence, it SHOULD start sending a SACK
        //# chunk back every time a packet arrives carrying data until the hole is filled.
        if arrival.gap && (!self.for_cmt || view.association.foreign_sack_flags) {
            // RFC 9260 section 6.7. A peer that ignores the number of answered packets counts SACKs.
            return Some("a TSN is missing");
        }
        None
    }

    fn is_enough(&self, arrival: &Arrival) -> bool {
        //= docs/rfc9260.txt#section-6.2
        //# The guidelines on the delayed acknowledgement algorithm specified in Section 4.2 of [RFC5681] SHOULD be
        //# followed.
        //= docs/rfc9260.txt#section-6.2
        //# Specifically, an acknowledgement SHOULD be generated for at least every second packet (not every second DATA
        //# chunk) received and SHOULD be generated within 200 ms of the arrival of any unacknowledged DATA chunk.
        //= docs/rfc9260.txt#section-6.2
        //# However, an SCTP transmitter MUST NOT be more aggressive in sending SACK chunks than the following algorithms
        //# allow.
        arrival.packets >= self.every
    }
}

ignores_events! { DelayedAcks }

impl AckPolicy for DelayedAcks {
    copied!(AckPolicy);

    fn form(&self) -> AckForm {
        AckForm::Sack
    }

    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming> {
        match self.immediate_reason(arrival, view) {
            Some(rule) => Decision::new(AckTiming::Now, Reason::rule(rule)),
            None if self.is_enough(arrival) => {
                Decision::new(AckTiming::Together, Reason::rule("enough packets"))
            }
            None => Decision::new(AckTiming::Within(self.delay), Reason::rule("delayed")),
        }
    }

    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        if !self.for_cmt || (by_timer && profile.timer_sack_counts_zero) {
            return 0;
        }
        u8::try_from(packets).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    const DELAY: Span = Span::from_millis(200);
    const PLAIN: DelayedAcks = DelayedAcks { every: 2, delay: DELAY, for_cmt: false };
    const CMT: DelayedAcks = DelayedAcks { for_cmt: true, ..PLAIN };
    /// Packet in order, one after the latest SACK.
    const ARRIVAL: Arrival =
        Arrival { packets: 1, gap: false, duplicate: false, immediate: false, first: false };

    fn timing(policy: DelayedAcks, arrival: Arrival) -> AckTiming {
        let mut policy = policy;
        policy.timing(&arrival, &World::new(Profile::ns2_multipath(), 2).view()).choice
    }

    //= docs/rfc9260.txt#section-6.2
    //= type=test
    //# Specifically, an acknowledgement SHOULD be generated for at least every second packet (not every second DATA
    //# chunk) received and SHOULD be generated within 200 ms of the arrival of any unacknowledged DATA chunk.
    #[test]
    fn every_second_packet_is_acknowledged_and_the_first_within_the_delay() {
        for policy in [PLAIN, CMT] {
            assert_eq!(timing(policy, ARRIVAL), AckTiming::Within(DELAY));
            assert_eq!(timing(policy, Arrival { packets: 2, ..ARRIVAL }), AckTiming::Together);
        }
    }

    #[test]
    fn count_beyond_the_threshold_still_requests_a_sack() {
        assert_eq!(timing(CMT, Arrival { packets: 3, ..ARRIVAL }), AckTiming::Together);
    }

    #[test]
    fn packets_per_sack_and_delay_are_the_policys_own() {
        let policy = DelayedAcks { every: 4, delay: Span::from_millis(50), for_cmt: false };
        let within = AckTiming::Within(Span::from_millis(50));
        let decided = [1, 2, 3, 4].map(|packets| timing(policy, Arrival { packets, ..ARRIVAL }));
        assert_eq!(decided, [within, within, within, AckTiming::Together]);
        assert_eq!(timing(DelayedAcks { every: 1, ..PLAIN }, ARRIVAL), AckTiming::Together);
    }

    //= docs/rfc9260.txt#section-6.7
    //= type=test
    //# If the endpoint detects a gap in the received DATA chunk sequence, it SHOULD send a SACK chunk with Gap Ack Blocks
    //# immediately.
    //= docs/rfc9260.txt#section-7.2.4
    //= type=test
    //# However, whenever an endpoint notices a hole in the arriving TSN sequence, it SHOULD start sending a SACK chunk
    //# back every time a packet arrives carrying data until the hole is filled.
    #[test]
    fn a_gap_hurries_the_sack_unless_delayed_acks_are_cmts() {
        let gap = Arrival { gap: true, ..ARRIVAL };
        assert_eq!(timing(PLAIN, gap), AckTiming::Now);
        assert_eq!(timing(CMT, gap), AckTiming::Within(DELAY));
        assert_eq!(timing(CMT, Arrival { packets: 2, ..gap }), AckTiming::Together);
    }

    #[test]
    fn a_gap_hurries_the_sack_to_a_peer_that_does_not_read_its_flags() {
        let gap = Arrival { gap: true, ..ARRIVAL };
        let mut world = World::new(Profile::net().multipath(), 2);
        for (foreign, expected) in [(false, AckTiming::Within(DELAY)), (true, AckTiming::Now)] {
            world.association.foreign_sack_flags = foreign;
            let mut policy = CMT;
            assert_eq!(policy.timing(&gap, &world.view()).choice, expected);
        }
    }

    //= docs/rfc9260.txt#section-5.1
    //= type=test
    //# After the reception of the first DATA chunk in an association, the endpoint MUST immediately respond with a SACK
    //# chunk to acknowledge the DATA chunk.
    //= docs/rfc9260.txt#section-6.2
    //= type=test
    //# Upon receipt of an SCTP packet containing a DATA chunk with the I bit set, the receiver SHOULD NOT delay the
    //# sending of the corresponding SACK chunk, i.e., the receiver SHOULD immediately respond with the corresponding SACK
    //# chunk.
    //= docs/rfc9260.txt#section-6.2
    //= type=test
    //# When a packet arrives with duplicate DATA chunk(s) and with no new DATA chunk(s), the endpoint MUST immediately
    //# send a SACK chunk with no delay.
    #[test]
    fn a_duplicate_the_first_data_and_the_i_bit_hurry_the_sack_in_both() {
        for policy in [PLAIN, CMT] {
            assert_eq!(timing(policy, Arrival { duplicate: true, ..ARRIVAL }), AckTiming::Now);
            assert_eq!(timing(policy, Arrival { first: true, ..ARRIVAL }), AckTiming::Now);
            assert_eq!(timing(policy, Arrival { immediate: true, ..ARRIVAL }), AckTiming::Now);
        }
    }

    #[test]
    fn the_reason_names_what_hurried_the_sack() {
        let world = World::new(Profile::rfc9260(), 1);
        let cases = [
            (Arrival { immediate: true, ..ARRIVAL }, "the sender requested it"),
            (Arrival { duplicate: true, ..ARRIVAL }, "a duplicate arrived"),
            (Arrival { first: true, ..ARRIVAL }, "the first DATA arrived"),
            (Arrival { gap: true, ..ARRIVAL }, "a TSN is missing"),
            (Arrival { packets: 2, ..ARRIVAL }, "enough packets"),
            (ARRIVAL, "delayed"),
        ];
        for (arrival, rule) in cases {
            let mut policy = PLAIN;
            assert_eq!(policy.timing(&arrival, &world.view()).reason, Reason::rule(rule));
        }
    }

    #[test]
    fn sack_flags_count_packets_only_with_delayed_acks_of_cmt() {
        let profile = Profile::ns2_multipath();
        assert_eq!([0, 1, 2, 7].map(|n| CMT.flags(n, false, &profile)), [0, 1, 2, 7]);
        assert_eq!([0, 1, 2, 7].map(|n| PLAIN.flags(n, false, &profile)), [0; 4]);
    }

    #[test]
    fn a_count_beyond_the_flags_byte_is_its_largest_value() {
        assert_eq!([255, 256, u32::MAX].map(|n| CMT.flags(n, false, &Profile::rfc9260())), [255; 3]);
    }

    #[test]
    fn the_timers_sack_counts_zero_packets_in_ns2_and_its_own_in_the_standard() {
        assert_eq!(CMT.flags(1, true, &Profile::ns2_multipath()), 0);
        assert_eq!(CMT.flags(1, true, &Profile::rfc9260_multipath()), 1);
        assert_eq!(PLAIN.flags(1, true, &Profile::rfc9260()), 0);
    }
}
