//! Rights of a peer restrict what a server allows.

use std::fs;
use std::path::Path;

use anabranch_transfer::protocol::{Kind, Message, Reason};
use anabranch_transfer::{
    Allow, Folder, Hash, Name, OnClash, Rights, SendSource, Sender, SenderRequests, Server, ServerOptions,
    Store, Timeouts, TransferError, push,
};
use tempfile::TempDir;

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Events, Serving, connect, folder, listener, names, noise, run};

/// Starts a server whose peers have these rights.
fn serving(dir: TempDir, options: ServerOptions, rights: Rights) -> Serving {
    Serving::start_as(dir, options, rights)
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns options that leave clashes to the sender.
fn options() -> ServerOptions {
    ServerOptions { allow: Allow::Both, allow_delete: true, ..ServerOptions::default() }
}

fn below(name: &str) -> Rights {
    Rights { folder: Some(Name::new(name).expect("a name")), ..Rights::default() }
}

fn quota(bytes: u64) -> Rights {
    Rights { quota_bytes: Some(bytes), ..below("anna") }
}

/// Writes a file to be sent.
fn file(dir: &Path, name: &str, length: usize) -> SendSource {
    fs::write(dir.join(name), noise(length as u64, length)).expect("written");
    SendSource::path(dir.join(name))
}

/// Sends with requests, and returns the result and the events as text.
async fn send_with(
    serving: &Serving,
    sources: Vec<SendSource>,
    sender_requests: SenderRequests,
) -> (Result<(), TransferError>, String) {
    let events = Events::default();
    let report = events.report();
    let mut sender = Sender::new(sources, None, report.clone()).with_sender_requests(sender_requests);
    let first = connect(&serving.endpoint).await;
    let again = || async { Err::<anabranch_net::Association, _>(TransferError::Lost("once".to_owned())) };
    let ended = push(&mut sender, first, again, Timeouts::default(), &report).await;
    (ended, events.text())
}

fn refusal(ended: Result<(), TransferError>) -> String {
    match ended {
        Err(TransferError::Peer(failure)) => {
            assert_eq!(failure.reason, Reason::NotAllowed);
            failure.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusal_names_the_option_or_the_right_that_is_missing() {
    run(async {
        let from = dir();
        let sources = || vec![file(from.path(), "film", 9)];
        let delete = SenderRequests { delete: true, ..SenderRequests::default() };
        let all = Rights::default;
        for (allow, allow_delete, rights, sender_requests, expected) in [
            (Allow::Read, false, all(), SenderRequests::default(), "--allow write"),
            (
                Allow::Both,
                false,
                Rights { write: false, ..all() },
                SenderRequests::default(),
                "lacks the right `write`",
            ),
            (Allow::Both, false, all(), delete, "--allow-delete"),
            (Allow::Both, true, Rights { delete: false, ..all() }, delete, "lacks the right `delete`"),
        ] {
            let options = ServerOptions { allow, allow_delete, ..options() };
            let serving = serving(dir(), options, rights);
            let text = refusal(send_with(&serving, sources(), sender_requests).await.0);
            assert!(text.contains(expected), "{expected}: {text}");
            assert!(names(serving.dir.path()).is_empty());
        }
        for (allow, rights, expected) in [
            (Allow::Write, all(), "--allow read"),
            (Allow::Both, Rights { read: false, ..all() }, "lacks the right `read`"),
        ] {
            let serving = serving(dir(), ServerOptions { allow, ..options() }, rights);
            let text = refusal(serving.fetch(&[], folder(from.path(), OnClash::Refuse)).await.0);
            assert!(text.contains(expected), "{expected}: {text}");
        }
    });
}

#[test]
fn only_the_right_overwrite_replaces_files() {
    run(async {
        let from = dir();
        for (may, decided) in [(false, None), (false, Some(OnClash::Overwrite)), (true, None)] {
            let rights = Rights { overwrite: may, ..Rights::default() };
            let serving = serving(dir(), ServerOptions { on_clash: decided, ..options() }, rights);
            fs::write(serving.dir.path().join("film"), "old").expect("written");
            let sender_requests =
                SenderRequests { on_clash: OnClash::Overwrite, ..SenderRequests::default() };
            let (ended, events) =
                send_with(&serving, vec![file(from.path(), "film", 9)], sender_requests).await;
            ended.expect("a transfer");
            let is_replaced = fs::read(serving.dir.path().join("film")).expect("there").len() == 9;
            assert_eq!(is_replaced, may);
            assert_eq!(events.contains("lacks the right `overwrite`"), !may, "{events}");
        }
    });
}

#[test]
fn key_with_a_folder_has_no_access_outside_it() {
    run(async {
        let (served, from, to) = (dir(), dir(), dir());
        fs::write(served.path().join("secret"), "secret").expect("written");
        let serving = serving(served, options(), below("users/anna"));
        serving.send(vec![file(from.path(), "film", 9)]).await.0.expect("sent");
        assert_eq!(names(&serving.dir.path().join("users/anna")), ["film"]);
        let store = || folder(to.path(), OnClash::Refuse);
        serving.fetch(&[], store()).await.0.expect("fetched");
        assert_eq!(names(to.path()), ["film"]);
        let (ended, totals, _) = serving.fetch(&["secret"], store()).await;
        ended.expect("nothing of that name");
        assert_eq!((totals.failed_files, names(to.path()).len()), (1, 1));
        // A link in it that leads out of it is not followed.
        std::os::unix::fs::symlink("../../secret", serving.dir.path().join("users/anna/link")).expect("made");
        serving.fetch(&["link"], store()).await.0.expect("nothing of that name");
        assert!(!to.path().join("link").exists());
    });
}

#[test]
fn folder_of_a_key_behind_a_link_is_refused() {
    run(async {
        let (served, from) = (dir(), dir());
        fs::create_dir(served.path().join("bert")).expect("made");
        std::os::unix::fs::symlink("bert", served.path().join("anna")).expect("made");
        let serving = serving(served, options(), below("anna"));
        let (ended, _, _) = serving.send(vec![file(from.path(), "film", 9)]).await;
        assert!(
            matches!(&ended, Err(TransferError::Peer(why)) if why.to_string().contains("anna")),
            "{ended:?}"
        );
        assert!(names(&serving.dir.path().join("bert")).is_empty());
    });
}

#[test]
fn quota_counts_stored_and_incoming_bytes() {
    run(async {
        let from = dir();
        let serving = serving(dir(), options(), quota(1000));
        // Files outside of the folder do not count.
        fs::write(serving.dir.path().join("other"), [0; 5000]).expect("written");
        let send = async |name: &str, length| {
            let (ended, totals, events) = serving.send(vec![file(from.path(), name, length)]).await;
            ended.expect("a transfer");
            serving.idle().await;
            (totals.done_files == 1, events.text())
        };
        assert!(send("a", 600).await.0);
        let (is_done, events) = send("b", 401).await;
        assert!(!is_done && events.contains("NoSpace") && events.contains("quota of 1000 B"), "{events}");
        assert_eq!(names(&serving.dir.path().join("anna")), ["a"], "nothing is left of what was refused");
        assert!(send("c", 400).await.0);
        assert!(!send("d", 1).await.0);
        assert!(send("e", 0).await.0, "an empty file needs nothing");
        fs::remove_file(serving.dir.path().join("anna/a")).expect("there");
        assert!(send("d", 600).await.0, "what is removed makes room");
    });
}

#[test]
fn folder_of_a_key_that_was_moved_or_removed_is_created_again() {
    run(async {
        let from = dir();
        let serving = serving(dir(), options(), below("anna"));
        let room = serving.dir.path().join("anna");
        for (name, after) in [("a", "moved"), ("b", ""), ("c", "")] {
            let (ended, totals, events) = serving.send(vec![file(from.path(), name, 10)]).await;
            ended.expect("a transfer");
            assert_eq!(totals.done_files, 1, "{}", events.text());
            serving.idle().await;
            assert_eq!(names(&room), [name]);
            match after {
                "" => fs::remove_dir_all(&room).expect("removed"),
                moved => fs::rename(&room, serving.dir.path().join(moved)).expect("moved"),
            }
        }
        assert_eq!(names(&serving.dir.path().join("moved")), ["a"]);
    });
}

#[test]
fn quota_ends_a_stream_and_survives_a_restart() {
    run(async {
        let (served, from) = (dir(), dir());
        let serving = serving(served, options(), quota(3 << 20));
        let stream = SendSource::stream("piped", std::io::Cursor::new(noise(1, 5 << 20)));
        let (ended, totals, events) = serving.send(vec![stream]).await;
        ended.expect("a transfer");
        assert!(totals.failed_files == 1 && events.text().contains("quota of"), "{}", events.text());
        serving.idle().await;
        let there: u64 = fs::read_dir(serving.dir.path().join("anna"))
            .expect("a folder")
            .map(|entry| {
                std::os::unix::fs::MetadataExt::blocks(&entry.expect("an entry").metadata().expect("there"))
                    * 512
            })
            .sum();
        assert!(there <= (3 << 20) + (64 << 10), "{there}");
        // Another server on the same folder has the same count.
        let inbox = Folder::open(serving.dir.path(), OnClash::Refuse).expect("a folder");
        let (endpoint, server) = (listener(), Server::new(Store::Folder(inbox), options()));
        let serve = async {
            let association = endpoint.accept().await.expect("an association");
            server.serve_with(association, &quota(3 << 20), &Events::default().report()).await
        };
        let events = Events::default();
        let report = events.report();
        let mut sender = Sender::new(vec![file(from.path(), "film", 3 << 20)], None, report.clone());
        let again = || async { Err::<anabranch_net::Association, _>(TransferError::Lost("once".to_owned())) };
        let send =
            async { push(&mut sender, connect(&endpoint).await, again, Timeouts::default(), &report).await };
        let (sent, served) = tokio::join!(send, serve);
        sent.expect("a transfer");
        served.expect("a transfer");
        assert!(events.text().contains("quota of"), "{}", events.text());
    });
}

#[test]
fn files_at_the_same_time_share_a_quota() {
    run(async {
        let from = dir();
        let serving = serving(dir(), options(), quota(1000));
        let sources = (0..5).map(|number| file(from.path(), &format!("file-{number}"), 300)).collect();
        let (ended, totals, _) = serving.send(sources).await;
        ended.expect("a transfer");
        assert_eq!((totals.done_files, totals.failed_files), (3, 2));
        // An overwritten file makes room for the new one.
        serving.idle().await;
        let sender_requests = SenderRequests { on_clash: OnClash::Overwrite, ..SenderRequests::default() };
        let serving =
            Serving::start_as(serving.dir, ServerOptions { on_clash: None, ..options() }, quota(2500));
        for length in [900, 800, 900, 800] {
            let (ended, events) =
                send_with(&serving, vec![file(from.path(), "file-0", length)], sender_requests).await;
            ended.expect("a transfer");
            assert!(events.contains("Stored"), "{events}");
            serving.idle().await;
        }
    });
}

#[test]
fn quota_counts_blocks_of_a_stream_whose_end_came_first() {
    run(async {
        let serving = serving(dir(), options(), quota(5));
        let rogue = Rogue::greet(&serving).await;
        rogue.offer(0, "piped", Kind::Stream { token: [0; 16] }).await;
        assert!(matches!(rogue.receive_message().await, Message::Answer { .. }));
        let (content, root) = (b"sixsix", Hash::of(b"any"));
        rogue.send_message(&Message::End { id: 0, size_bytes: 6, root }).await;
        // The end has to arrive first.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let header = [0_u32, 0, 0, 6, 0].map(u32::to_be_bytes).concat();
        rogue.data([&header[..], content, blake3::hash(content).as_bytes()].concat()).await;
        assert_eq!(rogue.refused().await, Reason::NoSpace);
    });
}
