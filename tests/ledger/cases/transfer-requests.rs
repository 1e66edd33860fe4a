//! What a side that fetches stores of what was not asked for. For version 1 of the transfer protocol.

use std::time::Duration;

use anabranch_net::{Association, SendOptions};
use anabranch_transfer::protocol::{Changed, Kind, Message, Offer};
use anabranch_transfer::{Hash, OnClash, Patience, Report, pull};

use crate::support::{connect, folder, listener, names, run};

async fn say(association: &Association, message: Message) {
    // A peer that has heard enough takes no more.
    let _ = association.send(message.encode(), SendOptions::default()).await;
}

async fn hear(association: &Association) -> Option<Message> {
    let packet = association.recv().await.ok()??;
    Message::decode(&packet.payload).or_else(|_| Message::decode_first(&packet.payload)).ok()
}

/// Offers one empty file to whoever fetches, whatever that asks for.
async fn offer(association: Association, name: &str) {
    say(&association, Message::Welcome { window_blocks: 0 }).await;
    let changed = Changed { seconds: 5, nanos: 0 };
    let kind = Kind::File { size_bytes: 0, first: None };
    say(&association, Message::Offer(Offer { id: 0, name: name.to_owned(), kind, changed, mode: 0o644 }))
        .await;
    while let Some(message) = hear(&association).await {
        match message {
            Message::Answer { .. } => {
                say(&association, Message::End { id: 0, size_bytes: 0, root: Hash::of(b"") }).await;
            }
            Message::Done { .. } => say(&association, Message::Finished).await,
            _ => {}
        }
    }
}

#[test]
fn a_server_cannot_store_what_was_not_asked_for() {
    run(async {
        let to = tempfile::tempdir().expect("a folder");
        let host = listener();
        let fetch = async {
            let patience = Patience { retry: Duration::ZERO, ..Patience::default() };
            let again = || async { Err::<Association, _>("no second association") };
            let first = connect(&host).await;
            let store = folder(to.path(), OnClash::Refuse);
            let _ = pull(&["notes.txt".to_owned()], store, first, again, patience, &Report::default()).await;
        };
        let serve = async { offer(host.accept().await.expect("an association"), ".bashrc").await };
        tokio::join!(fetch, serve);
        let stored = names(to.path());
        assert!(stored.is_empty(), "stored without having been asked for: {stored:?}");
    });
}
