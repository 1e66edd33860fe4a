//! Addresses that usrsctp adds to an association (RFC 5061), and the data over them.

use crate::rig::{Cut, Input, Network};
use crate::usrsctp::{Opener, Pair};

const MB: u64 = 1_000_000;

#[test]
#[ignore = "needs usrsctp: make interop"]
fn address_added_by_usrsctp_carries_data_after_a_cut() {
    let data = Input::Random { seed: 13, bytes: 24 * MB };
    let network = Network::new(2);
    network.limit(1, 60, 256);
    network.limit(2, 60, 256);
    let add = format!("--add {} --add-at {MB}", Network::address(crate::rig::Side::Theirs, 2));
    let pair = Pair::new(&network, Opener::Usrsctp)
        .their_paths(1)
        .ours("--rto-min-ms 200 --path-max-retrans 1 --end shutdown pipe")
        .theirs(&format!("--set rto-min-ms=200 --set rto-max-ms=1000 {add} pipe"));
    let (ours, theirs) = pair.start(data, Input::None);
    theirs.wait_for("added");
    theirs.wait_for_output(8 * MB);
    network.cut(1, Cut::Silent);
    let (ours, theirs) = (ours.wait(), theirs.wait());
    assert_eq!(theirs.sha256, data.sha256(), "{:#?}\n{:#?}", ours.lines, theirs.lines);
    let (ours, _) = (ours.closed(), theirs.closed());
    let paths = ours.end()["paths"].as_array().expect("a list");
    // Data that usrsctp sends back to our first address uses the first path.
    let crossed =
        |path: &&serde_json::Value| path["local"] == "10.77.1.1" && path["remote"] == "10.77.2.2:9900";
    assert_eq!(paths.iter().find(crossed), None, "the new address is paired with one of ours in use");
    let sent: u64 = paths
        .iter()
        .filter(|path| path["remote"] == "10.77.2.2:9900")
        .filter_map(|path| path["sent_bytes"].as_u64())
        .sum();
    assert!(sent > 4 * MB, "{:#}", ours.end());
}
