//! Agreement of observed and actual events.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anabranch_core::time::Time;
use anabranch_core::trace::{DecisionRecord, TraceEvent};
use anabranch_core::{Association, AssociationId, Discard};
use anabranch_net::{
    CloseReason, Datagram, DatagramOutcome, Endpoint, Observer, Protection, SendOptions, Started,
};

use crate::loopback::rig::{any_port, echo, next, peer, quick, within};

/// All observed events.
#[derive(Debug, Default)]
struct Seen {
    started: Vec<Started>,
    datagrams: Vec<(Time, SocketAddr, SocketAddr, DatagramOutcome, Vec<u8>)>,
    scheduled: usize,
    decided: usize,
    /// Bytes of chunks sent, by path, as last observed.
    sent_bytes: BTreeMap<AssociationId, Vec<u64>>,
    ended: Vec<Result<(), CloseReason>>,
    dropped: bool,
}

struct Note {
    seen: Arc<Mutex<Seen>>,
    decisions: bool,
}

impl Note {
    fn new(decisions: bool) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::default();
        (Note { seen: Arc::clone(&seen), decisions }, seen)
    }

    fn write(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().expect("not poisoned"));
    }
}

impl Observer for Note {
    fn wants_decisions(&self) -> bool {
        self.decisions
    }

    fn started(&mut self, started: &Started) {
        self.write(|seen| seen.started.push(started.clone()));
    }

    fn datagram(&mut self, at: Time, datagram: &Datagram<'_>) {
        let Datagram { local, remote, outcome, payload } = *datagram;
        self.write(|seen| seen.datagrams.push((at, local, remote, outcome, payload.to_vec())));
    }

    fn decided(&mut self, _: AssociationId, event: &TraceEvent) {
        self.write(|seen| {
            seen.decided += 1;
            seen.scheduled += usize::from(matches!(event.decided, DecisionRecord::Schedule(_)));
        });
    }

    fn association(&mut self, _: Time, id: AssociationId, association: &Association) {
        let sent = association.paths().iter().map(|facts| facts.sent.get()).collect();
        self.write(|seen| drop(seen.sent_bytes.insert(id, sent)));
    }

    fn closed(&mut self, _: Time, _: AssociationId, outcome: &Result<(), CloseReason>) {
        self.write(|seen| seen.ended.push(*outcome));
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.write(|seen| seen.dropped = true);
    }
}

/// Echoes messages over two paths between two observed endpoints.
async fn exchange(decisions: bool) -> [Arc<Mutex<Seen>>; 2] {
    let ((note, here), (other_note, there)) = (Note::new(decisions), Note::new(decisions));
    let server =
        Endpoint::builder(Protection::Insecure).local(any_port(41)).local(any_port(42)).accept(quick());
    let server = server.observer(other_note).bind().expect("a server");
    let client = Endpoint::builder(Protection::Insecure).local(any_port(43)).local(any_port(44));
    let client = client.observer(note).bind().expect("a client");
    let ours = within(client.connect(peer(&client, &server), quick())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    let echoed = tokio::spawn(async move { echo(&theirs).await });
    for _ in 0..50 {
        within(ours.send(vec![7; 4000], SendOptions::default())).await.expect("accepted");
    }
    for _ in 0..50 {
        next(&ours).await;
    }
    within(ours.shutdown()).await.expect("a good end");
    assert_eq!(within(echoed).await.expect("no panic"), 50);
    let totals = [client.statistics().await, server.statistics().await];
    for (seen, total) in [&here, &there].into_iter().zip(totals) {
        let count = |outcome| {
            let seen = seen.lock().expect("not poisoned");
            seen.datagrams.iter().filter(|(.., p, _)| *p == outcome).count() as u64
        };
        assert_eq!(count(DatagramOutcome::Sent), total.datagrams_sent);
        assert_eq!(count(DatagramOutcome::Received) + total.discards.total(), total.datagrams_received);
    }
    drop((client, server, ours));
    [here, there]
}

fn payloads(seen: &Mutex<Seen>, outcome: DatagramOutcome, to: SocketAddr) -> Vec<Vec<u8>> {
    let seen = seen.lock().expect("not poisoned");
    let of = seen.datagrams.iter().filter(|(_, local, remote, p, _)| {
        *p == outcome && if outcome == DatagramOutcome::Sent { *remote == to } else { *local == to }
    });
    of.map(|(.., payload)| payload.clone()).collect()
}

#[tokio::test]
async fn each_datagram_is_seen_at_both_ends_with_its_bytes_and_in_order() {
    let before = SystemTime::now();
    let [here, there] = exchange(false).await;
    let locals = |seen: &Mutex<Seen>| seen.lock().expect("not poisoned").started[0].locals.clone();
    for (from, to) in [(&here, &there), (&there, &here)] {
        for local in locals(to) {
            let sent = payloads(from, DatagramOutcome::Sent, local);
            assert!(sent.len() > 20, "both paths carry something: {}", sent.len());
            // A datagram at the end may arrive after the endpoint has stopped.
            let received = payloads(to, DatagramOutcome::Received, local);
            assert_eq!(sent[..received.len()], received);
        }
    }
    let seen = here.lock().expect("not poisoned");
    assert!(seen.datagrams.is_sorted_by_key(|(at, ..)| *at));
    let [started] = &seen.started[..] else { panic!("it starts once: {:?}", seen.started) };
    assert!(started.wall_clock >= before && started.wall_clock <= SystemTime::now());
    let latest = seen.datagrams.last().expect("some").0;
    assert!(started.wall_clock + Duration::from_nanos(latest.as_nanos()) <= SystemTime::now());
}

#[tokio::test]
async fn decisions_are_observed_on_request_only() {
    let [here, there] = exchange(true).await;
    for seen in [here, there] {
        assert!(seen.lock().expect("not poisoned").scheduled >= 50);
    }
    let [here, there] = exchange(false).await;
    for seen in [here, there] {
        assert_eq!(seen.lock().expect("not poisoned").decided, 0);
    }
}

#[tokio::test]
async fn snapshots_show_running_and_ended_associations() {
    let [here, there] = exchange(false).await;
    for seen in [here, there] {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !seen.lock().expect("not poisoned").dropped {
            assert!(std::time::Instant::now() < deadline, "the observer outlives its endpoint");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = seen.lock().expect("not poisoned");
        assert_eq!(seen.ended, [Ok(())]);
        let sent: Vec<u64> = seen.sent_bytes.values().flatten().copied().collect();
        assert_eq!(sent.len(), 2);
        assert!(sent.iter().sum::<u64>() > 50 * 4000, "{sent:?}");
    }
}

#[tokio::test]
async fn dropped_packet_is_observed_with_its_reason() {
    let (note, seen) = Note::new(false);
    let endpoint = Endpoint::builder(Protection::Insecure)
        .local(any_port(45))
        .accept(quick())
        .observer(note)
        .bind()
        .expect("an endpoint");
    let stranger = UdpSocket::bind(any_port(46)).expect("a socket");
    stranger.send_to(b"no packet", endpoint.local_addresses()[0]).expect("sent");
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let outcome = loop {
        let first = seen.lock().expect("not poisoned").datagrams.first().map(|(.., outcome, _)| *outcome);
        if let Some(outcome) = first {
            break outcome;
        }
        assert!(std::time::Instant::now() < deadline, "nothing was seen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(outcome, DatagramOutcome::Discarded(Discard::Malformed));
}
