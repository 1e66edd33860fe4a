//! Seeds of the fuzz targets. `make fuzz-build` writes them into the corpus, and the tests run the targets over them.

use super::{parse_packet, reemit};
use crate::crc;
use crate::testing::{HEADER, SAMPLES, write};
use std::fs;
use std::path::PathBuf;

/// Directories of the corpus, one per fuzz target.
const TARGETS: [&str; 2] = ["parse_packet", "reemit"];

struct Seed {
    target: &'static str,
    name: String,
    bytes: Vec<u8>,
}

fn folder(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "fuzz", "corpus", target].iter().collect()
}

/// Returns a packet with these bytes after its header and a valid checksum.
fn packet(chunks: &[u8]) -> Vec<u8> {
    let mut bytes = [&HEADER.to_wire()[..], chunks].concat();
    crc::write_field(&mut bytes);
    bytes
}

/// Malformed or unusual chunks. The name describes the defect.
const ODD_CHUNKS: [(&str, &[u8]); 51] = [
    ("chunk-zero-length", &[11, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 0]),
    ("chunk-length-three", &[11, 0, 0, 3]),
    ("chunk-past-end", &[10, 0, 0, 9, 1, 2, 3, 4]),
    ("chunk-longest-length", &[0x84, 0, 0xFF, 0xFF, 0, 0, 0, 0]),
    ("chunk-header-cut", &[11, 0, 0, 4, 11, 0, 0]),
    ("padding-missing", &[10, 0, 0, 5, 1]),
    ("data-too-short", &[0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0]),
    ("data-empty", &[0, 3, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("init-too-short", &[1, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]),
    ("init-param-zero-length", &[1, 0, 0, 24, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 7, 0, 0]),
    ("init-param-past-end", &[1, 0, 0, 24, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 7, 0, 5]),
    (
        "init-param-wrong-length",
        &[1, 0, 0, 26, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 5, 0, 6, 1, 2, 0, 0],
    ),
    ("sack-gap-count-too-big", &[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 0]),
    ("sack-dup-count-too-big", &[3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0xFF, 0xFF, 0, 2, 0, 2]),
    ("sack-counts-too-small", &[3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 2, 0, 2]),
    ("sack-block-backwards", &[3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 0, 0, 5, 0, 2]),
    ("nr-sack-counts-too-big", &[16, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0]),
    ("heartbeat-empty", &[4, 0, 0, 4]),
    ("heartbeat-other-param", &[4, 0, 0, 8, 0, 2, 0, 4]),
    ("abort-cause-zero-length", &[6, 0, 0, 8, 0, 12, 0, 0]),
    ("abort-cause-past-end", &[6, 0, 0, 8, 0, 12, 0, 9]),
    ("error-missing-count-too-big", &[9, 0, 0, 14, 0, 2, 0, 10, 0xFF, 0xFF, 0xFF, 0xFF, 0, 7, 0, 0]),
    ("error-quoted-param-past-end", &[9, 0, 0, 12, 0, 8, 0, 8, 0xC0, 6, 0, 8]),
    ("error-quoted-chunk-zero-length", &[9, 0, 0, 12, 0, 6, 0, 8, 0x7F, 0, 0, 0]),
    ("shutdown-too-long", &[7, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2]),
    ("forward-tsn-half-stream", &[0xC0, 0, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0]),
    ("heartbeat-ack-with-path-cost", &[5, 0, 0, 20, 0, 1, 0, 5, 105, 0, 0, 0, 0xBF, 0x70, 0, 5, 2, 0, 0, 0]),
    ("i-data-too-short", &[0x40, 3, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
    ("i-data-empty", &[0x40, 3, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (
        "i-data-reserved-set",
        &[0x40, 0xF0, 0, 21, 0, 0, 0, 1, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0],
    ),
    ("i-forward-tsn-half-entry", &[0xC2, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 1]),
    ("auth-too-short", &[15, 0, 0, 6, 0, 0, 0, 0]),
    ("auth-without-code", &[15, 0, 0, 8, 0, 0, 0, 3]),
    ("asconf-without-address", &[0xC1, 0, 0, 8, 0, 0, 0, 1]),
    ("asconf-address-past-end", &[0xC1, 0, 0, 12, 0, 0, 0, 1, 0, 5, 0, 8]),
    (
        "asconf-add-quotes-past-end",
        &[0xC1, 0, 0, 28, 0, 0, 0, 1, 0, 5, 0, 8, 1, 2, 3, 4, 0xC0, 1, 0, 12, 0, 0, 0, 1, 0, 5, 0, 8],
    ),
    (
        "asconf-ack-cause-zero-length",
        &[0x80, 0, 0, 20, 0, 0, 0, 1, 0xC0, 3, 0, 12, 0, 0, 0, 1, 0, 0xA0, 0, 0],
    ),
    ("init-chunk-list-empty", &[1, 0, 0, 24, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0x80, 3, 0, 4]),
    (
        "init-key-management-without-method",
        &[
            1, 0, 0, 29, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0x80, 6, 0, 9, 1, 2, 3, 4, 7, 0, 0,
            0,
        ],
    ),
    ("re-config-empty", &[0x82, 0, 0, 4]),
    ("re-config-half-stream", &[0x82, 0, 0, 13, 0, 14, 0, 9, 0, 0, 0, 1, 5, 0, 0, 0]),
    ("re-config-add-too-short", &[0x82, 0, 0, 14, 0, 17, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0]),
    ("re-config-response-with-one-tsn", &[0x82, 0, 0, 20, 0, 16, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9]),
    ("abort-dtls-cause-with-value", &[6, 0, 0, 12, 0, 100, 0, 8, 1, 2, 3, 4]),
    ("dtls-empty", &[0x41, 0, 0, 4]),
    ("dtls-header-cut", &[0x41, 0, 0, 7, 0, 0x2B, 1, 0]),
    ("dtls-with-connection-identifier", &[0x41, 0, 0, 12, 0, 0x3B, 1, 2, 3, 4, 5, 6]),
    ("confirmation-cut", &[0xBA, 1, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8]),
    ("unknown-stop", &[0x3F, 0, 0, 4, 11, 0, 0, 4]),
    ("unknown-stop-report", &[0x7F, 0, 0, 4, 11, 0, 0, 4]),
    ("unknown-skip-and-report", &[0xBF, 0, 0, 4, 0xFF, 0, 0, 5, 1, 0, 0, 0, 11, 0, 0, 4]),
];

fn seeds() -> Vec<Seed> {
    let seed = |target, name: &str, bytes| Seed { target, name: name.to_owned(), bytes };
    let mut seeds: Vec<_> = ODD_CHUNKS.map(|(name, chunks)| seed(TARGETS[0], name, packet(chunks))).into();
    let mut spoilt = write(|packet| packet.cookie_ack());
    spoilt[8] ^= 1;
    seeds.push(seed(TARGETS[0], "checksum-wrong", spoilt));
    seeds.push(seed(TARGETS[0], "header-cut", packet(&[])[..11].to_vec()));
    seeds.push(seed(TARGETS[0], "header-only", packet(&[])));
    seeds.extend(SAMPLES.map(|(name, sample)| seed(TARGETS[1], name, write(sample))));
    let bundle = write(|packet| SAMPLES.iter().try_for_each(|(_, sample)| sample(packet)));
    seeds.push(seed(TARGETS[1], "bundle-of-all", bundle));
    seeds
}

#[test]
#[ignore = "writes into the source tree"]
fn write_seeds() {
    for target in TARGETS {
        let _absent = fs::remove_dir_all(folder(target));
        fs::create_dir_all(folder(target)).unwrap();
    }
    for seed in seeds() {
        fs::write(folder(seed.target).join(seed.name), seed.bytes).unwrap();
    }
}

#[test]
fn every_target_passes_on_all_seeds() {
    for seed in seeds() {
        parse_packet(&seed.bytes);
        reemit(&seed.bytes);
    }
}
