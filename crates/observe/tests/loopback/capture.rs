//! Captures, checked by a parser of this test and by Wireshark.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_observe::{Outputs, Recording, Role};

use crate::rig::{Pair, SCHEME, eventually, recorded, scheme};

const ENHANCED_PACKET: u32 = 6;

/// Returns the times of a capture's packets in nanoseconds since 1970, or `None` if it ends within a block.
fn times(file: &[u8]) -> Option<Vec<u64>> {
    let (mut at, mut times) = (0, Vec::new());
    while at < file.len() {
        let word = |i: usize| Some(u32::from_le_bytes(file.get(i..i + 4)?.try_into().ok()?));
        let length = word(at + 4)? as usize;
        assert_eq!(word(at + length - 4)? as usize, length);
        if word(at)? == ENHANCED_PACKET {
            times.push((u64::from(word(at + 12)?) << 32) | u64::from(word(at + 16)?));
        }
        at += length;
    }
    Some(times)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

fn pcap(path: &Path) -> Outputs {
    Outputs { pcap: Some(path.to_owned()), ..Outputs::default() }
}

#[tokio::test]
async fn a_capture_has_the_wall_clocks_times_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcapng");
    let before = now_ns();
    recorded(1, &pcap(&path)).await;
    let times = times(&std::fs::read(&path).expect("a capture")).expect("a whole one");
    assert!(times.len() > 1000, "{}", times.len());
    assert!(times.is_sorted());
    assert!(times[0] >= before && times[times.len() - 1] <= now_ns());
}

#[tokio::test]
async fn a_capture_can_be_read_while_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcapng");
    let recording = Recording::start(&pcap(&path), Role::Client, SCHEME, &scheme()).expect("a recording");
    let pair = Pair::new(5, Some(&recording));
    pair.transfer().await;
    // The recording is not finished, like that of a killed process.
    let packets = eventually(|| {
        let times = times(&std::fs::read(&path).expect("a capture"))?;
        (times.len() > 1000).then_some(times.len())
    })
    .await;
    assert!(packets > 1000);
    drop(recording);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("missing").join("capture.pcapng");
    let error = Recording::start(&pcap(&path), Role::Client, SCHEME, &scheme()).expect_err("no such folder");
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
}

#[tokio::test]
async fn a_full_disk_ends_the_file_and_not_the_transfer() {
    if !Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full");
        return;
    }
    let outputs = pcap(Path::new("/dev/full"));
    let error = Recording::start(&outputs, Role::Client, SCHEME, &scheme()).map(drop).expect_err("full");
    assert_eq!(error.path, Path::new("/dev/full"));
}

#[tokio::test]
async fn wireshark_dissects_both_directions_of_both_paths() {
    let missing = |program| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    };
    if missing("tshark") {
        println!("skipped: tshark is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcapng");
    recorded(9, &pcap(&path)).await;
    let text = path.display().to_string();
    let fields = ["frame.interface_name", "ip.src", "udp.checksum.status", "sctp.checksum.status"];
    let mut arguments =
        vec!["-r", &text, "-d", "udp.port==1-65535,sctp", "-T", "fields", "-E", "separator=|"];
    arguments.extend(["-o", "udp.check_checksum:TRUE", "-o", "sctp.checksum:CRC 32c"]);
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let output = Command::new("tshark").args(arguments).output().expect("tshark runs");
    let lines = String::from_utf8(output.stdout).expect("text");
    for line in lines.lines() {
        assert!(line.ends_with("|1|1"), "a checksum is wrong: {line}");
    }
    for (interface, source) in [(11, 11), (11, 9), (12, 12), (12, 10)] {
        let begins = format!("127.0.2.{interface}|127.0.2.{source}|");
        let count = lines.lines().filter(|line| line.starts_with(&begins)).count();
        assert!(count > 10, "{begins}: {count}");
    }
}
