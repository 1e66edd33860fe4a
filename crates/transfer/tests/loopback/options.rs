//! Requests of a sender, and options of the side that fetches.

use std::fs;
use std::path::Path;

use anabranch_transfer::protocol::{Answer, Intent, Kind, Message, Outcome, Reason};
use anabranch_transfer::{
    Accept, Durability, Event, Filters, Folder, Hash, Mode, OnClash, Pipe, Report, Request, Rule, SendSource,
    Sender, SenderRequests, Server, ServerOptions, Store, Timeouts, Totals, TransferError, pull, push,
};

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Events, Serving, connect, folder, identity, names, run};

async fn send(
    serving: &Serving,
    sources: Vec<SendSource>,
    sender_requests: SenderRequests,
) -> (Totals, Events) {
    let events = Events::default();
    let report = events.report();
    let sender = Sender::new(sources, None, report.clone());
    let mut sender = sender.with_identity(identity()).with_sender_requests(sender_requests);
    let never = || std::future::pending::<Result<_, TransferError>>();
    let first = connect(&serving.endpoint).await;
    push(&mut sender, first, never, Timeouts::default(), &report)
        .await
        .expect("the transfer itself goes well");
    (report.totals(), events)
}

async fn fetch(serving: &Serving, request: &Request, store: Store) -> (Totals, Events) {
    let events = Events::default();
    let report = events.report();
    let never = || std::future::pending::<Result<_, TransferError>>();
    let first = connect(&serving.endpoint).await;
    pull(request, store, first, never, Timeouts::default(), &report).await.expect("fetched");
    (report.totals(), events)
}

/// Starts a server that leaves clashes to the sender unless `decided` is set.
fn serving(decided: Option<OnClash>) -> Serving {
    let mut serving = Serving::usual();
    let (endpoint, store) =
        (crate::loopback::support::listener(), folder(serving.dir.path(), OnClash::Refuse));
    let server = Server::new(store, ServerOptions { on_clash: decided, ..ServerOptions::default() });
    let (accepting, serving_too) = (endpoint.clone(), server.clone());
    tokio::spawn(async move {
        while let Ok(association) = accepting.accept().await {
            let server = serving_too.clone();
            tokio::spawn(async move { server.serve(association, &Report::default()).await });
        }
    });
    (serving.endpoint, serving.server) = (endpoint, server);
    serving
}

fn filters(rules: &[(bool, &str)]) -> Filters {
    let rule = |&(includes, pattern): &(bool, &str)| Rule { includes, pattern: pattern.to_owned() };
    Filters::new(rules.iter().map(rule).collect()).expect("patterns")
}

/// Returns every file below a folder.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in names(dir) {
        if dir.join(&name).is_dir() {
            found.extend(files(&dir.join(&name)).into_iter().map(|inside| format!("{name}/{inside}")));
        } else {
            found.push(name);
        }
    }
    found
}

#[test]
fn sender_chooses_the_clash_rule_where_the_receiver_permits_it() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        for (decided, wish, expected, advice) in [
            (
                None,
                OnClash::Refuse,
                vec!["old"],
                Some("send with --on-clash rename to keep both, or overwrite"),
            ),
            (None, OnClash::Rename, vec!["old", "new!"], None),
            (None, OnClash::Overwrite, vec!["new!"], None),
            (Some(OnClash::Refuse), OnClash::Overwrite, vec!["old"], Some("the receiver keeps its files")),
            (Some(OnClash::Rename), OnClash::Overwrite, vec!["old", "new!"], None),
            (Some(OnClash::Overwrite), OnClash::Refuse, vec!["new!"], None),
        ] {
            let serving = serving(decided);
            fs::write(&file, "old").expect("written");
            let sender_requests = SenderRequests { on_clash: wish, ..SenderRequests::default() };
            send(&serving, vec![SendSource::path(&file)], sender_requests).await;
            fs::write(&file, "new!").expect("written");
            let (totals, events) = send(&serving, vec![SendSource::path(&file)], sender_requests).await;
            assert_eq!(totals.failed_files, u64::from(advice.is_some()), "{decided:?} {wish:?}");
            assert!(advice.is_none_or(|advice| events.text().contains(advice)), "{}", events.text());
            let there = names(serving.dir.path());
            let contents: Vec<String> = there
                .iter()
                .map(|name| fs::read_to_string(serving.dir.path().join(name)).expect("there"))
                .collect();
            assert_eq!(contents, expected, "{decided:?} {wish:?}");
        }
    });
}

#[test]
fn dry_run_reports_actions_and_changes_no_file() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir_all(tree.join("new")).expect("made");
        for (name, content) in [("same", "same"), ("other", "1234"), ("new/file", "new")] {
            fs::write(tree.join(name), content).expect("written");
        }
        std::os::unix::fs::symlink("same", tree.join("link")).expect("linked");
        let fill = |dir: &Path| {
            fs::create_dir(dir.join("tree")).expect("made");
            fs::write(dir.join("tree/same"), "same").expect("written");
            fs::write(dir.join("tree/other"), "4321").expect("written");
        };
        let check = |dir: &Path, events: &Events| {
            assert_eq!(files(dir), ["tree/other", "tree/same"]);
            assert_eq!(names(&dir.join("tree")), ["other", "same"]);
            assert!(!dir.join(".anabranch-stored").exists(), "not even a record");
            let planned = |name: &str| {
                events.list().iter().any(|event| matches!(event, Event::Done { name: done, outcome: Outcome::Planned, .. } if done.to_string() == name))
            };
            assert!(planned("tree/new/file") && planned("tree/link"), "{}", events.text());
            assert!(!planned("tree/same") && !planned("tree/other"), "{}", events.text());
            assert!(events.text().contains("with other content"), "{}", events.text());
        };
        let serving = serving(None);
        fill(serving.dir.path());
        let sender_requests = SenderRequests { dry_run: true, ..SenderRequests::default() };
        let (totals, events) = send(&serving, vec![SendSource::path(&tree)], sender_requests).await;
        assert_eq!((totals.failed_files, totals.moved_bytes), (1, 0), "{}", events.text());
        check(serving.dir.path(), &events);
        // The same in the other direction.
        let (server, to) = (
            Serving::start_in(from, OnClash::Refuse, ServerOptions::default()),
            tempfile::tempdir().expect("a folder"),
        );
        fill(to.path());
        let accept = Accept::names(["tree"]).expect("names");
        let request = Request { accept, mode: Mode::DryRun, ..Request::default() };
        let (totals, events) = fetch(&server, &request, folder(to.path(), OnClash::Refuse)).await;
        assert_eq!((totals.failed_files, totals.moved_bytes), (1, 0), "{}", events.text());
        check(to.path(), &events);
    });
}

#[test]
fn list_prints_names_in_order_and_fetches_no_file() {
    run(async {
        let serving = Serving::usual();
        fs::create_dir(serving.dir.path().join("d")).expect("made");
        for name in ["z", "d/b", "d/a", ".hidden"] {
            fs::write(serving.dir.path().join(name), name).expect("written");
        }
        for (accept, expected) in [
            (Accept::all(true), vec![".hidden", "d", "d/a", "d/b", "z"]),
            (Accept::names(["d"]).expect("names"), vec!["d", "d/a", "d/b"]),
            (Accept::all(true).with_filters(filters(&[(false, "a")])), vec![".hidden", "d", "d/b", "z"]),
        ] {
            let request = Request { accept, mode: Mode::List, ..Request::default() };
            let (totals, events) = fetch(&serving, &request, Store::Pipe(Pipe::new(std::io::sink()))).await;
            let listed: Vec<String> = events
                .list()
                .iter()
                .filter_map(|event| match event {
                    Event::Listed(offer) => Some(offer.name.to_string()),
                    _ => None,
                })
                .collect();
            assert_eq!(listed, expected);
            assert_eq!((totals.failed_files, totals.moved_bytes), (0, 0));
        }
    });
}

#[test]
fn excluded_files_are_neither_sent_nor_fetched() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir_all(tree.join("cache/keep")).expect("made");
        fs::create_dir_all(tree.join("src")).expect("made");
        for name in ["src/a.c", "src/a.o", "src/keep.o", "cache/keep/x", "cachet"] {
            fs::write(tree.join(name), name).expect("written");
        }
        let rules = filters(&[(true, "keep.o"), (false, "*.o"), (false, "cache/")]);
        let source = SendSource::path(&tree).with_filters(rules.clone());
        let (totals, events) = send(&serving, vec![source], SenderRequests::default()).await;
        assert_eq!((totals.done_files, totals.failed_files), (3, 0), "{}", events.text());
        let expected = ["tree/cachet", "tree/src/a.c", "tree/src/keep.o"];
        assert_eq!(files(serving.dir.path()), expected);
        let server = Serving::start_in(from, OnClash::Refuse, ServerOptions::default());
        let to = tempfile::tempdir().expect("a folder");
        let accept = Accept::names(["tree"]).expect("names").with_filters(rules);
        let (totals, _) = fetch(&server, &accept.into(), folder(to.path(), OnClash::Refuse)).await;
        assert_eq!((totals.done_files, totals.failed_files), (3, 0));
        assert_eq!(files(to.path()), expected);
    });
}

#[test]
fn excluded_offer_of_a_server_is_refused() {
    run(async {
        let (endpoint, to) = (crate::loopback::support::listener(), tempfile::tempdir().expect("a folder"));
        let accept = Accept::names(["d"]).expect("names").with_filters(filters(&[(false, "*.o")]));
        let store = folder(to.path(), OnClash::Refuse);
        let fetches = async {
            let never = || std::future::pending::<Result<_, TransferError>>();
            let request = accept.into();
            pull(&request, store, connect(&endpoint).await, never, Timeouts::default(), &Report::default())
                .await
        };
        let lies = async {
            let rogue = Rogue::welcome(&endpoint).await;
            rogue.offer(0, "d/a.o", Kind::File { size_bytes: 0, first: None }).await;
            assert_eq!(rogue.refused().await, Reason::NotAllowed);
            rogue.send_message(&Message::Finished).await;
            rogue
        };
        let (ended, _rogue) = tokio::join!(fetches, lies);
        ended.expect("the rest goes well");
        assert!(names(to.path()).is_empty());
    });
}

#[test]
fn patterns_that_cannot_be_read_and_too_many_of_them_are_refused() {
    run(async {
        let serving = Serving::usual();
        let rule = |pattern: &str| Message::Rule(Rule { includes: false, pattern: pattern.to_owned() });
        let rogue = Rogue::ask(&serving).await;
        rogue.send_message(&rule("[a")).await;
        rogue.send_message(&Message::WantEnd).await;
        assert_eq!(rogue.last_failure().await, Some(Reason::BadName));
        let rogue = Rogue::ask(&serving).await;
        for _ in 0..=anabranch_transfer::MAX_RULES {
            rogue.send_message(&rule("a")).await;
        }
        assert_eq!(rogue.last_failure().await, Some(Reason::Protocol));
    });
}

#[test]
fn recorded_file_is_compared_on_request() {
    run(async {
        let serving = serving(None);
        let file = Kind::File { size_bytes: 0, first: None };
        for (round, (checksum, is_compared)) in
            (1..).zip([(false, None), (false, Some(false)), (true, Some(true))])
        {
            let rogue = Rogue(connect(&serving.endpoint).await);
            let sender_requests = SenderRequests { checksum, ..SenderRequests::default() };
            let intent = Intent::Push { sender: identity(), sender_requests };
            rogue.send_message(&Message::Hello { session: [round; 16], intent }).await;
            assert!(matches!(rogue.receive_message().await, Message::Welcome { .. }));
            rogue.offer(0, "file", file.clone()).await;
            match (is_compared, rogue.receive_message().await) {
                (None, Message::Answer { answer: Answer::Take { .. }, .. }) => {
                    rogue.send_message(&Message::End { id: 0, size_bytes: 0, root: Hash::of(b"") }).await;
                    assert!(matches!(
                        rogue.receive_message().await,
                        Message::Done { outcome: Outcome::Stored { .. }, .. }
                    ));
                }
                (Some(false), Message::Done { outcome: Outcome::Identical, .. })
                | (Some(true), Message::Answer { answer: Answer::Compare, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn files_that_are_brought_to_the_disk_one_by_one_arrive_as_well() {
    run(async {
        let (dir, endpoint) = (tempfile::tempdir().expect("a folder"), crate::loopback::support::listener());
        let to =
            Folder::open(dir.path(), OnClash::Refuse).expect("a folder").with_durability(Durability::Each);
        let server = Server::new(Store::Folder(to), ServerOptions::default());
        let accepting = endpoint.clone();
        tokio::spawn(async move {
            while let Ok(association) = accepting.accept().await {
                server.serve(association, &Report::default()).await.expect("served");
            }
        });
        let from = tempfile::tempdir().expect("a folder");
        fs::create_dir(from.path().join("d")).expect("made");
        for number in 0..40 {
            fs::write(from.path().join(format!("d/{number}")), number.to_string()).expect("written");
        }
        let report = Report::default();
        let mut sender = Sender::new(vec![SendSource::path(from.path().join("d"))], None, report.clone());
        let never = || std::future::pending::<Result<_, TransferError>>();
        push(&mut sender, connect(&endpoint).await, never, Timeouts::default(), &report).await.expect("sent");
        assert_eq!((report.totals().done_files, files(dir.path()).len()), (40, 40));
    });
}
