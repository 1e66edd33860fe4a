//! Escaping of a peer's text on the terminal.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_net::{Association, Config, Endpoint, Protection, SendOptions};
use anabranch_transfer::SenderId;
use anabranch_transfer::protocol::{Failure, FileTime, Kind, Message, Offer, Outcome, Reason, Terms};

use crate::support::{Ended, anabranch};

/// Text that clears the screen, rings the bell, returns to the beginning of the line, and reverses the direction of writing. The
/// first sequence also occurs in its one-byte form.
const EVIL: &str = "evil\u{1b}[2J\u{7}\r\u{202e}\u{9b}2J\u{2028}\u{200b}text";

async fn send_message(association: &Association, message: Message) {
    // A peer that has closed accepts no more.
    let _ = association.send(message.encode(), SendOptions::default()).await;
}

async fn receive_message(association: &Association) -> Option<Message> {
    loop {
        let packet = association.recv().await.ok()??;
        match Message::decode(&packet.payload).or_else(|_| Message::decode_first(&packet.payload)) {
            Ok(Message::Alive) => {}
            Ok(message) => return Some(message),
            Err(error) => panic!("{error}"),
        }
    }
}

fn failure() -> Failure {
    Failure::new(Reason::System, EVIL)
}

fn offer(id: u32, name: &str) -> Message {
    let changed = FileTime { seconds: 5, nanos: 0 };
    let kind = Kind::File { size_bytes: 0, first: None };
    Message::Offer(Offer { id, name: name.into(), kind, changed, mode: 0o644 })
}

/// Offers names with control characters to a receiver.
async fn offer_evil(association: Association) {
    send_message(
        &association,
        Message::Welcome { terms: Terms::Give { sender: SenderId::from_bytes([8; 16]) } },
    )
    .await;
    while receive_message(&association).await.is_some_and(|message| message != Message::WantEnd) {}
    send_message(&association, Message::Passed { name: EVIL.into(), failure: failure() }).await;
    send_message(&association, offer(0, EVIL)).await;
    send_message(&association, offer(1, "taken\u{202e}name")).await;
    send_message(&association, Message::GiveUp { id: 1, failure: failure(), again: true }).await;
    send_message(&association, offer(2, "other\u{202e}name")).await;
    send_message(&association, Message::GiveUp { id: 2, failure: failure(), again: false }).await;
    send_message(&association, Message::Fail(failure())).await;
    while receive_message(&association).await.is_some() {}
}

/// Accepts the offer of a sender under names with control characters.
async fn take_evil(association: Association) {
    send_message(&association, Message::Welcome { terms: Terms::Take { window_blocks: 4 } }).await;
    let mut offered = 0;
    while let Some(message) = receive_message(&association).await {
        let Message::Offer(Offer { id, .. }) = message else { continue };
        let outcome = match offered {
            0 => Outcome::Stored { renamed: Some(EVIL.into()) },
            _ => Outcome::Failed(failure()),
        };
        send_message(&association, Message::Done { id, outcome }).await;
        offered += 1;
        if offered == 2 {
            send_message(&association, Message::Fail(failure())).await;
        }
    }
}

/// Runs a command against a peer.
fn against<F: Future<Output = ()> + Send>(
    peer: impl Fn(Association) -> F,
    arguments: impl Fn(String) -> Vec<String>,
) -> Ended {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let host = Endpoint::builder(Protection::Insecure)
            .local(SocketAddr::from(([127, 0, 0, 1], 0)))
            .accept(Config::new("cmt").expect("a scheme"))
            .bind()
            .expect("bound");
        let arguments = arguments(host.local_addresses()[0].to_string());
        let command = tokio::task::spawn_blocking(move || {
            anabranch(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let peer = async {
            let association = host.accept().await.expect("an association");
            let hello = receive_message(&association).await;
            assert!(matches!(hello, Some(Message::Hello { .. })), "{hello:?}");
            peer(association).await;
        };
        let (ended, _) = tokio::join!(command, tokio::time::timeout(Duration::from_secs(60), peer));
        ended.expect("it ran")
    })
}

fn is_harmless(text: &str) -> bool {
    let is_evil = |c: char| (c.is_control() && c != '\n') || EVIL.contains(c) && !c.is_ascii();
    !text.chars().any(is_evil)
}

#[test]
fn control_characters_of_a_peer_do_not_reach_the_terminal() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    for name in ["one", "two"] {
        std::fs::write(path(name), "content").expect("written");
    }
    for json in [false, true] {
        let more = |mut arguments: Vec<String>| {
            arguments.extend(["--retry".to_owned(), "0".to_owned()]);
            arguments.extend(json.then(|| "--json".to_owned()));
            arguments
        };
        let to = tempfile::tempdir().expect("a folder");
        let inbox = to.path().to_str().expect("UTF-8").to_owned();
        let fetched = against(offer_evil, |host| {
            more(["recv", &host, "--all", "--insecure", "--dir", &inbox].map(str::to_owned).to_vec())
        });
        let sent = against(take_evil, |host| {
            more(vec!["send".to_owned(), "--insecure".to_owned(), path("one"), path("two"), host])
        });
        for ended in [fetched, sent] {
            // A sender may end before it receives the last refusal.
            assert!(matches!(ended.status, Some(1 | 3)), "{:?} {:?}", ended.out, ended.err);
            assert!(is_harmless(&ended.out) && is_harmless(&ended.err), "{:?} {:?}", ended.out, ended.err);
            // JSON escapes the backslash again.
            let shown = if json {
                r"evil\\u{1b}[2J\\u{7}\\u{d}\\u{202e}"
            } else {
                r"evil\u{1b}[2J\u{7}\u{d}\u{202e}"
            };
            let all = ended.out.clone() + &ended.err;
            assert!(all.matches(shown).count() >= 2, "{all}");
        }
    }
}
