//! Events, checked by a parser that accepts only the documented fields.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_net::{DtlsProtection, Endpoint, KeyPolicy, PathAddress, Peer, Protection};
use anabranch_observe::{Outputs, Recording, Role};
use anabranch_tests::credentials::credentials;
use anabranch_trace::qlog::EVENT_SCHEMA;
use serde::Deserialize;

use crate::rig::{MESSAGE_BYTES, MESSAGES, recorded};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    file_schema: String,
    serialization_format: String,
    title: String,
    trace: Trace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    common_fields: CommonFields,
    vantage_point: VantagePoint,
    event_schemas: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommonFields {
    time_format: String,
    reference_time: ReferenceTime,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceTime {
    clock_type: String,
    epoch: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VantagePoint {
    name: String,
    #[serde(rename = "type")]
    role: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    time: f64,
    name: String,
    path: Option<String>,
    group_id: String,
    data: serde_json::Map<String, serde_json::Value>,
}

/// Required and optional fields of each event.
const FIELDS: [(&str, &[&str], &[&str]); 16] = [
    ("association_started", &["scheme", "profile"], &[]),
    ("association_ended", &["outcome"], &[]),
    ("keys_updated", &["epoch"], &[]),
    ("rekey_failed", &["reason"], &[]),
    ("path_addresses", &["local", "remote"], &[]),
    ("path_state", &["state", "rule"], &["figure", "value"]),
    ("packet_sent", &["length", "verification_tag", "chunks"], &[]),
    ("packet_received", &["length", "verification_tag", "chunks"], &[]),
    ("packet_dropped", &["direction", "reason", "length"], &[]),
    ("packet_lost", &["cause", "rule"], &["tsn", "figure", "value"]),
    (
        "metrics_updated",
        &[
            "state",
            "cwnd_bytes",
            "ssthresh_bytes",
            "outstanding_bytes",
            "lost_unsent_bytes",
            "rto_ms",
            "error_count",
            "sent_bytes",
            "delivered_bytes",
            "lost_bytes",
            "peer_window_bytes",
            "queued_bytes",
        ],
        &["srtt_ms", "rttvar_ms"],
    ),
    ("congestion_window", &["cwnd_bytes", "ssthresh_bytes", "rule"], &["figure", "value"]),
    ("scheduler_decision", &["decision", "paths", "rule"], &["tsn", "figure", "value", "refused"]),
    ("peer_window_closed", &["rule"], &["figure", "value"]),
    ("peer_window_opened", &["rule"], &["figure", "value"]),
    ("timer_expired", &["timer", "total"], &[]),
];

/// Events that always name a path.
const ON_A_PATH: [&str; 7] = [
    "path_addresses",
    "path_state",
    "packet_sent",
    "packet_received",
    "packet_lost",
    "metrics_updated",
    "congestion_window",
];

fn read(path: &Path) -> (Header, Vec<Event>) {
    let text = std::fs::read_to_string(path).expect("a file in UTF-8");
    let mut records = text.strip_prefix('\u{1e}').expect("a record separator").split('\u{1e}');
    let header = serde_json::from_str(records.next().expect("a header")).expect("a header");
    let events = records.map(|record| {
        assert!(record.ends_with('\n') && !record[..record.len() - 1].contains('\n'), "{record}");
        serde_json::from_str(record).unwrap_or_else(|error| panic!("{error}: {record}"))
    });
    (header, events.collect())
}

fn check(event: &Event) {
    let name = event.name.strip_prefix("sctp:").expect("a name of this schema");
    let (_, must, may) = FIELDS.iter().find(|(known, ..)| *known == name).expect(name);
    for field in *must {
        assert!(event.data.contains_key(*field), "{name} without {field}");
    }
    for (field, value) in &event.data {
        assert!(must.contains(&field.as_str()) || may.contains(&field.as_str()), "{name} with {field}");
        assert!(!value.is_null(), "{name}: {field} is nothing");
    }
    assert_eq!(event.group_id, "association-1");
    if ON_A_PATH.contains(&name) {
        assert!(event.path.as_deref().is_some_and(|path| ["path-1", "path-2"].contains(&path)), "{event:?}");
    }
}

/// Returns the number of user bytes in sent DATA chunks.
fn sent(events: &[Event]) -> u64 {
    let sent = events.iter().filter(|event| event.name == "sctp:packet_sent");
    let chunks = sent.flat_map(|event| event.data["chunks"].as_array().expect("chunks"));
    let data = chunks.filter(|chunk| chunk["type"] == "DATA");
    data.map(|chunk| chunk["length"].as_u64().expect("a length") - 16).sum()
}

#[tokio::test]
async fn every_event_has_the_fields_of_its_schema_and_the_path_it_is_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.sqlog");
    recorded(41, &Outputs { qlog: Some(path.clone()), ..Outputs::default() }).await;
    let (header, events) = read(&path);
    assert_eq!(header.file_schema, "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header.serialization_format, "application/qlog+json-seq");
    assert!(header.title.contains("cmt"));
    assert_eq!(header.trace.event_schemas, [EVENT_SCHEMA]);
    let CommonFields { time_format, reference_time } = header.trace.common_fields;
    assert_eq!((time_format.as_str(), reference_time.clock_type.as_str()), ("relative_to_epoch", "system"));
    assert!(reference_time.epoch.ends_with('Z') && reference_time.epoch.as_bytes()[10] == b'T');
    let VantagePoint { name, role } = header.trace.vantage_point;
    assert_eq!((name.as_str(), role.as_str()), ("anabranch", "client"));

    events.iter().for_each(check);
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    events.iter().for_each(|event| *count.entry(&event.name).or_default() += 1);
    for name in ["association_started", "association_ended"] {
        assert_eq!(count.get(&*format!("sctp:{name}")), Some(&1), "{count:?}");
    }
    for name in ["path_addresses", "path_state", "packet_received", "metrics_updated", "scheduler_decision"] {
        assert!(count.get(&*format!("sctp:{name}")).is_some_and(|n| *n >= 2), "{name}: {count:?}");
    }
    assert!(sent(&events) as usize >= MESSAGES * MESSAGE_BYTES);
    // Received and sent packets are in the endpoint's order.
    let passed = events
        .iter()
        .filter(|event| event.name.starts_with("sctp:packet_") && event.data.contains_key("chunks"));
    assert!(passed.map(|event| event.time).is_sorted());
}

#[tokio::test]
async fn a_folder_gets_a_file_for_each_association() {
    let folder = tempfile::tempdir().expect("a folder");
    recorded(45, &Outputs { qlog: Some(folder.path().to_owned()), ..Outputs::default() }).await;
    let (_, events) = read(&folder.path().join("association-1.sqlog"));
    events.iter().for_each(check);
    assert!(events.last().is_some_and(|event| event.data["outcome"] == "closed"));
}

#[test]
fn the_book_names_every_event_and_every_field() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/observability.md");
    let text = std::fs::read_to_string(page).expect("the page");
    for (name, must, may) in FIELDS {
        assert!(text.contains(&format!("`sctp:{name}`")), "{name} is missing");
        for field in must.iter().chain(may) {
            assert!(text.contains(&format!("`{field}`")), "{name}: {field} is missing");
        }
    }
    assert!(text.contains(EVENT_SCHEMA));
}

#[tokio::test]
async fn keys_of_a_protected_association_are_written_as_they_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.sqlog");
    let scheme = anabranch_net::Config::new("cmt").expect("a scheme");
    let outputs = Outputs { qlog: Some(path.clone()), ..Outputs::default() };
    let recording = Recording::start(&outputs, Role::Client, "cmt", &scheme).expect("a recording");
    let policy = KeyPolicy { rekey_after: Span::from_millis(300), ..KeyPolicy::default() };
    let endpoint = |node, own, peer, policy: KeyPolicy| {
        let credentials = credentials(own, &[peer]);
        let builder =
            Endpoint::builder(Protection::Dtls(DtlsProtection { credentials, policy, restart: false }));
        builder.local(SocketAddr::from(([127, 0, 0, node], 0)))
    };
    let server = endpoint(43, 2, 1, KeyPolicy::default()).accept(scheme.clone()).bind().expect("a server");
    let client = endpoint(44, 1, 2, policy).observer(recording.observer()).bind().expect("a client");
    let to = PathAddress::over_udp([127, 0, 0, 44].into(), server.local_addresses()[0]);
    let association = client.connect(Peer::new([to]), scheme).await.expect("connected");
    let accepted = server.accept().await.expect("accepted");
    while client.statistics().await.keying.rekeys < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (ended, received) = tokio::join!(association.shutdown(), accepted.recv());
    assert_eq!((ended, received), (Ok(()), Ok(None)));
    recording.finish();
    let (_, events) = read(&path);
    events.iter().for_each(check);
    let updated = events.iter().filter(|event| event.name == "sctp:keys_updated");
    let epochs: Vec<u64> = updated.map(|event| event.data["epoch"].as_u64().expect("a number")).collect();
    assert!(epochs.len() >= 3, "{epochs:?}");
    assert!(epochs.iter().copied().eq(3..3 + epochs.len() as u64), "{epochs:?}");
}
