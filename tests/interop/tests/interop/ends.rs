//! Ends and restarts of associations with usrsctp.

use crate::rig::{Input, Network};
use crate::usrsctp::{Opener, Pair};

const SOME: Input = Input::Random { seed: 5, bytes: 300_000 };

/// Checks that data which was accepted before a shutdown of either side is delivered.
fn shutdown(opener: Opener, we_end: bool) {
    let network = Network::new(1);
    let (our_end, their_end) = if we_end { ("shutdown", "wait") } else { ("wait", "shutdown") };
    let pair = Pair::new(&network, opener)
        .ours(&format!("--end {our_end} --expect-bytes 300000 pipe"))
        .theirs(&format!("--end {their_end} --expect 300000 pipe"));
    let (ours, theirs) = pair.run(SOME, SOME);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(ours.sha256, SOME.sha256());
    assert_eq!(theirs.sha256, SOME.sha256());
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn anabranch_shutdown_ends_gracefully() {
    [Opener::Anabranch, Opener::Usrsctp].into_iter().for_each(|opener| shutdown(opener, true));
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_shutdown_ends_gracefully() {
    [Opener::Anabranch, Opener::Usrsctp].into_iter().for_each(|opener| shutdown(opener, false));
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn anabranch_abort_is_reported_by_usrsctp() {
    for opener in [Opener::Anabranch, Opener::Usrsctp] {
        let network = Network::new(1);
        let pair = Pair::new(&network, opener).ours("--end abort --expect-bytes 300000 pipe").theirs("pipe");
        let (ours, theirs) = pair.run(Input::None, SOME);
        assert_eq!(ours.end()["outcome"], "Aborted(ByApplication)");
        assert_eq!(theirs.end()["outcome"], "lost", "{:#?}", theirs.lines);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_abort_is_reported_by_anabranch() {
    for opener in [Opener::Anabranch, Opener::Usrsctp] {
        let network = Network::new(1);
        let pair = Pair::new(&network, opener).ours("pipe").theirs("--end abort --expect 300000 pipe");
        let (ours, _) = pair.run(SOME, Input::None);
        assert_eq!(ours.end()["outcome"], "Aborted(ByPeer)", "{:#?}", ours.lines);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn killed_usrsctp_reconnects_from_the_same_ports() {
    let network = Network::new(1);
    let pair =
        Pair::new(&network, Opener::Usrsctp).ours("echo").theirs("--end shutdown --expect 300000 pipe");
    let (ours, theirs) =
        Pair::new(&network, Opener::Usrsctp).ours("echo").theirs("pipe").start(Input::None, SOME);
    theirs.wait_for_output(300_000);
    theirs.kill();
    // Our side has no report, and still has the association.
    let again = pair.start_theirs(SOME).wait().closed();
    assert_eq!(again.sha256, SOME.sha256());
    let ours = ours.wait().closed();
    assert_eq!(ours.all("restarted").count(), 1, "{:#?}", ours.lines);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn killed_anabranch_reconnects_from_the_same_ports() {
    let network = Network::new(1);
    let pair = Pair::new(&network, Opener::Anabranch)
        .ours("--end shutdown --expect-bytes 300000 pipe")
        .theirs("echo");
    let (ours, theirs) =
        Pair::new(&network, Opener::Anabranch).ours("pipe").theirs("echo").start(SOME, Input::None);
    ours.wait_for_output(300_000);
    ours.kill();
    let again = pair.start_ours(SOME).wait().closed();
    assert_eq!(again.sha256, SOME.sha256());
    let theirs = theirs.wait().closed();
    assert_eq!(theirs.all("restarted").count(), 1, "{:#?}", theirs.lines);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn restarted_usrsctp_server_aborts_unknown_associations() {
    let network = Network::new(1);
    let pair = Pair::new(&network, Opener::Anabranch).ours("pipe").theirs("pipe");
    let endless = Input::Random { seed: 6, bytes: 1 << 40 };
    let (ours, theirs) = pair.start(endless, Input::None);
    theirs.wait_for_output(1_000_000);
    theirs.kill();
    let again = pair.start_theirs(Input::None);
    again.wait_for("listening");
    let ours = ours.wait();
    assert_eq!(ours.end()["outcome"], "Aborted(ByPeer)", "{:#?}", ours.lines);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn packet_to_an_unused_sctp_port_is_refused() {
    let network = Network::new(1);
    let pair = Pair::new(&network, Opener::Anabranch).theirs("pipe");
    let theirs = pair.start_theirs(Input::None);
    theirs.wait_for("listening");
    let ours = pair.at_sctp_port(4999).ours("pipe").start_ours(Input::None).wait();
    let error = ours.all("error").next().expect("an error");
    assert!(error["reason"].as_str().is_some_and(|reason| reason.contains("refuses")), "{error}");
}
