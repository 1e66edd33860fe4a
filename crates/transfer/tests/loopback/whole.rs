//! Sent files arrive, with their names, times and permissions.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anabranch_transfer::{OnClash, Pipe, SendSource, Store};

use crate::loopback::support::{Serving, folder, names, noise, run};

#[test]
fn a_tree_arrives_with_times_and_permissions() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir_all(tree.join("sub/empty")).expect("made");
        let contents = [("a", noise(1, 3_500_000)), ("sub/b", b"short".to_vec()), ("sub/none", Vec::new())];
        let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_001, 123_456_789);
        for (name, content) in &contents {
            fs::write(tree.join(name), content).expect("written");
            fs::File::options()
                .write(true)
                .open(tree.join(name))
                .expect("a file")
                .set_modified(long_ago)
                .expect("set");
        }
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o4755)).expect("set");
        fs::set_permissions(tree.join("sub"), fs::Permissions::from_mode(0o500)).expect("set");
        fs::File::open(tree.join("sub")).expect("a folder").set_modified(long_ago).expect("set");
        let (ended, totals, _) = serving.send(vec![SendSource::path(&tree)]).await;
        ended.expect("all sent");
        let there = serving.dir.path().join("tree");
        for (name, content) in &contents {
            assert_eq!(&fs::read(there.join(name)).expect(name), content);
            assert_eq!(fs::metadata(there.join(name)).expect(name).modified().expect("a time"), long_ago);
        }
        let mode = |name: &str| fs::metadata(there.join(name)).expect(name).permissions().mode() & 0o7777;
        assert_eq!(mode("a"), 0o755, "no bit that gives rights");
        assert_eq!(mode("sub"), 0o700, "its owner can still write to it");
        assert_eq!(fs::metadata(there.join("sub")).expect("a folder").modified().expect("a time"), long_ago);
        assert!(names(&there.join("sub/empty")).is_empty());
        assert_eq!(names(&there), ["a", "sub"]);
        assert_eq!(names(&there.join("sub")), ["b", "empty", "none"]);
        assert_eq!((totals.found_files, totals.done_files, totals.failed_files), (3, 3, 0));
        assert_eq!((totals.found_bytes, totals.held_bytes, totals.reused_bytes), (3_500_005, 3_500_005, 0));
        // The second time there is nothing to send.
        let (ended, totals, _) = serving.send(vec![SendSource::path(&tree)]).await;
        ended.expect("all there");
        assert_eq!((totals.done_files, totals.reused_bytes, totals.moved_bytes), (3, 3_500_005, 0));
        // So that the folder can be removed.
        fs::set_permissions(tree.join("sub"), fs::Permissions::from_mode(0o700)).expect("set");
    });
}

#[test]
fn many_small_files_arrive() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let many = from.path().join("many");
        fs::create_dir(&many).expect("made");
        for number in 0..300 {
            fs::write(many.join(format!("{number}")), noise(number, number as usize)).expect("written");
        }
        let (ended, totals, events) = serving.send(vec![SendSource::path(&many)]).await;
        ended.expect("all sent");
        assert_eq!(totals.done_files, 300, "{}", events.text());
        for number in 0..300 {
            let there = serving.dir.path().join(format!("many/{number}"));
            assert_eq!(fs::read(there).expect("there"), noise(number, number as usize));
        }
    });
}

#[test]
fn outside_links_and_devices_are_omitted_and_reported() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir(&tree).expect("made");
        fs::write(tree.join("file"), "content").expect("written");
        for (name, target) in [("absolute", "/etc/passwd"), ("up", "../tree/file"), ("in", "file")] {
            symlink(target, tree.join(name)).expect("linked");
        }
        drop(std::os::unix::net::UnixListener::bind(tree.join("socket")).expect("a socket"));
        let (ended, totals, events) = serving.send(vec![SendSource::path(&tree)]).await;
        ended.expect("the rest is sent");
        assert_eq!((totals.done_files, totals.failed_files), (1, 1));
        let text = events.text();
        for expected in [
            "tree/absolute was omitted: it leads out of the folder that is transferred",
            "tree/up was omitted: it leads out of the folder that is transferred",
            "tree/socket was omitted: it is neither a file nor a folder",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(names(&serving.dir.path().join("tree")), ["file", "in"]);
        assert!(serving.events.text().contains("tree/socket"), "the receiver knows, too");
    });
}

#[test]
fn offered_files_are_fetched_by_name_or_all_at_once() {
    run(async {
        let serving = Serving::usual();
        fs::create_dir(serving.dir.path().join("d")).expect("made");
        fs::write(serving.dir.path().join("d/one"), noise(1, 2_000_000)).expect("written");
        fs::write(serving.dir.path().join("two"), "2").expect("written");
        let to = tempfile::tempdir().expect("a folder");
        let (ended, totals, _) = serving.fetch(&["d/one"], folder(to.path(), OnClash::Refuse)).await;
        ended.expect("fetched");
        assert_eq!((totals.done_files, names(to.path())), (1, vec!["d".to_owned()]));
        let (ended, totals, _) = serving.fetch(&[], folder(to.path(), OnClash::Refuse)).await;
        ended.expect("fetched");
        assert_eq!((totals.done_files, totals.reused_bytes), (2, 2_000_000));
        assert_eq!(fs::read(to.path().join("d/one")).expect("there"), noise(1, 2_000_000));
        assert_eq!(fs::read(to.path().join("two")).expect("there"), b"2");
        let (ended, totals, events) = serving.fetch(&["three"], folder(to.path(), OnClash::Refuse)).await;
        ended.expect("nothing to fetch is no error of the transfer");
        assert_eq!(totals.failed_files, 1);
        assert!(events.text().contains("no such file: three"), "{}", events.text());
    });
}

/// A writer whose content the test can inspect.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("bytes").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_pipe_goes_into_a_file_and_a_file_into_a_pipe() {
    run(async {
        for length in [0, 1, 1 << 20, (3 << 20) + 77] {
            let serving = Serving::usual();
            let content = noise(9, length);
            let stream = SendSource::stream("piped", std::io::Cursor::new(content.clone()));
            let (ended, totals, _) = serving.send(vec![stream]).await;
            ended.expect("sent");
            assert_eq!(
                (totals.done_files, totals.found_bytes, totals.held_bytes),
                (1, length as u64, length as u64)
            );
            assert_eq!(fs::read(serving.dir.path().join("piped")).expect("there"), content);
            assert_eq!(names(serving.dir.path()), ["piped"]);
            let out = Shared::default();
            let (ended, _, _) = serving.fetch(&["piped"], Store::Pipe(Pipe::new(out.clone()))).await;
            ended.expect("fetched");
            assert!(*out.0.lock().expect("bytes") == content);
        }
    });
}

#[test]
fn several_senders_are_served_concurrently() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        for number in 0..3 {
            fs::write(from.path().join(format!("{number}")), noise(number, 1_500_000)).expect("written");
        }
        let send = |number: u64| serving.send(vec![SendSource::path(from.path().join(format!("{number}")))]);
        let (one, two, three) = tokio::join!(send(0), send(1), send(2));
        for (number, (ended, totals, _)) in [one, two, three].into_iter().enumerate() {
            ended.expect("sent");
            assert_eq!(totals.done_files, 1);
            let there = fs::read(serving.dir.path().join(format!("{number}"))).expect("there");
            assert_eq!(there, noise(number as u64, 1_500_000));
        }
    });
}
