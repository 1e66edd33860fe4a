//! Times and permissions of stored files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anabranch_transfer::{OnClash, SendSource, ServerOptions};

use crate::loopback::support::{Serving, run};

fn set(path: &Path, mode: u32, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).expect("open").set_modified(time).expect("set");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

fn state(path: &Path) -> (u32, u64) {
    let metadata = fs::metadata(path).expect("metadata");
    let modified = metadata.modified().expect("a time").duration_since(SystemTime::UNIX_EPOCH);
    (metadata.permissions().mode() & 0o7777, modified.expect("after 1970").as_secs())
}

#[test]
fn unchanged_content_gets_new_time_and_mode_of_its_own_sender() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let (file, stored) = (from.path().join("file"), serving.dir.path().join("file"));
        fs::write(&file, "content").expect("written");
        // In order: only the mode, only the time, both, neither.
        for (mode, seconds) in [(0o600, 1000), (0o500, 1000), (0o500, 2000), (0o700, 3000), (0o700, 3000)] {
            set(&file, mode, seconds);
            let (ended, totals, events) = serving.send(vec![SendSource::path(&file)]).await;
            ended.expect("sent");
            assert_eq!((totals.done_files, totals.failed_files), (1, 0), "{}", events.text());
            assert_eq!(state(&stored), (mode, seconds));
        }
    });
}

#[test]
fn equal_file_of_others_keeps_time_and_mode_unless_it_may_be_overwritten() {
    run(async {
        for (on_clash, is_kept) in
            [(OnClash::Refuse, true), (OnClash::Rename, true), (OnClash::Overwrite, false)]
        {
            let serving = Serving::start(on_clash, ServerOptions::default());
            let from = tempfile::tempdir().expect("a folder");
            let (file, there) = (from.path().join("file"), serving.dir.path().join("file"));
            for path in [&file, &there] {
                fs::write(path, "content").expect("written");
            }
            set(&file, 0o700, 1000);
            set(&there, 0o600, 2000);
            // The second time the file is found in the record, without a comparison.
            for _ in 0..2 {
                let (ended, totals, _) = serving.send(vec![SendSource::path(&file)]).await;
                ended.expect("sent");
                assert_eq!((totals.done_files, totals.moved_bytes), (1, 0), "{on_clash:?}");
                assert_eq!(
                    state(&there),
                    if is_kept { (0o600, 2000) } else { (0o700, 1000) },
                    "{on_clash:?}"
                );
            }
        }
    });
}

#[test]
fn mode_that_the_receiver_has_changed_stays() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let (file, stored) = (from.path().join("file"), serving.dir.path().join("file"));
        fs::write(&file, "content").expect("written");
        set(&file, 0o700, 1000);
        serving.send(vec![SendSource::path(&file)]).await.0.expect("sent");
        set(&stored, 0o600, 1000);
        for _ in 0..2 {
            serving.send(vec![SendSource::path(&file)]).await.0.expect("sent");
            assert_eq!(state(&stored), (0o600, 1000));
        }
    });
}

#[test]
fn sticky_bit_of_folders_is_kept_and_other_special_bits_are_dropped() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir_all(tree.join("sticky")).expect("made");
        fs::create_dir_all(tree.join("special")).expect("made");
        fs::write(tree.join("program"), "content").expect("written");
        let modes = [("sticky", 0o1700), ("special", 0o6700), ("program", 0o7700)];
        for (name, mode) in modes {
            fs::set_permissions(tree.join(name), fs::Permissions::from_mode(mode)).expect("set");
        }
        serving.send(vec![SendSource::path(&tree)]).await.0.expect("sent");
        let stored = modes.map(|(name, _)| state(&serving.dir.path().join("tree").join(name)).0);
        assert_eq!(stored, [0o1700, 0o700, 0o700]);
    });
}
