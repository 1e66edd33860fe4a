//! A part file that another program holds delays its own offer, and no other.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anabranch_transfer::{OnClash, SendSource, ServerOptions};

use crate::loopback::support::{PART_ENDING, Serving, folder, identity, names, noise, rate, run, unfinished};

const BYTES: usize = 6 << 20;
/// Longer than several attempts of the receiver, and shorter than its time limit.
const HELD_FOR: Duration = Duration::from_secs(2);

/// Locks the only part file in a folder.
fn lock_part(dir: &Path) -> File {
    let part = File::open(dir.join(unfinished(dir, PART_ENDING))).expect("open");
    part.try_lock().expect("free");
    part
}

#[test]
fn interrupted_overwrite_with_busy_part_resumes_when_sent() {
    run(async {
        let serving = Serving::start(OnClash::Overwrite, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let (old, new) = (noise(1, BYTES), noise(2, BYTES));
        fs::write(from.path().join("file"), &new).expect("written");
        fs::write(from.path().join("other"), "content").expect("written");
        fs::write(serving.dir.path().join("file"), &old).expect("written");
        let sources = ["file", "other"].map(|name| SendSource::path(from.path().join(name))).to_vec();
        serving.send_until(sources[..1].to_vec(), rate(3_000_000), 2 << 20).await;
        let held = lock_part(serving.dir.path());
        let release = async {
            tokio::time::sleep(HELD_FOR).await;
            drop(held);
        };
        let ((ended, totals, events), ()) = tokio::join!(serving.send(sources), release);
        ended.expect("a busy file ends no transfer");
        assert!(totals.failed_files == 0 && totals.reused_bytes > 0, "{}", events.text());
        assert!(fs::read(serving.dir.path().join("file")).expect("there") == new);
        assert_eq!(names(serving.dir.path()), ["file", "other"]);
    });
}

#[test]
fn interrupted_overwrite_with_busy_part_resumes_when_fetched() {
    run(async {
        let (rate, sender) = (Some(rate(3_000_000)), Some(identity()));
        let options = ServerOptions { rate, sender, ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let to = tempfile::tempdir().expect("a folder");
        let (old, new) = (noise(1, BYTES), noise(2, BYTES));
        fs::write(serving.dir.path().join("file"), &new).expect("written");
        fs::write(to.path().join("file"), &old).expect("written");
        let store = || folder(to.path(), OnClash::Overwrite);
        let has_part = async {
            let size = |name: String| fs::metadata(to.path().join(name)).map_or(0, |part| part.len());
            while !names(to.path())
                .into_iter()
                .any(|name| name.ends_with(PART_ENDING) && size(name) > 2 << 20)
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            fetched = serving.fetch(&["file"], store()) => panic!("too soon: {:?}", fetched.0),
            () = has_part => {}
        }
        // The interrupted transfer releases its part file a little later.
        serving.idle().await;
        let held = loop {
            let part = File::open(to.path().join(unfinished(to.path(), PART_ENDING))).expect("open");
            if part.try_lock().is_ok() {
                break part;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let release = async {
            tokio::time::sleep(HELD_FOR).await;
            drop(held);
        };
        let ((ended, totals, events), ()) = tokio::join!(serving.fetch(&["file"], store()), release);
        ended.expect("a busy file ends no transfer");
        assert_eq!(totals.failed_files, 0, "{}", events.text());
        assert!(fs::read(to.path().join("file")).expect("there") == new);
        assert_eq!(names(to.path()), ["file"]);
    });
}
