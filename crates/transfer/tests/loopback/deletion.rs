//! Entries without a counterpart at the source are removed if both sides request it, and never after an incomplete transfer.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anabranch_net::Endpoint;
use anabranch_transfer::protocol::{Intent, Kind, Listing, Message, Outcome, Reason, SenderRequests, Terms};
use anabranch_transfer::{
    Accept, Event, Filters, Links, Mode, OnClash, Request, Rule, SendSource, Sender, ServerOptions, Timeouts,
    Totals, TransferError, pull, push,
};
use tempfile::TempDir;

use crate::loopback::failures::Rogue;
use crate::loopback::support::{
    Events, Serving, connect, folder, identity, listener, names, noise, rate, run,
};

const DELETE: SenderRequests =
    SenderRequests { on_clash: OnClash::Overwrite, checksum: false, dry_run: false, delete: true };

/// Starts a server that allows senders to remove entries.
fn serving() -> Serving {
    Serving::start(OnClash::Overwrite, ServerOptions { allow_delete: true, ..ServerOptions::default() })
}

/// Writes files below a folder, each with its name as content.
fn fill<'a>(dir: &Path, files: impl IntoIterator<Item = &'a str>) {
    for file in files {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("made");
        fs::write(path, file).expect("written");
    }
}

fn source(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fill(dir.path(), files.iter().copied());
    dir
}

/// Returns everything below a folder, in order.
fn tree(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in names(dir) {
        found.push(name.clone());
        if dir.join(&name).symlink_metadata().expect("there").is_dir() {
            found.extend(tree(&dir.join(&name)).into_iter().map(|inside| format!("{name}/{inside}")));
        }
    }
    found
}

pub(crate) async fn send(
    serving: &Serving,
    sources: Vec<SendSource>,
    sender_requests: SenderRequests,
) -> (Result<(), TransferError>, Totals, Events) {
    let events = Events::default();
    let report = events.report();
    let sender = Sender::new(sources, None, report.clone()).with_identity(identity());
    let mut sender = sender.with_sender_requests(sender_requests);
    let again = || async { Ok::<_, TransferError>(connect(&serving.endpoint).await) };
    let first = connect(&serving.endpoint).await;
    let ended = push(&mut sender, first, again, Timeouts::default(), &report).await;
    serving.idle().await;
    (ended, report.totals(), events)
}

async fn fetch(serving: &Serving, to: &Path, request: &Request) -> Events {
    let events = Events::default();
    let report = events.report();
    let never = || std::future::pending::<Result<_, TransferError>>();
    let first = connect(&serving.endpoint).await;
    let store = folder(to, OnClash::Refuse);
    pull(request, store, first, never, Timeouts::default(), &report).await.expect("fetched");
    serving.idle().await;
    events
}

fn without(patterns: &[&str]) -> Filters {
    let rule = |pattern: &&str| Rule { includes: false, pattern: (*pattern).to_owned() };
    Filters::new(patterns.iter().map(rule).collect()).expect("patterns")
}

fn deleted(events: &Events) -> Vec<String> {
    let name = |event: &Event| match event {
        Event::Deleted { name, .. } => Some(name.to_string()),
        _ => None,
    };
    let mut names: Vec<String> = events.list().iter().filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn sent_folders_are_equal_afterwards_and_others_unchanged() {
    run(async {
        let mut dice = fastrand::Rng::with_seed(7);
        let name = |dice: &mut fastrand::Rng| {
            let folders: String = (0..dice.u8(..3)).map(|_| format!("d{}/", dice.u8(..3))).collect();
            format!("t/{folders}f{}", dice.u8(..4))
        };
        for round in 0..12 {
            let serving = serving();
            let sent: Vec<String> = (0..=dice.u8(1..12)).map(|_| name(&mut dice)).collect();
            let there: Vec<String> = (0..dice.u8(..20)).map(|_| name(&mut dice)).collect();
            let from = source(&[]);
            fill(from.path(), sent.iter().map(String::as_str));
            fill(serving.dir.path(), there.iter().map(String::as_str).chain(["other/file", "top"]));
            let before = tree(serving.dir.path());
            let (ended, totals, events) =
                send(&serving, vec![SendSource::path(from.path().join("t"))], DELETE).await;
            ended.expect("sent");
            let mut expected = tree(from.path());
            expected.extend(["other", "other/file", "top"].map(str::to_owned));
            expected.sort();
            let mut now = tree(serving.dir.path());
            now.sort();
            assert_eq!(now, expected, "round {round}: {}", events.text());
            let mut gone: Vec<String> = before.into_iter().filter(|name| !expected.contains(name)).collect();
            gone.sort();
            assert_eq!(deleted(&events), gone, "the sender is told");
            assert_eq!(deleted(&serving.events), gone);
            assert_eq!((totals.deleted, totals.deletable, totals.failed_files), (gone.len() as u64, 0, 0));
        }
    });
}

#[test]
fn receiver_that_forbids_deletion_refuses_before_sending() {
    run(async {
        let (serving, from) = (Serving::usual(), source(&["t/new"]));
        fill(serving.dir.path(), ["t/old"]);
        let sources = vec![SendSource::path(from.path().join("t"))];
        let (ended, ..) = send(&serving, sources, DELETE).await;
        let Err(TransferError::Peer(failure)) = ended else { panic!("{ended:?}") };
        assert_eq!(failure.reason, Reason::NotAllowed);
        assert!(failure.to_string().contains("--allow-delete"), "{failure}");
        assert_eq!(tree(serving.dir.path()), ["t", "t/old"]);
    });
}

#[test]
fn no_file_is_removed_without_a_request() {
    run(async {
        let (serving, from) = (serving(), source(&["t/new"]));
        fill(serving.dir.path(), ["t/old"]);
        let sources = vec![SendSource::path(from.path().join("t"))];
        send(&serving, sources, SenderRequests::default()).await.0.expect("sent");
        assert_eq!(tree(serving.dir.path()), ["t", "t/new", "t/old"]);
    });
}

#[test]
fn excluded_files_stay_at_the_receiver() {
    run(async {
        let (serving, from) = (serving(), source(&["t/a.c", "t/a.o", "t/cache/x", "t/src/a.c"]));
        fill(
            serving.dir.path(),
            ["t/b.o", "t/cache/y", "t/src/gone.c", "t/old/gone.c", "t/old/a.o", "t/odd"],
        );
        let filters = without(&["*.o", "cache/"]);
        let sources = vec![SendSource::path(from.path().join("t")).with_filters(filters)];
        let (ended, totals, events) = send(&serving, sources, DELETE).await;
        ended.expect("sent");
        let expected =
            ["t", "t/a.c", "t/b.o", "t/cache", "t/cache/y", "t/old", "t/old/a.o", "t/src", "t/src/a.c"];
        assert_eq!(tree(serving.dir.path()), expected);
        assert_eq!(deleted(&events), ["t/odd", "t/old/gone.c", "t/src/gone.c"]);
        assert_eq!(totals.deleted, 3);
    });
}

#[test]
fn unsent_links_stay_and_surplus_links_are_not_followed() {
    run(async {
        let (serving, from) = (serving(), source(&["t/real"]));
        symlink("/etc/passwd", from.path().join("t/out")).expect("linked");
        fill(serving.dir.path(), ["t/out", "precious/file"]);
        symlink("../precious", serving.dir.path().join("t/surplus")).expect("linked");
        let sources = vec![SendSource::path(from.path().join("t"))];
        let (ended, totals, events) = send(&serving, sources, DELETE).await;
        ended.expect("sent");
        assert_eq!(tree(serving.dir.path()), ["precious", "precious/file", "t", "t/out", "t/real"]);
        assert_eq!((totals.deleted, totals.failed_files), (1, 0), "{}", events.text());
    });
}

#[test]
fn dry_run_lists_removals_and_removes_no_file() {
    run(async {
        let (serving, from) = (serving(), source(&["t/new", "u/file"]));
        fill(serving.dir.path(), ["t/old/file"]);
        let before = tree(serving.dir.path());
        let sources = ["t", "u"].map(|name| SendSource::path(from.path().join(name))).to_vec();
        let (ended, totals, events) =
            send(&serving, sources, SenderRequests { dry_run: true, ..DELETE }).await;
        ended.expect("looked at");
        assert_eq!(deleted(&events), ["t/old", "t/old/file"]);
        assert_eq!((totals.deleted, totals.deletable), (0, 2));
        assert_eq!(tree(serving.dir.path()), before);
    });
}

#[test]
fn incomplete_transfer_removes_no_file() {
    run(async {
        let from = source(&["t/file"]);
        let serving = serving();
        // A socket is never transferred.
        let socket = from.path().join("t/socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        fill(serving.dir.path(), ["t/old"]);
        let sources = || vec![SendSource::path(from.path().join("t"))];
        let (ended, totals, events) = send(&serving, sources(), DELETE).await;
        ended.expect("the transfer itself goes well");
        assert_eq!((totals.failed_files, totals.deleted), (1, 0));
        assert!(events.text().contains("because files were omitted"), "{}", events.text());
        assert!(serving.dir.path().join("t/old").exists());
        // Without the socket, the file is removed.
        fs::remove_file(&socket).expect("removed");
        send(&serving, sources(), DELETE).await.0.expect("sent");
        assert_eq!(tree(serving.dir.path()), ["t", "t/file"]);
        // A missing source counts as a failed file, too.
        fill(serving.dir.path(), ["t/old"]);
        let mut sources = sources();
        sources.push(SendSource::path(from.path().join("missing")));
        assert_eq!(send(&serving, sources, DELETE).await.1.failed_files, 1);
        assert!(serving.dir.path().join("t/old").exists());
    });
}

#[test]
fn sources_with_different_filters_remove_no_file() {
    run(async {
        let (serving, from) = (serving(), source(&["t/a", "u/a"]));
        fill(serving.dir.path(), ["t/old"]);
        let sources = vec![
            SendSource::path(from.path().join("t")).with_filters(without(&["*.o"])),
            SendSource::path(from.path().join("u")),
        ];
        let (ended, totals, events) = send(&serving, sources, DELETE).await;
        ended.expect("sent");
        assert!(events.text().contains("different filters"), "{}", events.text());
        assert_eq!((totals.deleted, serving.dir.path().join("t/old").exists()), (0, true));
    });
}

#[test]
fn two_folders_of_one_name_keep_files_of_each_other() {
    run(async {
        let (serving, from) = (serving(), source(&["one/t/a", "two/t/b"]));
        fill(serving.dir.path(), ["t/old"]);
        let sources = ["one/t", "two/t"].map(|name| SendSource::path(from.path().join(name))).to_vec();
        let (ended, totals, events) = send(&serving, sources, DELETE).await;
        ended.expect("sent");
        assert_eq!(tree(serving.dir.path()), ["t", "t/a", "t/b", "t/old"]);
        assert_eq!((totals.deleted, totals.failed_files), (0, 1), "{}", events.text());
    });
}

#[test]
fn interrupted_sender_removes_no_file_until_it_reconnects() {
    run(async {
        let (serving, from) = (serving(), source(&["t/a", "t/z/file", "u/b"]));
        fs::write(from.path().join("u/big"), noise(1, 6 << 20)).expect("written");
        fill(serving.dir.path(), ["t/old", "t/z/old", "u/old"]);
        // The association is lost after the first folder is done and before the second one is.
        let sources = ["t", "u"].map(|name| SendSource::path(from.path().join(name))).to_vec();
        let report = Events::default().report();
        let sender = Sender::new(sources, Some(rate(6_000_000)), report.clone());
        let mut sender = sender.with_identity(identity()).with_sender_requests(DELETE);
        let again = || async { Ok::<_, TransferError>(connect(&serving.endpoint).await) };
        let first = connect(&serving.endpoint).await;
        let cut = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            assert!(serving.dir.path().join("t/old").exists(), "the transfer is not done");
            serving.server.abort_all();
            serving.idle().await;
            assert!(serving.dir.path().join("t/old").exists() && serving.dir.path().join("t/z/old").exists());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = push(&mut sender, first, again, Timeouts::default(), &report) => ended.expect("sent"),
            () = cut => unreachable!(),
        }
        serving.idle().await;
        assert_eq!(tree(serving.dir.path()), ["t", "t/a", "t/z", "t/z/file", "u", "u/b", "u/big"]);
    });
}

/// Reports every offer as present, answers this number of listings, and vanishes when the next one arrives.
async fn vanish_amid_listings(endpoint: &Endpoint, answered: usize) {
    let rogue = Rogue(endpoint.accept().await.expect("an association"));
    rogue.0.recv().await.expect("open").expect("a hello");
    rogue.send_message(&Message::Welcome { terms: Terms::Take { window_blocks: 4 } }).await;
    let mut left = answered;
    loop {
        match rogue.receive_message().await {
            Message::Offer(offer) => {
                rogue.send_message(&Message::Done { id: offer.id, outcome: Outcome::Identical }).await;
            }
            Message::Listing(_) if left == 0 => break,
            Message::Listing(_) => {
                left -= 1;
                rogue.send_message(&Message::Compared).await;
            }
            _ => {}
        }
    }
    rogue.0.abort();
}

#[test]
fn sender_repeats_all_listings_on_the_next_association() {
    run(async {
        for answered in 0..3 {
            let (serving, lossy, from) = (serving(), listener(), source(&["t/a", "t/z/file", "u/b"]));
            fill(serving.dir.path(), ["t/a", "t/old", "t/z/file", "t/z/old", "u/b", "u/old", "other"]);
            let sources = ["t", "u"].map(|name| SendSource::path(from.path().join(name))).to_vec();
            let events = Events::default();
            let report = events.report();
            let mut sender = Sender::new(sources, None, report.clone()).with_sender_requests(DELETE);
            let again = || async { Ok::<_, TransferError>(connect(&serving.endpoint).await) };
            let first = connect(&lossy).await;
            let sending = push(&mut sender, first, again, Timeouts::default(), &report);
            let (ended, ()) = tokio::join!(sending, vanish_amid_listings(&lossy, answered));
            ended.expect("sent");
            serving.idle().await;
            assert_eq!(events.text().matches("Reconnected").count(), 1, "{}", events.text());
            assert_eq!(tree(serving.dir.path()), ["other", "t", "t/a", "t/z", "t/z/file", "u", "u/b"]);
            assert_eq!(deleted(&serving.events), ["t/old", "t/z/old", "u/old"]);
            let totals = report.totals();
            assert_eq!((totals.deleted, totals.failed_files), (3, 0));
        }
    });
}

/// A stream that ends on request.
struct Gate(mpsc::Receiver<()>);

impl Read for Gate {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // Its thread reads files, too, so it must not wait.
        buffer.fill(7);
        Ok(if self.0.try_recv().is_ok() { 0 } else { buffer.len() })
    }
}

#[test]
fn replaced_or_missing_folder_keeps_files_and_others_remove() {
    run(async {
        for is_replaced in [true, false] {
            let (serving, from) = (serving(), source(&["t/a", "u/b"]));
            fill(serving.dir.path(), ["t/old", "u/old"]);
            let (open, opened) = mpsc::channel();
            let mut sources = ["t", "u"].map(|name| SendSource::path(from.path().join(name))).to_vec();
            sources.push(SendSource::stream("gate", Gate(opened)));
            let swap = async {
                let is_there = |name: &str| serving.dir.path().join(name).exists();
                while !is_there("t/a") || !is_there("u/b") {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                fs::rename(from.path().join("t"), from.path().join("elsewhere")).expect("renamed");
                if is_replaced {
                    fill(from.path(), ["t/other"]);
                }
                open.send(()).expect("it is waited for");
            };
            let ((ended, totals, events), ()) = tokio::join!(send(&serving, sources, DELETE), swap);
            ended.expect("the transfer itself goes well");
            let why = "is no longer the folder that was sent; no surplus file of the receiver was removed";
            assert_eq!(events.text().contains(why), is_replaced, "{}", events.text());
            assert_eq!((totals.failed_files, totals.deleted), (1, 1), "{}", events.text());
            assert_eq!(tree(serving.dir.path()), ["gate", "t", "t/a", "t/old", "u", "u/b"]);
        }
    });
}

#[test]
fn incomplete_listing_removes_no_file() {
    run(async {
        let serving = serving();
        fill(serving.dir.path(), ["t/old"]);
        let rogue = Rogue(connect(&serving.endpoint).await);
        let intent = Intent::Push { sender: identity(), sender_requests: DELETE };
        rogue.send_message(&Message::Hello { session: [1; 16], intent }).await;
        assert!(matches!(rogue.receive_message().await, Message::Welcome { .. }));
        rogue.offer(0, "t", Kind::Folder).await;
        assert!(matches!(
            rogue.receive_message().await,
            Message::Done { outcome: Outcome::Stored { .. }, .. }
        ));
        let listing =
            |is_complete| Message::Listing(Listing { folder: "t".into(), names: Vec::new(), is_complete });
        rogue.send_message(&listing(false)).await;
        rogue.send_message(&Message::Finished).await;
        assert_eq!(rogue.last_failure().await, Some(Reason::Protocol), "the listing has no end");
        serving.idle().await;
        assert!(serving.dir.path().join("t/old").exists());
    });
}

#[test]
fn unfinished_files_of_other_senders_stay() {
    run(async {
        let (serving, from) = (serving(), source(&["t/file"]));
        let part = "t/.movie.0011223344556677.anabranch-part";
        fill(serving.dir.path(), [part, "t/.movie.0011223344556677.anabranch-journal", "t/old"]);
        let sources = vec![SendSource::path(from.path().join("t"))];
        let (ended, totals, _) = send(&serving, sources, DELETE).await;
        ended.expect("sent");
        assert_eq!((totals.deleted, serving.dir.path().join(part).exists()), (1, true));
        assert_eq!(names(&serving.dir.path().join("t")).len(), 3);
    });
}

#[test]
fn a_file_that_was_stored_beside_another_one_stays() {
    run(async {
        let options = ServerOptions { allow_delete: true, ..ServerOptions::default() };
        let (serving, from) = (Serving::start(OnClash::Rename, options), source(&["t/file"]));
        fill(serving.dir.path(), ["t/old"]);
        fs::write(serving.dir.path().join("t/file"), "another").expect("written");
        let sources = vec![SendSource::path(from.path().join("t"))];
        send(&serving, sources, DELETE).await.0.expect("sent");
        assert_eq!(tree(serving.dir.path()), ["t", "t/file", "t/file.1"]);
    });
}

#[test]
fn fetching_side_removes_locally_without_informing_the_host() {
    run(async {
        let (serving, to) = (Serving::usual(), tempfile::tempdir().expect("a folder"));
        fill(serving.dir.path(), ["t/file", "t/keep.o", "u/file", "t/sub/deep"]);
        fill(to.path(), ["t/old", "t/a.o", "t/sub/old", "u/old", "other"]);
        for (names, mode, expected) in [
            (&["t"][..], Mode::DryRun, None),
            (
                &["t"],
                Mode::Store,
                Some(&["other", "t", "t/a.o", "t/file", "t/sub", "t/sub/deep", "u", "u/old"][..]),
            ),
            (
                &[],
                Mode::Store,
                Some(&["other", "t", "t/a.o", "t/file", "t/sub", "t/sub/deep", "u", "u/file"]),
            ),
        ] {
            let before = tree(to.path());
            let accept =
                if names.is_empty() { Accept::all(false) } else { Accept::names(names).expect("names") };
            let accept = accept.with_filters(without(&["*.o"]));
            let request = Request { accept, links: Links::Copy, mode, delete: true };
            let events = fetch(&serving, to.path(), &request).await;
            match expected {
                Some(expected) => assert_eq!(tree(to.path()), expected),
                None => {
                    assert_eq!(tree(to.path()), before);
                    assert_eq!(deleted(&events), ["t/old", "t/sub/old"]);
                }
            }
            assert!(deleted(&serving.events).is_empty());
        }
    });
}

#[test]
fn fetching_side_removes_no_file_after_an_omission() {
    run(async {
        let (serving, to) = (Serving::usual(), tempfile::tempdir().expect("a folder"));
        fill(serving.dir.path(), ["t/file"]);
        fill(to.path(), ["t/old"]);
        let accept = Accept::names(["t", "missing"]).expect("names");
        let request = Request { accept, delete: true, ..Request::default() };
        let events = fetch(&serving, to.path(), &request).await;
        assert_eq!(tree(to.path()), ["t", "t/file", "t/old"]);
        assert!(events.text().contains("no file was removed, because files were omitted"));
    });
}
