//! Jumps of the wall clock must not affect associations: only the start time of a capture depends on it.
//!
//! The test starts this program again under libfaketime, which takes CLOCK_REALTIME from a file and leaves CLOCK_MONOTONIC
//! unchanged. Without libfaketime it is skipped: `make setup` installs it.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anabranch_net::{Association, Config, Endpoint, PathAddress, PathState, Peer, Protection, SendOptions};

/// Environment variable that names the file with the clock's offset.
const FILE: &str = "FAKETIME_TIMESTAMP_FILE";

const MESSAGES: usize = 400;
const MESSAGE_BYTES: usize = 16 << 10;

/// Returns the library, at its location on Debian, Fedora and Arch.
fn library() -> Option<PathBuf> {
    let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(Path::new);
    let multiarch = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let all = folders.iter().map(|folder| folder.to_path_buf()).chain(multiarch);
    all.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
}

#[test]
fn clock_jump_of_hours_does_not_affect_a_transfer() {
    let Some(library) = library() else {
        println!("skipped: libfaketime is missing, install it to run this test");
        return;
    };
    let file = std::env::temp_dir().join(format!("anabranch-clock-{}", std::process::id()));
    std::fs::write(&file, "+0").expect("a file");
    let ended = Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "clock::a_transfer_amid_jumps", "--nocapture"])
        .env("LD_PRELOAD", library)
        .env(FILE, &file)
        .envs([
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ])
        .output()
        .expect("it can be started");
    let _ = std::fs::remove_file(&file);
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
}

fn endpoint(node: u8, accepts: bool) -> Endpoint {
    let builder =
        Endpoint::builder(Protection::Insecure).local(SocketAddr::from((Ipv4Addr::new(127, 0, 3, node), 0)));
    let builder = if accepts { builder.accept(Config::new("bonded").expect("a scheme")) } else { builder };
    builder.bind().expect("an endpoint")
}

async fn receive_all(theirs: &Association) {
    for number in 0..MESSAGES {
        let message = theirs.recv().await.expect("no error").expect("a message");
        assert!(message.payload.len() == MESSAGE_BYTES && message.payload.iter().all(|b| *b == number as u8));
    }
}

#[tokio::test]
#[ignore = "started by clock_jump_of_hours_does_not_affect_a_transfer"]
async fn a_transfer_amid_jumps() {
    let file = std::env::var(FILE).expect("the test above names it");
    let (client, server) = (endpoint(11, false), endpoint(1, true));
    let remote = server.local_addresses()[0];
    let local = client.local_addresses()[0].ip();
    let peer = Peer::new([PathAddress::over_udp(local, remote)]).sctp_port(server.sctp_port());
    let connected = client.connect(peer, Config::new("bonded").expect("a scheme"));
    let (ours, theirs) = tokio::join!(connected, server.accept());
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let begun = (Instant::now(), SystemTime::now());
    let jumps = ["+6h", "-18h", "+2d", "-1y"];
    let sending = async {
        for number in 0..MESSAGES {
            if number % (MESSAGES / 4) == 50 {
                std::fs::write(&file, jumps[number / (MESSAGES / 4)]).expect("the clock is set");
                // Timers are armed before and after the jump.
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            ours.send(vec![number as u8; MESSAGE_BYTES], SendOptions::default()).await.expect("accepted");
        }
    };
    tokio::join!(sending, receive_all(&theirs));
    let elapsed = begun.0.elapsed();
    let behind = begun.1.duration_since(SystemTime::now()).expect("the clock went back");
    assert!(behind > Duration::from_secs(300 * 86_400), "the clock did jump: {behind:?}");
    assert!(elapsed < Duration::from_secs(60), "it took {elapsed:?}");
    for side in [&ours, &theirs] {
        let statistics = side.snapshot().await.statistics;
        assert_eq!((statistics.timeouts, statistics.heartbeat_timeouts), (0, 0), "{statistics:?}");
        let paths = side.paths().await;
        assert!(paths.iter().all(|path| path.state == PathState::Active && path.errors == 0), "{paths:?}");
    }
    ours.shutdown().await.expect("a good end");
}
