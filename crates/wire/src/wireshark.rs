//! Cross-check with Wireshark: its dissector must accept the written packets. Not run by default.

use crate::packet::tests::BY_HAND;
use crate::testing::{SAMPLES, write};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Link type of a capture file whose packets begin with the SCTP common header.
const LINKTYPE_SCTP: u32 = 248;

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    // Magic number, version 2.4, time zone, accuracy, maximum packet length, link type.
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4, 2 << 16 | 4, 0, 0, 0x4_0000, LINKTYPE_SCTP] {
        file.extend_from_slice(&u32::to_be_bytes(word));
    }
    for packet in packets {
        let len = u32::try_from(packet.len()).unwrap();
        for word in [0, 0, len, len] {
            file.extend_from_slice(&u32::to_be_bytes(word));
        }
        file.extend_from_slice(packet);
    }
    file
}

fn dissect(packets: &[Vec<u8>], fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new("tshark")
        .args(["-o", "sctp.checksum:CRC-32C", "-r", "-", "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Dropping the pipe at the end of the statement ends the capture.
    tshark.stdin.take().unwrap().write_all(&capture(packets)).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_reports_no_error() {
    // Wireshark expects one parameter in a HEARTBEAT. RFC 9260 section 8.3 permits others.
    let samples = SAMPLES.iter().filter(|(name, _)| *name != "heartbeat-path-cost");
    let mut packets: Vec<_> = samples.map(|&(_, sample)| write(sample)).collect();
    packets.push(BY_HAND.to_vec());
    let found = dissect(&packets, &["sctp.checksum.status", "_ws.malformed", "_ws.expert.message"]);
    assert_eq!(found.len(), packets.len());
    for (found, packet) in found.iter().zip(&packets) {
        assert_eq!(found, "1\t\t", "{packet:02x?}");
    }
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_the_fields_as_we_do() {
    let fields = [
        "sctp.data_tsn_raw",
        "sctp.data_sid",
        "sctp.data_ssn",
        "sctp.sack_gap_block_start",
        "sctp.chunk_length",
    ];
    let found = dissect(&[BY_HAND.to_vec()], &fields);
    assert_eq!(found, ["99\t0x0005\t6\t2\t20,18"]);

    let (_, nr_sack) = SAMPLES.iter().find(|(name, _)| *name == "nr-sack").unwrap();
    let fields = [
        "sctp.nr_sack_cumulative_tsn_ack",
        "sctp.nr_sack_gap_block_start",
        "sctp.nr_sack_nr_gap_block_end",
        "sctp.nr_sack_duplicate_tsn",
    ];
    assert_eq!(dissect(&[write(nr_sack)], &fields), ["4096\t2,6\t9\t4095,4097"]);
}
