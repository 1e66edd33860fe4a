//! The actions or inaction of one peer cost a bounded share of resources, and affect no other peer.

use std::fs;
use std::time::Duration;

use anabranch_net::SendOptions;
use anabranch_transfer::protocol::{FileTime, Kind, Message, Offer, Reason, Terms};
use anabranch_transfer::{Deadlines, OnClash, SendSource, ServerOptions};

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Serving, names, run};

const FILE: Kind = Kind::File { size_bytes: 3 << 20, first: None };

fn short(start_ms: u64, contended_ms: u64, give_way_ms: u64) -> Deadlines {
    let [start, contended, give_way] = [start_ms, contended_ms, give_way_ms].map(Duration::from_millis);
    Deadlines { start, contended, give_way }
}

/// Creates a folder with a file of this name.
fn one_file(name: &str) -> tempfile::TempDir {
    let from = tempfile::tempdir().expect("a folder");
    fs::write(from.path().join(name), "content").expect("written");
    from
}

async fn gone(rogue: &Rogue) {
    while let Ok(Some(_)) = rogue.0.recv().await {}
}

#[test]
fn only_the_silent_holder_of_a_contended_file_is_ended() {
    run(async {
        let options = ServerOptions { deadlines: short(60_000, 300, 60_000), ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let holder = Rogue::greet_as(&serving, 1).await;
        holder.offer(0, "wanted", FILE).await;
        assert!(matches!(holder.receive_message().await, Message::Answer { .. }));
        let innocent = Rogue::greet_as(&serving, 2).await;
        innocent.offer(0, "other", FILE).await;
        assert!(matches!(innocent.receive_message().await, Message::Answer { .. }));
        // Both are silent for longer than the limit.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let from = one_file("wanted");
        serving.send(vec![SendSource::path(from.path().join("wanted"))]).await.0.expect("the file is free");
        gone(&holder).await;
        innocent.offer(1, "further", FILE).await;
        assert!(
            matches!(innocent.receive_message().await, Message::Answer { id: 1, .. }),
            "it was left alone"
        );
    });
}

#[test]
fn slots_per_address_are_limited() {
    run(async {
        let options = ServerOptions { most_per_address: 2, ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let _held = [Rogue::greet_as(&serving, 1).await, Rogue::greet_as(&serving, 2).await];
        let third = Rogue::connect_as(&serving, 3).await;
        assert!(
            matches!(third.receive_message().await, Message::Fail(failure) if failure.reason == Reason::Busy)
        );
        assert_eq!(serving.server.running(), 2);
    });
}

#[test]
fn stalled_client_is_evicted_when_a_slot_is_needed() {
    run(async {
        let options = ServerOptions {
            most_transfers: 1,
            deadlines: short(60_000, 60_000, 300),
            ..ServerOptions::default()
        };
        let serving = Serving::start(OnClash::Refuse, options);
        let idle = Rogue::greet_as(&serving, 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(serving.server.running(), 1, "an idle transfer lives while nobody needs its place");
        let from = one_file("file");
        serving.send(vec![SendSource::path(from.path().join("file"))]).await.0.expect("sent");
        gone(&idle).await;
        assert_eq!(names(serving.dir.path()), ["file"]);
    });
}

#[test]
fn windows_stay_within_the_memory_of_the_server() {
    run(async {
        let memory_bytes = ServerOptions::least_memory_bytes(16);
        let options = ServerOptions { most_transfers: 16, memory_bytes, ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let mut held = Vec::new();
        for session in 0..16 {
            let rogue = Rogue::connect_as(&serving, session).await;
            match rogue.receive_message().await {
                Message::Welcome { terms: Terms::Take { window_blocks } } => {
                    held.push((rogue, u64::from(window_blocks)));
                }
                other => panic!("{other:?}"),
            }
        }
        let windows: u64 = held.iter().map(|(_, window)| *window).sum();
        assert!(windows << 20 <= memory_bytes && held.iter().all(|(_, window)| *window >= 2), "{windows}");
        let single = Serving::usual();
        let rogue = Rogue::connect_as(&single, 0).await;
        assert_eq!(
            rogue.receive_message().await,
            Message::Welcome { terms: Terms::Take { window_blocks: 32 } }
        );
        drop((held, rogue));
        serving.idle().await;
        assert_eq!(serving.server.free_memory_bytes(), memory_bytes, "all of it is given back");
    });
}

#[test]
fn answers_to_a_peer_that_does_not_read_are_bounded() {
    run(async {
        let serving = Serving::start(
            OnClash::Refuse,
            ServerOptions { silence: Duration::from_secs(1), ..ServerOptions::default() },
        );
        let rogue = Rogue::greet_as(&serving, 1).await;
        let mut taken_bytes = 0_usize;
        // Each offer is refused with a text that is longer than the offer. Without back pressure 40 MB of them would be accepted.
        for id in 0..1_000_000 {
            let changed = FileTime { seconds: 5, nanos: 0 };
            let name = format!("../{}", "x".repeat(200));
            let offer =
                Message::Offer(Offer { id, name: name.into(), kind: FILE, changed, mode: 0o644 }).encode();
            let length = offer.len();
            if rogue.0.send(offer, SendOptions::default()).await.is_err() {
                break;
            }
            taken_bytes += length;
        }
        // Capacity of all buffers in both directions: those of the association on both sides, and two short queues.
        assert!(taken_bytes < 40 << 20, "{taken_bytes} B were taken");
        serving.idle().await;
    });
}
