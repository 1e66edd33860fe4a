//! Interoperation with dcSCTP.

use crate::peers::dcsctp_host::Dcsctp;
use crate::peers::exchange::exchange;

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
