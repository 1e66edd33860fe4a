//! Traces of endpoints, which must equal those of the simulator.

use std::path::Path;

use anabranch_lab::explain;
use anabranch_net::{Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_observe::{Outputs, Recording, Role};
use anabranch_trace::{DECISION_COLUMNS, PACKET_COLUMNS, PATH_COLUMNS, RESULT_FILE};

use crate::rig::{MESSAGE_BYTES, MESSAGES, Pair, SCHEME, eventually, recorded, scheme, within};

fn trace(folder: &Path) -> Outputs {
    Outputs { trace: Some(folder.to_owned()), ..Outputs::default() }
}

fn header(folder: &Path, name: &str) -> Vec<String> {
    let mut rows = csv::Reader::from_path(folder.join(name)).expect("a file");
    let header = rows.headers().expect("a header").iter().map(str::to_owned).collect();
    let rows: Vec<_> = rows.records().map(|row| row.expect("a whole row")).collect();
    assert!(!rows.is_empty(), "{name} has no rows");
    header
}

#[tokio::test]
async fn a_transfer_leaves_the_files_of_a_simulation_and_they_explain_it() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(21, &trace(folder.path())).await;
    assert_eq!(header(folder.path(), "association-1-paths.csv"), PATH_COLUMNS);
    assert_eq!(header(folder.path(), "association-1-decisions.csv"), DECISION_COLUMNS);
    assert_eq!(header(folder.path(), "packets.csv"), PACKET_COLUMNS);

    let explained = explain::explain(folder.path()).expect("an explanation");
    let [note] = &explained.notes[..] else { panic!("the figures disagree: {:?}", explained.notes) };
    assert!(note.starts_with("traced at one end"), "{note}");
    assert_eq!((explained.scheme.as_str(), explained.seed), (SCHEME, None));
    let [flow] = &explained.flows[..] else { panic!("one association: {:?}", explained.flows) };
    assert_eq!(flow.paths.len(), 2);
    let sent: u64 = flow.paths.iter().map(|path| path.sent_bytes).sum();
    assert!(sent as usize > MESSAGES * MESSAGE_BYTES, "{sent}");
    assert!(flow.paths.iter().all(|path| path.sent_chunks > 10 && path.mean_srtt_ms.is_some()));
    assert!(flow.scheduling.decisions > 100, "{}", flow.scheduling.decisions);
    assert!(flow.capacity_findings[0].contains("was given"), "{:?}", flow.capacity_findings);
}

#[tokio::test]
async fn unfinished_trace_is_explained_up_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording =
        Recording::start(&trace(folder.path()), Role::Client, SCHEME, &scheme()).expect("a recording");
    let pair = Pair::new(25, Some(&recording));
    pair.transfer().await;
    let explained = eventually(|| {
        let explained = explain::explain(folder.path()).ok()?;
        let sent: u64 = explained.flows.iter().flat_map(|f| &f.paths).map(|path| path.sent_bytes).sum();
        (sent as usize > MESSAGES * MESSAGE_BYTES).then_some(explained)
    })
    .await;
    assert!(explained.notes[0].contains("did not end"), "{:?}", explained.notes);
    assert!(!folder.path().join(RESULT_FILE).exists());
    drop(recording);
    assert!(folder.path().join(RESULT_FILE).exists());
}

#[tokio::test]
async fn associations_of_one_host_and_of_several_have_files_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording =
        Recording::start(&trace(folder.path()), Role::Client, SCHEME, &scheme()).expect("a recording");
    let first = Pair::new(29, Some(&recording));
    first.transfer().await;
    first.transfer().await;
    Pair::new(33, Some(&recording)).transfer().await;
    assert!(recording.finish().errors.is_empty());
    let explained = explain::explain(folder.path()).expect("an explanation");
    let names: Vec<&str> = explained.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["association-1", "association-2", "association-3"]);
    for flow in &explained.flows {
        let sent: u64 = flow.paths.iter().map(|path| path.sent_bytes).sum();
        assert!(sent as usize > MESSAGES * MESSAGE_BYTES, "{}: {sent}", flow.name);
    }
    let [first, second, third] = &explained.flows[..] else { panic!("three: {names:?}") };
    assert!(first.until_s <= second.from_s && second.until_s <= third.from_s);
}

#[tokio::test]
async fn traced_time_outs_of_a_silent_peer_match_the_counter() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording =
        Recording::start(&trace(folder.path()), Role::Client, SCHEME, &scheme()).expect("a recording");
    // Dropping the runtime ends the server's task without closing the association.
    let elsewhere = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let elsewhere = elsewhere.expect("a runtime");
    let server = {
        let _inside = elsewhere.enter();
        let endpoint =
            Endpoint::builder(Protection::Insecure).local("127.0.2.49:0".parse().expect("an address"));
        endpoint.accept(scheme()).bind().expect("a server")
    };
    let client = Endpoint::builder(Protection::Insecure).local("127.0.2.50:0".parse().expect("an address"));
    let client = client.observer(recording.observer()).bind().expect("a client");
    let route = PathAddress::over_udp([127, 0, 2, 50].into(), server.local_addresses()[0]);
    let ours = within(client.connect(Peer::new([route]), scheme())).await.expect("connected");
    elsewhere.shutdown_background();
    ours.send(vec![1; MESSAGE_BYTES], SendOptions::default()).await.expect("accepted");
    let decisions = folder.path().join("association-1-decisions.csv");
    eventually(|| {
        let text = std::fs::read_to_string(&decisions).ok()?;
        text.contains(",timeout,").then_some(())
    })
    .await;
    assert!(recording.finish().errors.is_empty());
    let explained = explain::explain(folder.path()).expect("an explanation");
    assert_eq!(explained.notes.len(), 1, "the figures disagree: {:?}", explained.notes);
    assert!(
        explained.totals().timeouts >= 1 && explained.flows[0].losses.iter().any(|l| l.cause == "timeout")
    );
    drop(server);
}
