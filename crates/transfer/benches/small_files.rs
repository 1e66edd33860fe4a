//! Transfers three thousand small files over loopback, and copies the same folder with `cp -r`: several rounds, and the median of
//! the time of each over that of the copy in the same round. `ANABRANCH_FILES` sets the number of files.
//!
//! `cp -r` syncs nothing to the disk, and a transfer syncs everything that it reports as stored. The last row is the cost of a copy
//! that does so.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection};
use anabranch_transfer::{
    Durability, Folder, OnClash, Report, SendSource, Sender, Server, ServerOptions, Store, Timeouts,
    TransferError, push,
};

const ROUNDS: usize = 5;
const FILES: usize = 3000;
const FILES_A_FOLDER: usize = 100;

fn tree(path: &Path, files: usize) {
    for number in 0..files {
        let folder = path.join(format!("d{}", number / FILES_A_FOLDER));
        fs::create_dir_all(&folder).expect("made");
        let content = vec![u8::try_from(number % 251).expect("a byte"); 200 + number % 1000];
        fs::write(folder.join(format!("f{number}")), content).expect("written");
    }
}

fn copy(from: &Path, to: &Path) -> Duration {
    let began = Instant::now();
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().expect("cp");
    assert!(copied.success());
    began.elapsed()
}

async fn connect(server: &Endpoint) -> Association {
    let local = SocketAddr::from(([127, 0, 0, 3], 0));
    let endpoint = Endpoint::builder(Protection::Insecure).local(local).bind().expect("bound");
    let route = PathAddress::over_udp(local.ip(), server.local_addresses()[0]);
    let scheme = Config::new("bonded").expect("a scheme");
    endpoint.connect(Peer::new([route]), scheme).await.expect("connected")
}

async fn transfer(from: &Path, to: &Path, durability: Durability, files: usize) -> Duration {
    let scheme = Config::new("bonded").expect("a scheme");
    let endpoint = Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::from(([127, 0, 0, 1], 0)))
        .accept(scheme)
        .bind()
        .expect("bound");
    let folder = Folder::open(to, OnClash::Refuse).expect("a folder").with_durability(durability);
    let server = Server::new(Store::Folder(folder), ServerOptions::default());
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Ok(association) = accepting.accept().await {
            server.serve(association, &Report::default()).await.expect("served");
        }
    });
    let began = Instant::now();
    let report = Report::default();
    let mut sender = Sender::new(vec![SendSource::path(from)], None, report.clone());
    let first = connect(&endpoint).await;
    let never = || std::future::pending::<Result<Association, TransferError>>();
    push(&mut sender, first, never, Timeouts::default(), &report).await.expect("sent");
    assert_eq!(report.totals().done_files, files as u64);
    began.elapsed()
}

/// Returns the time of a copy that syncs each file and its name to the disk.
fn copy_and_sync(from: &Path, to: &Path) -> Duration {
    let began = Instant::now();
    for folder in fs::read_dir(from).expect("a folder") {
        let folder = folder.expect("an entry");
        let there = to.join(folder.file_name());
        fs::create_dir_all(&there).expect("made");
        for file in fs::read_dir(folder.path()).expect("a folder") {
            let file = file.expect("an entry");
            let copied = there.join(file.file_name());
            fs::copy(file.path(), &copied).expect("copied");
            File::open(&copied).expect("open").sync_all().expect("on the disk");
            File::open(&there).expect("open").sync_all().expect("on the disk");
        }
    }
    began.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let files = std::env::var("ANABRANCH_FILES").ok().and_then(|files| files.parse().ok()).unwrap_or(FILES);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    // On a disk, because a file system in memory has no writes to wait for.
    let work = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let from = work.path().join("tree");
    tree(&from, files);
    let names = ["cp -r", "a transfer", "a transfer, --fsync each", "a copy that syncs each file"];
    let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for round in 0..ROUNDS {
        let to = |kind: &str| {
            let to = work.path().join(format!("{round}-{kind}"));
            fs::create_dir(&to).expect("made");
            to
        };
        let took = [
            copy(&from, &to("copy")),
            runtime.block_on(transfer(&from, &to("batch"), Durability::Batch, files)),
            runtime.block_on(transfer(&from, &to("each"), Durability::Each, files)),
            copy_and_sync(&from, &to("synced")),
        ];
        for (kind, took) in rounds.iter_mut().zip(took) {
            kind.push(took.as_secs_f64());
        }
    }
    println!("{files} files of 200 to 1200 B, median of {ROUNDS} rounds");
    for (name, seconds) in names.iter().zip(&rounds) {
        let ratios = seconds.iter().zip(&rounds[0]).map(|(one, copy)| one / copy).collect();
        println!("{name:<28} {:>8.3} s {:>8.1} x cp -r", median(seconds.clone()), median(ratios));
    }
}
