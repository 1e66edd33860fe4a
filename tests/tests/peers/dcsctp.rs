//! Interoperation with dcSCTP.

use anabranch_core::{AssociationConfig, ErrorDetection, StreamScheduler};

use crate::peers::dcsctp_host::{Dcsctp, Features};
use crate::peers::exchange::{exchange, exchange_with};
use crate::rig::association;

const LOSS: f64 = 0.03;

#[test]
fn dcsctp_server_exchanges_all_messages() {
    exchange(|task| Dcsctp::new(task, 1), true, 0.0, 1);
}

#[test]
fn dcsctp_client_exchanges_all_messages() {
    exchange(|task| Dcsctp::new(task, 2), false, 0.0, 2);
}

#[test]
fn dcsctp_server_repairs_losses() {
    for seed in 3..8 {
        exchange(|task| Dcsctp::new(task, seed), true, LOSS, seed);
    }
}

#[test]
fn dcsctp_client_repairs_losses() {
    for seed in 8..13 {
        exchange(|task| Dcsctp::new(task, seed), false, LOSS, seed);
    }
}

/// Returns a configuration in which messages of all streams interleave.
fn interleaving() -> AssociationConfig {
    let mut config = association("sctp");
    config.interleaving = true;
    config.stream_scheduler = StreamScheduler::RoundRobin;
    config
}

#[test]
fn interleaved_messages_are_exchanged_with_dcsctp() {
    let features = Features { interleaving: true, ..Features::default() };
    for (seed, loss) in [(13, 0.0), (14, LOSS), (15, LOSS), (16, LOSS)] {
        for we_connect in [true, false] {
            exchange_with(interleaving(), |task| Dcsctp::with(task, seed, features), we_connect, loss, seed);
        }
    }
}

#[test]
fn dcsctp_without_i_data_gets_data() {
    exchange_with(interleaving(), |task| Dcsctp::new(task, 17), true, LOSS, 17);
}

#[test]
fn dcsctp_exchanges_packets_with_zero_checksums() {
    let features = Features { zero_checksum: true, ..Features::default() };
    let over_dtls =
        || AssociationConfig { error_detection: ErrorDetection::LowerLayerDtls, ..association("sctp") };
    for (seed, loss) in [(18, 0.0), (19, LOSS), (20, LOSS)] {
        for we_connect in [true, false] {
            exchange_with(over_dtls(), |task| Dcsctp::with(task, seed, features), we_connect, loss, seed);
            exchange_with(over_dtls(), |task| Dcsctp::new(task, seed), we_connect, loss, seed);
        }
    }
}
