//! Treatment of symbolic links; received files never go through one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anabranch_transfer::protocol::{Kind, Links, Message, Outcome, Reason};
use anabranch_transfer::{
    Accept, OnClash, Report, Request, SendSource, ServerOptions, Timeouts, TransferError, pull,
};

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Serving, connect, folder, names, run};

/// Creates a folder `tree` with a file, a folder, a link to each of them, one that leads out and one to its own folder.
fn tree() -> tempfile::TempDir {
    let from = tempfile::tempdir().expect("a folder");
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("sub/deep")).expect("made");
    fs::write(tree.join("file"), "content").expect("written");
    fs::write(tree.join("sub/other"), "other").expect("written");
    fs::write(from.path().join("outside"), "outside").expect("written");
    for (name, target) in [
        ("link", "file"),
        ("folder", "sub"),
        ("out", "../outside"),
        ("sub/deep/up", "../../file"),
        ("sub/loop", ".."),
    ] {
        symlink(target, tree.join(name)).expect("linked");
    }
    from
}

fn target(path: PathBuf) -> PathBuf {
    fs::read_link(path).expect("a link")
}

#[test]
fn links_inside_the_folder_are_copied_and_others_reported() {
    run(async {
        for _ in 0..2 {
            let (serving, from) = (Serving::usual(), tree());
            for round in 0..2 {
                let (ended, totals, events) =
                    serving.send(vec![SendSource::path(from.path().join("tree"))]).await;
                ended.expect("sent");
                assert_eq!((totals.done_files, totals.failed_files), (2, 0), "{}", events.text());
                assert!(events.text().contains("tree/out was omitted: it leads out of the folder"));
                let identical = events.text().matches("Identical").count();
                assert_eq!(identical, if round == 0 { 0 } else { 6 }, "{}", events.text());
            }
            let there = serving.dir.path().join("tree");
            assert_eq!(names(&there), ["file", "folder", "link", "sub"]);
            assert_eq!(target(there.join("link")), Path::new("file"));
            assert_eq!(target(there.join("folder")), Path::new("sub"));
            assert_eq!(target(there.join("sub/deep/up")), Path::new("../../file"));
            assert_eq!(target(there.join("sub/loop")), Path::new(".."));
        }
    });
}

#[test]
fn targets_of_links_are_sent_on_request_without_cycles() {
    run(async {
        let (serving, from) = (Serving::usual(), tree());
        let source = SendSource::path(from.path().join("tree")).with_links(Links::Follow);
        let (ended, totals, events) = serving.send(vec![source]).await;
        ended.expect("sent");
        assert_eq!(totals.failed_files, 0, "{}", events.text());
        let there = serving.dir.path().join("tree");
        assert_eq!(names(&there), ["file", "folder", "link", "out", "sub"]);
        for (name, content) in [("link", "content"), ("folder/other", "other"), ("out", "outside")] {
            assert!(fs::symlink_metadata(there.join(name)).expect(name).is_file());
            assert_eq!(fs::read_to_string(there.join(name)).expect(name), content);
        }
        assert!(events.text().contains("tree/sub/loop was omitted: its target is a folder that contains it"));
        let serving = Serving::usual();
        let source = SendSource::path(from.path().join("tree")).with_links(Links::Skip);
        let (ended, _, events) = serving.send(vec![source]).await;
        ended.expect("sent");
        assert_eq!(names(&serving.dir.path().join("tree")), ["file", "sub"]);
        assert!(!events.text().contains("omitted"), "skipped links are not reported: {}", events.text());
    });
}

#[test]
fn fetching_side_chooses_and_server_follows_no_link_out_of_its_folder() {
    run(async {
        let from = tree();
        for (links, there) in [
            (Links::Copy, vec!["file", "folder", "link", "sub"]),
            (Links::Follow, vec!["file", "folder", "link", "sub"]),
            (Links::Skip, vec!["file", "sub"]),
        ] {
            let serving = Serving::usual();
            let to = serving.dir.path().join("tree");
            let copied =
                std::process::Command::new("cp").arg("-a").arg(from.path().join("tree")).arg(&to).status();
            assert!(copied.expect("cp").success());
            // By an absolute path, and by one that goes up.
            symlink(from.path().join("outside"), to.join("absolute")).expect("linked");
            symlink("../../../../../../etc/passwd", to.join("far")).expect("linked");
            let inbox = tempfile::tempdir().expect("a folder");
            let request =
                Request { accept: Accept::names(["tree"]).expect("names"), links, ..Request::default() };
            let first = connect(&serving.endpoint).await;
            let never = || std::future::pending::<Result<_, TransferError>>();
            let store = folder(inbox.path(), OnClash::Refuse);
            pull(&request, store, first, never, Timeouts::default(), &Report::default())
                .await
                .expect("fetched");
            assert_eq!(names(&inbox.path().join("tree")), there, "{links:?}");
            let is_link =
                fs::symlink_metadata(inbox.path().join("tree/link")).is_ok_and(|link| link.is_symlink());
            assert_eq!(is_link, links == Links::Copy);
        }
    });
}

#[test]
fn link_out_of_the_folder_is_refused_for_every_sender_option() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::greet(&serving).await;
        rogue.offer(0, "d", Kind::Folder).await;
        assert!(matches!(
            rogue.receive_message().await,
            Message::Done { outcome: Outcome::Stored { .. }, .. }
        ));
        let cases = [
            ("d/l", ".."),
            ("d/l", "../other"),
            ("d/l", "/etc/passwd"),
            ("d/l", "x/../../other"),
            ("d/e/l", "../../other"),
            ("l", "d"),
            ("d/l", ""),
            ("d/l", "a\0b"),
        ];
        for (id, (name, target)) in (1..).zip(cases) {
            rogue.offer(id, name, Kind::Link { target: target.into() }).await;
            assert_eq!(rogue.refused().await, Reason::Link, "{name} {target:?}");
        }
        assert!(names(&serving.dir.path().join("d")).is_empty());
        assert_eq!(names(serving.dir.path()), ["d"]);
    });
}

#[test]
fn no_file_is_stored_through_a_received_or_existing_link() {
    run(async {
        let serving = Serving::usual();
        let there = |name: &str| serving.dir.path().join(name);
        fs::create_dir_all(there("d/real")).expect("made");
        fs::write(there("d/real/file"), "before").expect("written");
        symlink("d/real", there("alias")).expect("linked");
        let rogue = Rogue::greet(&serving).await;
        rogue.offer(0, "d", Kind::Folder).await;
        assert!(matches!(rogue.receive_message().await, Message::Done { .. }));
        rogue.offer(1, "d/link", Kind::Link { target: "real".into() }).await;
        assert!(matches!(
            rogue.receive_message().await,
            Message::Done { outcome: Outcome::Stored { .. }, .. }
        ));
        let file = || Kind::File { size_bytes: 0, first: None };
        for (id, (name, kind)) in (2..).zip([
            ("d/link/new", file()),
            ("d/link/file", file()),
            ("d/link/more/new", file()),
            ("d/link/sub", Kind::Folder),
            ("d/link/l", Kind::Link { target: "x".into() }),
            ("d/link", Kind::Folder),
            ("alias/new", file()),
            ("alias/sub", Kind::Folder),
            ("alias", Kind::Folder),
        ]) {
            rogue.offer(id, name, kind).await;
            assert_eq!(rogue.refused().await, Reason::Clash, "{name}");
        }
        rogue.offer(20, "d/link", Kind::FolderEnd).await;
        rogue.refused().await;
        assert_eq!(names(&there("d/real")), ["file"]);
        assert_eq!(fs::read(there("d/real/file")).expect("there"), b"before");
    });
}

#[test]
fn link_in_place_of_another_kind_is_a_clash() {
    run(async {
        for (on_clash, expected) in [
            (OnClash::Refuse, vec![("l", None)]),
            (OnClash::Rename, vec![("l", None), ("l.1", Some("new"))]),
            (OnClash::Overwrite, vec![("l", Some("new"))]),
        ] {
            let serving = Serving::start(on_clash, ServerOptions::default());
            let there = serving.dir.path().join("d");
            fs::create_dir(&there).expect("made");
            fs::write(there.join("l"), "before").expect("written");
            let from = tempfile::tempdir().expect("a folder");
            fs::create_dir(from.path().join("d")).expect("made");
            symlink("new", from.path().join("d/l")).expect("linked");
            let (ended, totals, _) = serving.send(vec![SendSource::path(from.path().join("d"))]).await;
            ended.expect("the transfer itself goes well");
            assert_eq!(totals.failed_files, u64::from(on_clash == OnClash::Refuse));
            assert_eq!(names(&there), expected.iter().map(|(name, _)| *name).collect::<Vec<_>>());
            for (name, to) in expected {
                assert_eq!(fs::read_link(there.join(name)).ok().as_deref(), to.map(Path::new), "{name}");
            }
        }
    });
}
