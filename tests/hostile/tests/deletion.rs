//! Entries that a peer can remove, and entries that it cannot.

use std::fs;
use std::time::Duration;

use anabranch_hostile::{Inbox, Peer, Serving, accepting, connect};
use anabranch_transfer::protocol::{
    Intent, Kind, LISTED_NAME_BYTES, Listing, MAX_LISTED_BYTES, Message, Outcome, Reason, SenderRequests,
};
use anabranch_transfer::{
    Accept, OnClash, Report, Request, Rule, SendSource, Sender, ServerOptions, Timeouts, TransferError, pull,
    push,
};

/// Time that exceeds all durations here, on any machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("in time") })
}

/// Returns a server that lets senders remove entries, and a peer that has requested this.
async fn deleting() -> (Inbox, Serving, Peer) {
    let inbox = Inbox::new().expect("made");
    let options =
        ServerOptions { allow_delete: true, on_clash: Some(OnClash::Overwrite), ..ServerOptions::default() };
    let serving = Serving::start(inbox.store(OnClash::Refuse), options);
    let sender_requests = SenderRequests { delete: true, ..SenderRequests::default() };
    let peer = Peer::push_with(&serving.endpoint, [1; 16], sender_requests).await.expect("welcome");
    (inbox, serving, peer)
}

fn listing(folder: &str, names: &[&str], is_complete: bool) -> Message {
    let names = names.iter().map(|name| (*name).into()).collect();
    Message::Listing(Listing { folder: folder.into(), names, is_complete })
}

async fn list(peer: &Peer, folder: &str, names: &[&str]) {
    peer.send_message(&listing(folder, names, true)).await.expect("said");
}

/// Offers a folder, and waits for the outcome.
async fn offer_folder(peer: &Peer, id: u32, name: &str) {
    peer.offer(id, name, Kind::Folder).await.expect("said");
    peer.hear_until(|message| matches!(message, Message::Done { .. })).await.expect("an outcome");
}

/// Returns the reason for which the next entry was not removed, or `None` if it was.
async fn deletion_failure(peer: &Peer) -> Option<Reason> {
    let heard =
        peer.hear_until(|message| matches!(message, Message::Deleted { .. })).await.expect("an answer");
    let Message::Deleted { failure, .. } = heard else { unreachable!() };
    failure.map(|failure| failure.reason)
}

async fn is_refused(peer: &Peer) {
    let refused = peer.hear_until(|message| matches!(message, Message::Compared)).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn only_offered_folders_are_emptied() {
    run(async {
        let (inbox, serving, peer) = deleting().await;
        offer_folder(&peer, 0, "kept").await;
        list(&peer, "kept", &[]).await;
        assert_eq!(deletion_failure(&peer).await, None);
        // The entry is a file that is in no offered folder.
        list(&peer, "existing", &[]).await;
        assert_eq!(deletion_failure(&peer).await, Some(Reason::NotAllowed));
        drop(peer);
        serving.idle().await;
        assert!(!inbox.path().join("kept/inside").exists());
        assert_eq!(inbox.damage_where(|path| path != "kept/inside"), Vec::<String>::new());
    });
}

#[test]
fn inbox_and_its_parents_cannot_be_listed() {
    run(async {
        for folder in ["", ".", "..", "/", "../outside", "kept/..", "kept/../../outside", "/etc", "a\0"] {
            let (inbox, serving, peer) = deleting().await;
            offer_folder(&peer, 0, "kept").await;
            list(&peer, folder, &[]).await;
            is_refused(&peer).await;
            serving.idle().await;
            assert_eq!(inbox.damage(), Vec::<String>::new(), "{folder}");
        }
    });
}

/// Offers a folder, lists nothing in it, and returns the outcome of the offer and all removals.
async fn emptied(peer: &Peer, folder: &str) -> (Outcome, Vec<(String, Option<Reason>)>) {
    peer.offer(0, folder, Kind::Folder).await.expect("sent");
    let (mut outcome, mut removals) = (None, Vec::new());
    loop {
        match peer.hear_until(|_| true).await.expect("a message") {
            Message::Done { outcome: done, .. } => {
                outcome = Some(done);
                list(peer, folder, &[]).await;
            }
            Message::Deleted { name, failure } => {
                removals.push((name.to_string(), failure.map(|failure| failure.reason)));
            }
            Message::Compared => return (outcome.expect("the offer was answered"), removals),
            _ => {}
        }
    }
}

/// Returns the paths in the inbox that changed while a peer offered and emptied this folder, with both answers.
async fn emptied_link(folder: &str) -> (Outcome, Vec<(String, Option<Reason>)>, Inbox, Vec<String>) {
    let (inbox, serving, peer) = deleting().await;
    let (outcome, removals) = emptied(&peer, folder).await;
    drop(peer);
    serving.idle().await;
    let damage = inbox.damage_where(|path| path != folder);
    (outcome, removals, inbox, damage)
}

#[test]
fn offered_folder_replaces_a_link_and_its_target_stays() {
    run(async {
        for link in ["out", "absolute", "alias", "loop", "link", "dangling"] {
            let (outcome, removals, inbox, damage) = emptied_link(link).await;
            assert_eq!(outcome, Outcome::Stored { renamed: None }, "{link}");
            assert_eq!(removals, [(link.to_owned(), None)], "the link alone is removed");
            assert_eq!(damage, Vec::<String>::new(), "{link}");
            let there = fs::symlink_metadata(inbox.path().join(link)).expect("the folder is there");
            assert!(there.is_dir(), "{link}");
            assert_eq!(fs::read_dir(inbox.path().join(link)).expect("a folder").count(), 0, "{link}");
        }
    });
}

#[test]
fn folder_behind_a_link_is_refused_without_removal() {
    run(async {
        for folder in ["out/folder", "absolute/folder", "alias/inside", "loop/x", "link/x", "dangling/x"] {
            let (outcome, removals, inbox, _) = emptied_link(folder).await;
            let Outcome::Failed(failure) = outcome else { panic!("{folder}: {outcome:?}") };
            assert_eq!(failure.reason, Reason::Clash, "{folder}: {failure}");
            assert_eq!(removals, [(folder.to_owned(), Some(Reason::NotAllowed))]);
            assert_eq!(inbox.damage(), Vec::<String>::new(), "{folder}");
        }
    });
}

#[test]
fn no_file_is_removed_without_agreement() {
    run(async {
        // A sender without the request cannot list entries, even if it is allowed to.
        for allow_delete in [false, true] {
            let inbox = Inbox::new().expect("made");
            let options = ServerOptions { allow_delete, ..ServerOptions::default() };
            let serving = Serving::start(inbox.store(OnClash::Refuse), options);
            for message in
                [listing("kept", &[], true), Message::Rule(Rule { includes: true, pattern: "*".into() })]
            {
                let peer = Peer::push_to(&serving.endpoint, [1; 16]).await.expect("welcome");
                offer_folder(&peer, 0, "kept").await;
                peer.send_message(&message).await.expect("said");
                is_refused(&peer).await;
            }
            let sender_requests = SenderRequests { delete: true, ..SenderRequests::default() };
            let welcome = Peer::push_with(&serving.endpoint, [1; 16], sender_requests).await;
            assert_eq!(welcome.is_ok(), allow_delete);
            drop(welcome);
            serving.idle().await;
            assert_eq!(inbox.damage(), Vec::<String>::new());
        }
        // Neither can a host without the request.
        let (inbox, host) = (Inbox::new().expect("made"), accepting());
        let fetches = async {
            let never = || std::future::pending::<Result<_, TransferError>>();
            let first = connect(&host).await.expect("connected");
            let request = Request::from(Accept::all(false));
            pull(
                &request,
                inbox.store(OnClash::Refuse),
                first,
                never,
                Timeouts::default(),
                &Report::default(),
            )
            .await
        };
        let lies = async {
            let association = host.accept().await.expect("accepted");
            let (peer, intent) = Peer::welcome(association, 4).await.expect("a hello");
            assert!(matches!(intent, Intent::Pull { delete: false, .. }), "{intent:?}");
            offer_folder(&peer, 0, "kept").await;
            list(&peer, "kept", &[]).await;
            is_refused(&peer).await;
            peer
        };
        let (ended, _peer) = tokio::join!(fetches, lies);
        assert!(matches!(ended, Err(TransferError::Protocol(_))), "{ended:?}");
        assert_eq!(inbox.damage(), Vec::<String>::new());
    });
}

#[test]
fn omitted_file_prevents_all_removals() {
    run(async {
        let (inbox, serving, peer) = deleting().await;
        offer_folder(&peer, 0, "kept").await;
        offer_folder(&peer, 1, "../outside").await;
        list(&peer, "kept", &[]).await;
        assert_eq!(deletion_failure(&peer).await, Some(Reason::NotAllowed));
        drop(peer);
        serving.idle().await;
        assert_eq!(inbox.damage(), Vec::<String>::new());

        let (inbox, serving, peer) = deleting().await;
        offer_folder(&peer, 0, "kept").await;
        peer.offer(1, "kept/new", Kind::File { size_bytes: 5, first: None }).await.expect("said");
        list(&peer, "kept", &[]).await;
        is_refused(&peer).await;
        serving.idle().await;
        assert_eq!(inbox.damage(), Vec::<String>::new());
    });
}

#[test]
fn message_out_of_place_among_listings_ends_the_transfer() {
    run(async {
        let pattern = |pattern: &str| Message::Rule(Rule { includes: false, pattern: pattern.to_owned() });
        let kept = listing("kept", &["inside"], true);
        let file = || Kind::File { size_bytes: 5, first: None };
        let late_offer = |peer: Peer| async move {
            peer.offer(1, "kept/new", file()).await.expect("said");
            peer
        };
        for messages in [
            vec![kept.clone(), pattern("*")],
            vec![pattern("[a"), kept.clone()],
            vec![pattern("a"); anabranch_transfer::MAX_RULES + 1],
            vec![listing("kept", &["a"], false), listing("kept/other", &[], true)],
            vec![listing("kept", &["b", "a"], true)],
            vec![listing("kept", &["a"], false), listing("kept", &["a"], true)],
            vec![listing("kept", &["inside"], false), Message::Finished],
        ] {
            let (inbox, serving, peer) = deleting().await;
            offer_folder(&peer, 0, "kept").await;
            for message in &messages {
                peer.send_message(message).await.expect("said");
            }
            let ended = peer.hear_until(|_| false).await;
            assert!(
                ended.as_ref().is_err_and(|why| why.to_string().contains("protocol")),
                "{messages:?} {ended:?}"
            );
            serving.idle().await;
            assert_eq!(inbox.damage(), Vec::<String>::new(), "{messages:?}");
        }
        let (_inbox, _serving, peer) = deleting().await;
        offer_folder(&peer, 0, "kept").await;
        peer.send_message(&kept).await.expect("said");
        assert!(
            late_offer(peer)
                .await
                .hear_until(|message| matches!(message, Message::Answer { .. }))
                .await
                .is_err()
        );
    });
}

#[test]
fn endless_listing_is_aborted() {
    run(async {
        let (inbox, _serving, peer) = deleting().await;
        offer_folder(&peer, 0, "kept").await;
        let in_all = MAX_LISTED_BYTES / (200 + LISTED_NAME_BYTES);
        let mut said = 0;
        while said <= in_all + 250 {
            let names: Vec<String> = (said..said + 250).map(|number| format!("{number:0200}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if peer.send_message(&listing("kept", &names, false)).await.is_err() {
                break;
            }
            said += names.len();
        }
        assert!(said > in_all / 2, "{said} of {in_all}");
        is_refused(&peer).await;
        assert_eq!(inbox.damage(), Vec::<String>::new());
    });
}

#[test]
fn answer_to_a_missing_listing_ends_the_transfer() {
    run(async {
        let removed = Message::Deleted { name: "x".into(), failure: None };
        for (message, delete) in [(Message::Compared, true), (Message::Compared, false), (removed, false)] {
            let (from, host) = (tempfile::tempdir().expect("a folder"), accepting());
            fs::write(from.path().join("file"), "content").expect("written");
            let sender = Sender::new(vec![SendSource::path(from.path())], None, Report::default());
            let mut sender =
                sender.with_sender_requests(SenderRequests { delete, ..SenderRequests::default() });
            let first = connect(&host).await.expect("connected");
            let never = || std::future::pending::<Result<_, TransferError>>();
            let report = Report::default();
            let pushes = push(&mut sender, first, never, Timeouts::default(), &report);
            let lies = async {
                let association = host.accept().await.expect("accepted");
                let (peer, _) = Peer::welcome(association, 4).await.expect("a hello");
                peer.hear_until(|message| matches!(message, Message::Offer(_))).await.expect("an offer");
                peer.send_message(&message).await.expect("said");
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = pushes => assert!(matches!(ended, Err(TransferError::Protocol(_))), "{ended:?}"),
                () = lies => unreachable!(),
            }
        }
    });
}
