//! A path is cut during a transfer with usrsctp, and the transfer completes.

use crate::rig::{Cut, Ended, Input, Network};
use crate::usrsctp::{Opener, Pair};

const MB: u64 = 1_000_000;
const DATA: Input = Input::Random { seed: 7, bytes: 16 * MB };

/// Time-outs of usrsctp that suit a test.
const QUICK: &str = "--set rto-min-ms=200 --set rto-initial-ms=200 --set rto-max-ms=1000 --set path-max-retrans=1 --set heartbeat-s=1";

fn network() -> Network {
    let network = Network::new(2);
    network.limit(1, 40, 256);
    network.limit(2, 40, 256);
    network
}

fn we_send(opener: Opener, knobs: &str, path: u8, how: Cut) -> (Ended, Ended) {
    let network = network();
    let pair = Pair::new(&network, opener)
        .ours("--rto-min-ms 200 --path-max-retrans 1 --end shutdown pipe")
        .theirs(&format!("{QUICK} {knobs} pipe"));
    let (ours, theirs) = pair.start(DATA, Input::None);
    theirs.wait_for_output(4 * MB);
    network.cut(path, how);
    let (ours, theirs) = (ours.wait(), theirs.wait());
    assert_eq!(
        theirs.sha256,
        DATA.sha256(),
        "{how:?} of path {path}: {:#?}\n{:#?}",
        ours.lines,
        theirs.lines
    );
    (ours.closed(), theirs.closed())
}

fn they_send(opener: Opener, knobs: &str, path: u8, how: Cut) -> (Ended, Ended) {
    let network = network();
    let pair = Pair::new(&network, opener)
        .ours("--rto-min-ms 200 --path-max-retrans 1 pipe")
        .theirs(&format!("{QUICK} {knobs} --end shutdown pipe"));
    let (ours, theirs) = pair.start(Input::None, DATA);
    ours.wait_for_output(4 * MB);
    network.cut(path, how);
    let (ours, theirs) = (ours.wait(), theirs.wait());
    assert_eq!(ours.sha256, DATA.sha256(), "{how:?} of path {path}: {:#?}\n{:#?}", ours.lines, theirs.lines);
    (ours.closed(), theirs.closed())
}

#[track_caller]
fn a_path_failed(ours: &Ended) {
    assert!(ours.all("path").any(|line| line["state"] == "Inactive"), "{:#?}", ours.lines);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn anabranch_data_survives_a_silent_path() {
    a_path_failed(&we_send(Opener::Anabranch, "", 1, Cut::Silent).0);
    a_path_failed(&we_send(Opener::Usrsctp, "", 2, Cut::Silent).0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn anabranch_data_survives_loss_of_its_link() {
    a_path_failed(&we_send(Opener::Usrsctp, "", 1, Cut::OurLinkDown).0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn anabranch_data_survives_removal_of_its_address() {
    a_path_failed(&we_send(Opener::Anabranch, "", 1, Cut::OurAddressGone).0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_data_survives_a_silent_path() {
    they_send(Opener::Anabranch, "", 1, Cut::Silent);
    they_send(Opener::Usrsctp, "", 1, Cut::Silent);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_data_survives_loss_of_its_link() {
    they_send(Opener::Anabranch, "", 1, Cut::TheirLinkDown);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_data_survives_removal_of_its_address() {
    they_send(Opener::Usrsctp, "", 1, Cut::TheirAddressGone);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn both_directions_survive_with_usrsctp_cmt() {
    we_send(Opener::Anabranch, "--set cmt=1", 1, Cut::Silent);
    they_send(Opener::Usrsctp, "--set cmt=1", 2, Cut::Silent);
    they_send(Opener::Anabranch, "--set cmt=1", 1, Cut::OurLinkDown);
}
