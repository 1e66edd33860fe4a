//! An interrupted transfer resumes where it was, and never ends in a wrong file.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anabranch_net::Association;
use anabranch_transfer::{OnClash, Report, SendSource, Sender, ServerOptions, Timeouts, TransferError, push};

use crate::loopback::support::{
    JOURNAL_ENDING, PART_ENDING, Serving, connect, in_both_modes, names, noise, rate, run, unfinished, until,
};

const MIB: usize = 1 << 20;

#[test]
fn a_second_sender_sends_only_what_is_missing() {
    in_both_modes(async |mode| {
        let serving = Serving::with(mode, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let content = noise(1, 64 * MIB + 5);
        fs::write(&file, &content).expect("written");
        let first = serving.send_until(vec![SendSource::path(&file)], rate(60_000_000), 30 << 20).await;
        let kept = [JOURNAL_ENDING, PART_ENDING].map(|ending| unfinished(serving.dir.path(), ending));
        assert_eq!(names(serving.dir.path()), kept);
        let (ended, second, _) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("sent");
        assert!(second.reused_bytes >= first.held_bytes, "{first:?} {second:?}");
        assert_eq!(second.held_bytes, content.len() as u64);
        // The receiver may have more blocks than it confirmed to the first sender.
        let twice = (second.moved_bytes + first.held_bytes).saturating_sub(content.len() as u64);
        assert!(twice as usize * 20 < content.len(), "{twice} B were sent twice");
        assert!(fs::read(serving.dir.path().join("file")).expect("there") == content);
        assert_eq!(names(serving.dir.path()), ["file"]);
    });
}

#[test]
fn sender_continues_over_another_association() {
    in_both_modes(async |mode| {
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let content = noise(2, 8 * MIB + 1);
        fs::write(&file, &content).expect("written");
        let piped = SendSource::stream("piped", std::io::Cursor::new(content.clone()));
        for (name, source) in [("file", SendSource::path(&file)), ("piped", piped)] {
            let serving = Serving::with(mode, ServerOptions::default());
            let cut = async {
                for _ in 0..2 {
                    until(|| serving.server.running() > 0).await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    serving.server.abort_all();
                    serving.idle().await;
                }
                std::future::pending::<()>().await;
            };
            let (ended, totals, events) = tokio::select! {
                sent = serving.send_at(vec![source], Some(rate(4_000_000))) => sent,
                () = cut => unreachable!(),
            };
            ended.expect("sent");
            assert_eq!(events.text().matches("Reconnected").count(), 2, "{}", events.text());
            assert_eq!((totals.held_bytes, totals.reused_bytes), (content.len() as u64, 0));
            assert!(fs::read(serving.dir.path().join(name)).expect("there") == content);
            assert_eq!(names(serving.dir.path()), [name]);
        }
    });
}

#[test]
fn sender_answered_by_another_server_does_not_retry() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("file"), noise(2, 8 * MIB)).expect("written");
        let serving = Serving::usual();
        let report = Report::default();
        let mut sender = Sender::new(
            vec![SendSource::path(from.path().join("file"))],
            Some(rate(8_000_000)),
            report.clone(),
        );
        let first = connect(&serving.endpoint).await;
        let asked = Cell::new(0);
        let again = || async {
            asked.set(asked.get() + 1);
            // A transient error is retried.
            let error = if asked.get() == 1 { TransferError::Lost } else { TransferError::Untrusted };
            Err::<Association, _>(error("another key".to_owned()))
        };
        let cut = async {
            until(|| serving.server.running() > 0).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            serving.server.abort_all();
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            sent = push(&mut sender, first, again, Timeouts::default(), &report) => sent,
            () = cut => unreachable!(),
        };
        assert_eq!(ended, Err(TransferError::Untrusted("another key".to_owned())));
        assert_eq!(asked.get(), 2);
    });
}

#[test]
fn fetch_continues_over_another_association() {
    in_both_modes(async |mode| {
        let serving =
            Serving::with(mode, ServerOptions { rate: Some(rate(8_000_000)), ..ServerOptions::default() });
        let content = noise(2, 6 * MIB);
        fs::write(serving.dir.path().join("file"), &content).expect("written");
        let to = tempfile::tempdir().expect("a folder");
        let cut = async {
            // The file has begun to arrive.
            until(|| !names(to.path()).is_empty()).await;
            serving.server.abort_all();
            std::future::pending::<()>().await;
        };
        let (ended, totals, events) = tokio::select! {
            fetched = serving.fetch(&["file"], crate::loopback::support::folder(to.path(), OnClash::Refuse)) => fetched,
            () = cut => unreachable!(),
        };
        ended.expect("fetched");
        assert!(events.text().contains("Reconnected"));
        assert_eq!((totals.found_files, totals.done_files), (1, 1));
        assert!(totals.moved_bytes < content.len() as u64 + 3 * MIB as u64, "{totals:?}");
        assert!(fs::read(to.path().join("file")).expect("there") == content);
    });
}

#[test]
fn part_of_another_version_is_not_resumed() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        fs::write(&file, noise(1, 8 * MIB)).expect("written");
        serving.send_until(vec![SendSource::path(&file)], rate(20_000_000), 3 << 20).await;
        let content = noise(2, 8 * MIB);
        fs::write(&file, &content).expect("written");
        let (ended, totals, _) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("sent");
        assert_eq!(totals.reused_bytes, 0);
        assert!(serving.events.text().contains("has changed since a part of it arrived"));
        assert!(fs::read(serving.dir.path().join("file")).expect("there") == content);
    });
}

/// Damages stored state like a crash, a faulty disk or another program.
fn damage(dir: &Path, random: &mut fastrand::Rng) {
    for ending in [JOURNAL_ENDING, PART_ENDING] {
        let path = dir.join(unfinished(dir, ending));
        let mut bytes = fs::read(&path).expect("kept");
        match random.u8(0..5) {
            0 => bytes.truncate(random.usize(0..=bytes.len())),
            1 => {
                for _ in 0..random.usize(1..20) {
                    let at = random.usize(0..bytes.len());
                    bytes[at] ^= random.u8(1..);
                }
            }
            2 => bytes.extend(std::iter::repeat_n(7, random.usize(1..2_000_000))),
            3 => {
                fs::remove_file(&path).expect("removed");
                continue;
            }
            _ => continue,
        }
        fs::write(&path, bytes).expect("written");
    }
}

#[test]
fn file_is_correct_after_any_change_of_kept_data() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let content = noise(3, 5 * MIB + 100);
        fs::write(&file, &content).expect("written");
        let kept = Serving::usual();
        kept.send_until(vec![SendSource::path(&file)], rate(20_000_000), 3 << 20).await;
        for seed in 0..24 {
            let dir = tempfile::tempdir().expect("a folder");
            for name in names(kept.dir.path()) {
                let (from, to) = (kept.dir.path().join(&name), dir.path().join(&name));
                fs::copy(&from, &to).expect("copied");
                let when = fs::metadata(&from).expect("metadata").modified().expect("a time");
                fs::File::options().write(true).open(&to).expect("open").set_modified(when).expect("set");
            }
            damage(dir.path(), &mut fastrand::Rng::with_seed(seed));
            let serving = Serving::start_in(dir, OnClash::Refuse, ServerOptions::default());
            let (ended, totals, _) = serving.send(vec![SendSource::path(&file)]).await;
            ended.expect("sent");
            assert!(fs::read(serving.dir.path().join("file")).expect("there") == content, "seed {seed}");
            assert_eq!(names(serving.dir.path()), ["file"], "seed {seed}");
            assert_eq!((totals.done_files, totals.failed_files), (1, 0), "seed {seed}");
        }
    });
}

#[test]
fn crash_between_rename_and_cleanup_loses_no_file() {
    run(async {
        let serving = Serving::start(OnClash::Rename, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let (old, new) = (noise(1, 3 * MIB), noise(2, 2 * MIB));
        fs::write(&file, &old).expect("written");
        // Its part file has the name of an earlier attempt.
        serving.send_until(vec![SendSource::path(&file)], rate(2_000_000), 1 << 20).await;
        let part = unfinished(serving.dir.path(), PART_ENDING);
        serving.send(vec![SendSource::path(&file)]).await.0.expect("sent");
        let there = |name: &str| serving.dir.path().join(name);
        fs::hard_link(there("file"), there(&part)).expect("linked");
        fs::write(&file, &new).expect("written");
        let (ended, _, events) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("sent");
        assert!(events.text().contains("file.1"), "{}", events.text());
        assert!(
            fs::read(there("file")).expect("there") == old,
            "the part file was the old file under another name"
        );
        assert!(fs::read(there("file.1")).expect("there") == new);
        assert_eq!(names(serving.dir.path()), ["file", "file.1"]);
    });
}
