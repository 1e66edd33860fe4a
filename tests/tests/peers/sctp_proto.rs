//! Interoperation with sctp-proto.

use crate::peers::exchange::exchange;
use crate::peers::sctp_proto_host::SctpProto;

const LOSS: f64 = 0.03;

#[test]
fn sctp_proto_server_exchanges_all_messages() {
    exchange(SctpProto::new, true, 0.0, 1);
}

#[test]
fn sctp_proto_client_exchanges_all_messages() {
    exchange(SctpProto::new, false, 0.0, 2);
}

#[test]
fn sctp_proto_server_repairs_losses() {
    for seed in 3..8 {
        exchange(SctpProto::new, true, LOSS, seed);
    }
}

#[test]
fn sctp_proto_client_repairs_losses() {
    for seed in 8..13 {
        exchange(SctpProto::new, false, LOSS, seed);
    }
}
