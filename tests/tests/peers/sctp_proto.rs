//! Interoperation with sctp-proto.

use crate::peers::exchange::exchange;
use crate::peers::sctp_proto_host::SctpProto;

const LOSS: f64 = 0.03;

#[test]
fn sctp_proto_accepts_our_association_and_both_ends_get_everything() {
    exchange(SctpProto::new, true, 0.0, 1);
}

#[test]
fn sctp_proto_opens_an_association_with_us_and_both_ends_get_everything() {
    exchange(SctpProto::new, false, 0.0, 2);
}

#[test]
fn sctp_proto_accepts_our_association_and_losses_are_made_good() {
    for seed in 3..8 {
        exchange(SctpProto::new, true, LOSS, seed);
    }
}

#[test]
fn sctp_proto_opens_an_association_with_us_and_losses_are_made_good() {
    for seed in 8..13 {
        exchange(SctpProto::new, false, LOSS, seed);
    }
}
