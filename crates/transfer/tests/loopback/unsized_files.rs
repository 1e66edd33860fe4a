//! Files whose size differs from the amount of data that can be read from them, and paths that are pipes.

use std::fs;
use std::io::Write;

use anabranch_transfer::{OnClash, SendSource, ServerOptions};

use crate::loopback::support::{Serving, names, noise, run};

#[test]
#[cfg(target_os = "linux")]
fn files_of_proc_and_sys_arrive_with_their_content() {
    run(async {
        let serving = Serving::usual();
        // The first is empty by its size; the others are shorter than their size.
        let paths =
            ["/proc/sys/kernel/ostype", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/version"];
        let paths = paths.into_iter().filter(|path| fs::metadata(path).is_ok());
        let paths: Vec<&str> = paths.collect();
        let (ended, totals, events) = serving.send(paths.iter().map(SendSource::path).collect()).await;
        ended.expect("sent");
        assert_eq!((totals.done_files, totals.failed_files), (paths.len() as u64, 0), "{}", events.text());
        for path in paths {
            let name = path.rsplit('/').next().expect("a name");
            let (there, here) = (fs::read(serving.dir.path().join(name)), fs::read(path).expect(path));
            assert!(!here.is_empty() && there.expect(name) == here, "{path}");
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn resent_file_of_proc_replaces_the_first_where_allowed() {
    run(async {
        let serving = Serving::start(OnClash::Overwrite, ServerOptions::default());
        for _ in 0..2 {
            let sources = vec![SendSource::path("/proc/sys/kernel/ostype")];
            let (ended, totals, events) = serving.send(sources).await;
            ended.expect("sent");
            assert_eq!((totals.done_files, totals.failed_files), (1, 0), "{}", events.text());
        }
    });
}

#[test]
fn named_pipe_on_the_command_line_is_sent_and_holds_up_no_other_file() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let pipe = from.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("a program");
        assert!(made.success());
        fs::write(from.path().join("file"), "content").expect("written");
        let content = noise(1, 3_000_000);
        let (to, bytes, stored) = (pipe.clone(), content.clone(), serving.dir.path().join("file"));
        let writer = std::thread::spawn(move || {
            // The pipe is written to only when the file behind it has arrived.
            while !stored.exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            fs::File::options().write(true).open(to).expect("open").write_all(&bytes).expect("written");
        });
        let sources = ["pipe", "file"].map(|name| SendSource::path(from.path().join(name))).to_vec();
        assert!(sources[0].is_pipe() && !sources[1].is_pipe());
        let (ended, totals, events) = serving.send(sources).await;
        ended.expect("sent");
        writer.join().expect("written");
        assert_eq!((totals.done_files, totals.failed_files), (2, 0), "{}", events.text());
        assert!(fs::read(serving.dir.path().join("pipe")).expect("there") == content);
        assert_eq!(names(serving.dir.path()), ["file", "pipe"]);
    });
}

#[test]
fn empty_files_stay_files() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("empty"), "").expect("written");
        for reused in [0, 1] {
            let (ended, totals, events) =
                serving.send(vec![SendSource::path(from.path().join("empty"))]).await;
            ended.expect("sent");
            assert_eq!(totals.done_files, 1);
            assert_eq!(events.text().matches("Identical").count(), reused, "{}", events.text());
        }
    });
}
