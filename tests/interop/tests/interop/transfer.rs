//! Bulk transfers with usrsctp over one path and several, without and with its CMT.

use crate::rig::{Ended, Input, Network};
use crate::usrsctp::{Opener, Pair};

const MB: u64 = 1_000_000;

const OUR_DATA: Input = Input::Random { seed: 1, bytes: 100 * MB };
const THEIR_DATA: Input = Input::Random { seed: 2, bytes: 100 * MB };

/// Checks that neither side has observed errors in a transfer between correct implementations.
#[track_caller]
pub(crate) fn nothing_was_refused(ours: &Ended, theirs: &Ended) {
    for count in ["bad_sacks", "bad_checksums", "malformed"] {
        assert_eq!(ours.end()[count], 0, "{count} of ours: {:#}", ours.end());
    }
    assert_eq!(theirs.end()["bad_checksums"], 0, "{:#}", theirs.end());
}

fn we_send(opener: Opener) {
    let network = Network::new(1);
    let pair = Pair::new(&network, opener).ours("--end shutdown pipe").theirs("pipe");
    let (ours, theirs) = pair.run(OUR_DATA, Input::None);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(theirs.sha256, OUR_DATA.sha256());
    nothing_was_refused(&ours, &theirs);
}

fn they_send(opener: Opener) {
    let network = Network::new(1);
    let pair = Pair::new(&network, opener).ours("pipe").theirs("--end shutdown pipe");
    let (ours, theirs) = pair.run(Input::None, THEIR_DATA);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(ours.sha256, THEIR_DATA.sha256());
    nothing_was_refused(&ours, &theirs);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn a_hundred_megabytes_from_us_arrive_when_we_connect() {
    we_send(Opener::Anabranch);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn a_hundred_megabytes_from_us_arrive_when_they_connect() {
    we_send(Opener::Usrsctp);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn a_hundred_megabytes_from_them_arrive_when_we_connect() {
    they_send(Opener::Anabranch);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn a_hundred_megabytes_from_them_arrive_when_they_connect() {
    they_send(Opener::Usrsctp);
}

/// Transfers over two paths of a limited rate, in both directions at once.
fn both_send_over_two_paths(opener: Opener, scheme: &str, knobs: &str) -> (Ended, Ended) {
    let ours_in = Input::Random { seed: 3, bytes: 12 * MB };
    let theirs_in = Input::Random { seed: 4, bytes: 12 * MB };
    let network = Network::new(2);
    network.limit(1, 100, 256);
    network.limit(2, 60, 256);
    let pair = Pair::new(&network, opener)
        .ours(&format!("--scheme {scheme} --rto-min-ms 300 pipe"))
        .theirs(&format!("{knobs} --expect {} --end shutdown pipe", 12 * MB));
    let (ours, theirs) = pair.run(ours_in, theirs_in);
    let (ours, theirs) = (ours.closed(), theirs.closed());
    assert_eq!(theirs.sha256, ours_in.sha256());
    assert_eq!(ours.sha256, theirs_in.sha256());
    nothing_was_refused(&ours, &theirs);
    (ours, theirs)
}

/// Checks that a considerable part of our data was sent to each of their addresses.
#[track_caller]
fn both_paths_carried(ours: &Ended) {
    for address in ["10.77.1.2:9900", "10.77.2.2:9900"] {
        let paths = ours.end()["paths"].as_array().expect("a list");
        let sent: u64 = paths
            .iter()
            .filter(|path| path["remote"] == address)
            .filter_map(|p| p["sent_bytes"].as_u64())
            .sum();
        assert!(sent > 2 * MB, "{address}: {:#}", ours.end());
    }
}

const CMT: &str = "--set cmt=1 --set rto-min-ms=300";

#[test]
#[ignore = "needs usrsctp: make interop"]
fn both_send_over_two_paths_without_usrsctp_cmt() {
    both_paths_carried(&both_send_over_two_paths(Opener::Anabranch, "cmt", "").0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn both_send_over_two_paths_with_usrsctp_cmt() {
    for opener in [Opener::Anabranch, Opener::Usrsctp] {
        both_paths_carried(&both_send_over_two_paths(opener, "cmt", CMT).0);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn usrsctp_delayed_ack_counts_are_accepted() {
    let knobs = format!("{CMT} --set dac=1");
    both_paths_carried(&both_send_over_two_paths(Opener::Usrsctp, "cmt", &knobs).0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn other_schemes_work_with_usrsctp_cmt() {
    for scheme in ["sctp", "cmt-pf", "cmt+ecf"] {
        both_send_over_two_paths(Opener::Anabranch, scheme, CMT);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn messages_abandoned_by_usrsctp_do_not_block_others() {
    // A message has a lifetime of 30 ms, or is not retransmitted, and the path carries a tenth of the offered data.
    for (limit, form) in [
        ("--lifetime 30", ""),
        ("--retransmissions 0", ""),
        ("--lifetime 30", "--interleave"),
        ("--retransmissions 0", "--interleave"),
    ] {
        let network = Network::new(1);
        network.limit(1, 10, 30);
        let data = Input::Random { seed: 12, bytes: 8 * MB };
        let pair = Pair::new(&network, Opener::Usrsctp)
            .ours(&format!("{form} pipe"))
            .theirs(&format!("{form} {limit} --message 4000 --end shutdown pipe"));
        let (ours, theirs) = pair.run(Input::None, data);
        let (ours, theirs) = (ours.closed(), theirs.closed());
        assert_eq!(theirs.all("interleaves").count(), usize::from(!form.is_empty()));
        let came = ours.end()["bytes"].as_u64().expect("bytes");
        assert!(
            (100_000..8 * MB).contains(&came),
            "{limit} {form}: {came} bytes of 8 MB came: {:#}",
            ours.end()
        );
        nothing_was_refused(&ours, &theirs);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn messages_abandoned_by_anabranch_do_not_block_others() {
    // These limits are always reached: slow start fills the queues, which loses a chunk once, but not always twice.
    for (opener, paths, limit, form) in [
        (Opener::Anabranch, 1, "--lifetime-ms 60", ""),
        (Opener::Usrsctp, 1, "--max-retransmissions 0", ""),
        (Opener::Anabranch, 2, "--lifetime-ms 60", ""),
        (Opener::Usrsctp, 2, "--max-retransmissions 0", ""),
        (Opener::Anabranch, 1, "--lifetime-ms 60", "--interleave"),
        (Opener::Usrsctp, 2, "--max-retransmissions 0", "--interleave"),
    ] {
        let network = Network::new(paths);
        for path in 1..=paths {
            network.limit(path, 10, 30);
        }
        let ping = "ping --messages 3000 --sizes 100,1200,4000 --over-streams 3 --unordered";
        let pair = Pair::new(&network, opener)
            .ours(&format!("{form} --end shutdown {ping} {limit}"))
            .theirs(&format!("{form} echo"));
        let (ours, theirs) = pair.run(Input::None, Input::None);
        let (ours, theirs) = (ours.closed(), theirs.closed());
        let end = ours.end();
        let count = |key: &str| end[key].as_u64().expect("a number");
        assert_eq!((count("reliable"), count("wrong")), (600, 0), "{limit}: {end:#}");
        assert!((600..3_000).contains(&count("messages")), "{limit}: {end:#}");
        assert!(count("abandoned") > 0 && count("forward_tsns_sent") > 0, "{limit}: {end:#}");
        nothing_was_refused(&ours, &theirs);
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn both_understand_each_others_nr_sacks() {
    let (ours, _) =
        both_send_over_two_paths(Opener::Anabranch, "cmt+nr-sack", &format!("{CMT} --set nr-sack=1"));
    both_paths_carried(&ours);
}
