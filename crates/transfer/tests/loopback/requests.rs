//! Only requested files are stored.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anabranch_net::{Endpoint, SendOptions};
use anabranch_transfer::protocol::{Kind, Message, Reason};
use anabranch_transfer::{
    Accept, Allow, OnClash, Pipe, Report, SendSource, ServerOptions, Store, Timeouts, TransferError, pull,
};

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Serving, connect, folder, listener, names, run};

pub(crate) fn file(size_bytes: u64) -> Kind {
    Kind::File { size_bytes, first: None }
}

/// Fetches from a source that makes these offers regardless of the request. Returns the result, and the source's refusal.
pub(crate) async fn fetch(
    accept: &Accept,
    store: Store,
    offers: &[(&str, Kind)],
) -> (Result<(), TransferError>, Option<Reason>) {
    let endpoint = listener();
    let source = async {
        let rogue = Rogue::welcome(&endpoint).await;
        for (id, (name, kind)) in (0..).zip(offers) {
            rogue.offer(id, name, kind.clone()).await;
        }
        rogue.last_failure().await
    };
    let (ended, reason) = tokio::join!(fetch_from(&endpoint, accept, store), source);
    (ended, reason)
}

pub(crate) async fn fetch_from(
    endpoint: &Endpoint,
    accept: &Accept,
    store: Store,
) -> Result<(), TransferError> {
    let timeouts = Timeouts { retry: Duration::ZERO, ..Timeouts::default() };
    let again = || async {
        Err::<anabranch_net::Association, _>(TransferError::Lost("no second association".to_owned()))
    };
    pull(&accept.clone().into(), store, connect(endpoint).await, again, timeouts, &Report::default()).await
}

fn is_empty(dir: &Path) -> bool {
    names(dir).is_empty()
}

#[test]
fn unrequested_file_of_a_server_is_refused() {
    run(async {
        let accept = Accept::names(["video.mkv"]).expect("a name");
        for (name, kind) in [
            (".bashrc", file(0)),
            (".ssh", Kind::Folder),
            (".ssh/authorized_keys", file(0)),
            ("video.mkv2", file(0)),
            ("Video.mkv", file(0)),
            (".ssh", Kind::FolderEnd),
            ("piped", Kind::Stream { token: [0; 16] }),
        ] {
            let to = tempfile::tempdir().expect("a folder");
            let store = folder(to.path(), OnClash::Overwrite);
            let (ended, reason) = fetch(&accept, store, &[(name, kind)]).await;
            match ended {
                Err(TransferError::NotRequested(offered)) => assert_eq!(offered.as_str(), name),
                other => panic!("{name}: {other:?}"),
            }
            assert_eq!(reason, Some(Reason::NotAllowed), "{name}");
            assert!(is_empty(to.path()), "{name}");
        }
        let (ended, _) =
            fetch(&accept, Store::Pipe(Pipe::new(std::io::sink())), &[(".bashrc", file(0))]).await;
        assert!(matches!(ended, Err(TransferError::NotRequested(_))), "{ended:?}");
    });
}

#[test]
fn fetch_of_all_omits_and_reports_hidden_names() {
    run(async {
        let serving = Serving::usual();
        fs::write(serving.dir.path().join(".bashrc"), "evil").expect("written");
        fs::create_dir_all(serving.dir.path().join("tree/.git")).expect("made");
        fs::write(serving.dir.path().join("tree/.git/run"), "#!/bin/sh").expect("written");
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(serving.dir.path().join("tree/.git/run"), runs).expect("set");
        let to = tempfile::tempdir().expect("a folder");
        let (ended, totals, events) = serving.fetch(&[], folder(to.path(), OnClash::Refuse)).await;
        ended.expect("the transfer itself goes well");
        assert_eq!((totals.done_files, totals.failed_files), (1, 1), "{}", events.text());
        assert!(events.text().contains("--hidden or if requested by name"), "{}", events.text());
        assert_eq!(names(to.path()), ["tree"]);
        let mode = fs::metadata(to.path().join("tree/.git/run")).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "inside an accepted folder dot names and x bits are kept");
        serving.fetch(&[".bashrc"], folder(to.path(), OnClash::Refuse)).await.0.expect("asked for by name");
        assert_eq!(names(to.path()), [".bashrc", "tree"]);
    });
}

#[test]
fn server_stores_hidden_names_only_if_configured() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join(".profile"), "evil").expect("written");
        for (hidden, stored) in [(false, &[][..]), (true, &[".profile"])] {
            let accept = Accept::all(hidden);
            let options = ServerOptions { accept, allow: Allow::Write, ..ServerOptions::default() };
            let serving = Serving::start(OnClash::Refuse, options);
            let (ended, totals, _) = serving.send(vec![SendSource::path(from.path().join(".profile"))]).await;
            ended.expect("the transfer itself goes well");
            assert_eq!(totals.failed_files, u64::from(!hidden));
            assert_eq!(names(serving.dir.path()), stored);
        }
    });
}

#[test]
fn receiver_of_a_named_file_refuses_others() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("wanted"), "content").expect("written");
        fs::write(from.path().join("other"), "content").expect("written");
        let accept = Accept::names(["wanted"]).expect("a name");
        let serving = Serving::start(OnClash::Refuse, ServerOptions { accept, ..ServerOptions::default() });
        let (ended, _, _) = serving.send(vec![SendSource::path(from.path().join("other"))]).await;
        match ended {
            Err(TransferError::Peer(failure)) => assert_eq!(failure.reason, Reason::NotAllowed),
            other => panic!("{other:?}"),
        }
        assert!(is_empty(serving.dir.path()));
        serving.send(vec![SendSource::path(from.path().join("wanted"))]).await.0.expect("stored");
        assert_eq!(names(serving.dir.path()), ["wanted"]);
    });
}

#[test]
fn setuid_setgid_and_sticky_bits_of_files_are_refused() {
    run(async {
        let serving = Serving::usual();
        for mode in [0o4755, 0o2755, 0o1777, 0o7777] {
            let rogue = Rogue::greet(&serving).await;
            rogue.offer_with_mode(0, "file", file(0), mode).await;
            assert_eq!(rogue.last_failure().await, Some(Reason::Protocol), "{mode:o}");
        }
        assert!(is_empty(serving.dir.path()));
    });
}

#[test]
fn request_cannot_leave_the_folder() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::ask(&serving).await;
        rogue.send_message(&Message::Want("../x".to_owned())).await;
        rogue.send_message(&Message::WantEnd).await;
        match rogue.receive_message().await {
            Message::Passed { failure, .. } => assert_eq!(failure.reason, Reason::BadName),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn endless_list_of_names_is_aborted() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::ask(&serving).await;
        // 300 names of 1000 bytes exceed the limit of a request.
        for _ in 0..300 {
            let want = Message::Want("a".repeat(1000)).encode();
            if rogue.0.send(want, SendOptions::default()).await.is_err() {
                break;
            }
        }
        assert_eq!(rogue.last_failure().await, Some(Reason::Protocol));
    });
}

#[test]
fn peer_that_ends_associations_does_not_set_the_retry_rate() {
    run(async {
        let endpoint = listener();
        let mut greeted = 0;
        let ends_them = async {
            loop {
                Rogue::welcome(&endpoint).await.0.abort();
                greeted += 1;
            }
        };
        let to = tempfile::tempdir().expect("a folder");
        let accept = Accept::names(["video.mkv"]).expect("a name");
        let again = || async { Ok::<_, TransferError>(connect(&endpoint).await) };
        let first = connect(&endpoint).await;
        let (store, timeouts, report) =
            (folder(to.path(), OnClash::Refuse), Timeouts::default(), Report::default());
        let request = accept.into();
        let fetches = pull(&request, store, first, again, timeouts, &report);
        tokio::select! {
            () = ends_them => unreachable!("it never ends"),
            ended = fetches => panic!("{ended:?}"),
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
        }
        // One immediately, and one every 500 ms.
        assert!((1..=5).contains(&greeted), "{greeted}");
    });
}
