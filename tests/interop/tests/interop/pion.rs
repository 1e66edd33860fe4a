//! pion/sctp, the stack of WebRTC in Go: single-homed, with one pair of SCTP ports, 5000 on both sides.

use crate::rig::{Ended, Input, Network, Peer, Side, ours, pion};
use crate::usrsctp::Opener;

const MB: u64 = 1_000_000;
const OURS: &str = "10.77.1.1:9899";
const THEIRS: &str = "10.77.1.2:9900";

/// Starts both sides, the listening one first, and waits until they are associated.
fn start(network: &Network, opener: Opener, our: (&str, Input), their: (&str, Input)) -> (Peer, Peer) {
    let mut our_command = network.command(Side::Ours, ours().to_str().expect("UTF-8"));
    our_command.args(["--sctp", "5000", "--remote-sctp", "5000"]);
    let mut their_command = network.command(Side::Theirs, pion().to_str().expect("UTF-8"));
    their_command.args(["-local", THEIRS, "-remote", OURS]);
    match opener {
        Opener::Anabranch => {
            our_command.args(["--route", &format!("{OURS}={THEIRS}")]);
            their_command.arg("-listen");
        }
        Opener::Usrsctp => {
            our_command.args(["--listen", OURS]);
        }
    }
    our_command.args(our.0.split_whitespace());
    their_command.args(their.0.split_whitespace());
    let start_ours = || Peer::start("ours", our_command, our.1);
    let start_theirs = || Peer::start("pion", their_command, their.1);
    let (ours, theirs) = match opener {
        Opener::Anabranch => {
            let theirs = start_theirs();
            theirs.wait_for("listening");
            (start_ours(), theirs)
        }
        Opener::Usrsctp => {
            let ours = start_ours();
            ours.wait_for("listening");
            (ours, start_theirs())
        }
    };
    ours.wait_for("up");
    theirs.wait_for("up");
    (ours, theirs)
}

fn run(opener: Opener, our: (&str, Input), their: (&str, Input)) -> (Ended, Ended) {
    let network = Network::new(1);
    let (ours, theirs) = start(&network, opener, our, their);
    (ours.wait(), theirs.wait())
}

const BOTH: [Opener; 2] = [Opener::Anabranch, Opener::Usrsctp];

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn pion_echoes_messages_up_to_256_kib() {
    for opener in BOTH {
        let ping =
            "--end shutdown ping --messages 60 --over-streams 4 --sizes 1,2,3,1435,1436,10240,65535,262144";
        let (ours, theirs) = run(opener, (ping, Input::None), ("echo", Input::None));
        let ours = ours.closed();
        assert_eq!(ours.end()["messages"], 60);
        assert_eq!(ours.end()["wrong"], 0);
        assert_eq!(theirs.end()["messages"], 60);
    }
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn twenty_megabytes_each_way_arrive_with_pion() {
    let (one, other) = (Input::Random { seed: 8, bytes: 20 * MB }, Input::Random { seed: 9, bytes: 20 * MB });
    for opener in BOTH {
        let expect = format!("--expect-bytes {} --end shutdown pipe", 20 * MB);
        let (ours, theirs) = run(opener, (&expect, one), ("pipe", other));
        let ours = ours.closed();
        assert_eq!(theirs.sha256, one.sha256(), "{:#?}", theirs.lines);
        assert_eq!(ours.sha256, other.sha256());
        for count in ["bad_sacks", "bad_checksums", "malformed"] {
            assert_eq!(ours.end()[count], 0, "{:#}", ours.end());
        }
    }
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn pion_ends_gracefully() {
    let some = Input::Random { seed: 10, bytes: 300_000 };
    for opener in BOTH {
        let (ours, theirs) = run(opener, ("pipe", some), ("-expect 300000 -end shutdown pipe", some));
        assert_eq!(ours.closed().sha256, some.sha256());
        assert_eq!(theirs.sha256, some.sha256());
    }
}

#[test]
#[ignore = "needs Go and pion/sctp: make interop"]
fn aborts_are_reported_both_ways_with_pion() {
    let some = Input::Random { seed: 11, bytes: 300_000 };
    for opener in BOTH {
        let (ours, _) = run(opener, ("pipe", some), ("-expect 300000 -end abort pipe", Input::None));
        assert_eq!(ours.end()["outcome"], "Aborted(ByPeer)", "{:#?}", ours.lines);
        let (_, theirs) =
            run(opener, ("--expect-bytes 300000 --end abort pipe", Input::None), ("pipe", some));
        // The example waits for the end of the association, which occurs without an explicit shutdown on its side.
        assert!(theirs.status.success(), "{:#?}", theirs.lines);
    }
}
