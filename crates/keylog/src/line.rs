//! Lines of a key log: `SCTP_DTLS_FROM_CLIENT SUITE KEY SEQUENCE_NUMBER_KEY IV`, or `..._FROM_SERVER`. All fields after the label
//! are hexadecimal. NSS key logs also begin their lines with a label and a blank, so one file can contain both. The client is the
//! client of the TLS handshake. Lines have no epoch: records carry two bits of it, and their tags identify the key.

use std::fmt::Write as _;

use anabranch_dtls::{CipherSuite, KeyMaterial};
use anabranch_keying::{Direction, LoggedKeys};
use zeroize::Zeroizing;

const FROM_CLIENT: &str = "SCTP_DTLS_FROM_CLIENT";
const FROM_SERVER: &str = "SCTP_DTLS_FROM_SERVER";

/// Maximum length of a key, in hexadecimal digits.
const LONGEST_DIGITS: usize = 64;

/// Expected format of a line, for errors.
const FORM: &str =
    "expected a label, a cipher suite, a key, a sequence number key and an initialization vector";

/// Returns a line, with its line break.
pub(crate) fn write(direction: Direction, keys: &LoggedKeys<'_>) -> Zeroizing<String> {
    let label = match direction {
        Direction::FromClient => FROM_CLIENT,
        Direction::FromServer => FROM_SERVER,
    };
    // Allocated in full, because a growing string would leave copies of the keys behind.
    let mut line = Zeroizing::new(String::with_capacity(label.len() + 2 * (32 + 32 + 12 + 2) + 5));
    line.push_str(label);
    let suite = keys.suite.number().to_be_bytes();
    for part in [&suite[..], keys.key, keys.sequence_number_key, keys.iv] {
        line.push(' ');
        for byte in part {
            let _ = write!(line, "{byte:02x}");
        }
    }
    line.push('\n');
    line
}

/// Reads the keys of a line. Returns `None` for a comment, an empty line, or an unknown label.
pub(crate) fn read(line: &str) -> Result<Option<KeyMaterial>, &'static str> {
    let mut words = line.split_ascii_whitespace();
    if !matches!(words.next(), Some(FROM_CLIENT | FROM_SERVER)) {
        return Ok(None);
    }
    let mut part = || words.next().ok_or(FORM).and_then(digits);
    let (suite, key, sequence_number_key, iv) = (part()?, part()?, part()?, part()?);
    if words.next().is_some() {
        return Err(FORM);
    }
    let number = suite[..].try_into().map(u16::from_be_bytes).map_err(|_| FORM)?;
    let suite = CipherSuite::of_number(number)
        .ok_or("no cipher suite of the DTLS chunk: expected 1301, 1302 or 1303")?;
    let material = KeyMaterial::new(suite, &key, &sequence_number_key, &iv);
    material.map(Some).map_err(|_| "a key of another length than its cipher suite's")
}

fn digits(word: &str) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let bytes = (word.len() <= LONGEST_DIGITS).then(|| hex::decode(word).ok()).flatten();
    bytes.map(Zeroizing::new).ok_or("expected at most 64 hexadecimal digits, an even number of them")
}

/// Fuzz target: the keys of a valid line make a cipher that opens its own records.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(line: &str) {
    let Ok(Some(keys)) = read(line) else { return };
    let cipher = keys.cipher();
    let mut sealed = b"content".to_vec();
    let mut tag = vec![0; cipher.tag_bytes()];
    cipher.seal(1, b"header", &mut sealed, &mut tag).expect("it seals");
    sealed.extend(tag);
    assert_eq!(cipher.open(1, b"header", &mut sealed), Ok(&b"content"[..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let (key, iv) = ([0xA1; 32], [0xC3; 12]);
        for suite in CipherSuite::ALL {
            let key = &key[..suite.key_len()];
            let keys = LoggedKeys { suite, key, sequence_number_key: key, iv: &iv };
            for direction in [Direction::FromClient, Direction::FromServer] {
                let line = write(direction, &keys);
                assert!(line.capacity() >= line.len() && line.ends_with('\n'));
                assert_eq!(read(&line).expect("keys").expect("keys").suite(), suite);
            }
            assert!(!format!("{keys:?}").contains("161"), "keys are not shown");
        }
    }

    #[test]
    fn other_labels_and_comments_are_left_to_others() {
        for line in ["", "  ", "# keys", "EXPORTER_SECRET 00 11", "SCTP_DTLS_FROM_CLIENTS 1301"] {
            assert!(read(line).expect("no error").is_none(), "{line}");
        }
    }

    #[test]
    fn invalid_line_is_refused_with_the_reason() {
        let key = "a1".repeat(16);
        for (rest, expected) in [
            (String::new(), "expected a label"),
            (format!("1301 {key} {key}"), "expected a label"),
            (format!("1301 {key} {key} {} 00", "c3".repeat(12)), "expected a label"),
            (format!("1304 {key} {key} {}", "c3".repeat(12)), "no cipher suite"),
            (format!("1302 {key} {key} {}", "c3".repeat(12)), "another length"),
            (format!("1301 {key} {key} {}", "c3".repeat(11)), "another length"),
            (format!("1301 {key} xyz {}", "c3".repeat(12)), "hexadecimal"),
            (format!("1301 {} {key} {}", "a1".repeat(33), "c3".repeat(12)), "at most 64"),
        ] {
            let error = read(&format!("SCTP_DTLS_FROM_SERVER {rest}")).expect_err(&rest);
            assert!(error.contains(expected), "{rest}: {error}");
        }
    }
}
