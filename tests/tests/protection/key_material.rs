//! Keys exist only at their place of use: not in printed or sent data, and not in memory after their end.

use std::sync::Arc;

use anabranch_core::time::Span;
use anabranch_keying::{Credentials, KeyLog, KeyPolicy};
use anabranch_tests::credentials::credentials;
use anabranch_tests::managed::{Managed, restarting};
use anabranch_tests::network::Side;
use anabranch_tests::seen_keys::{SeenKeys, count_in};

/// Returns a pair with keys of a first handshake and of a second one, both ways, with restart keys and the first keys after a
/// restart.
fn rekeyed() -> (Managed, Arc<SeenKeys>) {
    let seen = Arc::new(SeenKeys::default());
    let logged = |credentials: Credentials| credentials.with_key_log(Arc::clone(&seen) as Arc<dyn KeyLog>);
    let both = [logged(credentials(1, &[2])), logged(credentials(2, &[1]))];
    let policy = KeyPolicy { rekey_after: Span::from_secs(60), ..KeyPolicy::default() };
    let mut managed = Managed::with(restarting(1), both, policy);
    managed.duo.kept = Some(Vec::new());
    let mut managed = managed.established();
    managed.data_flows();
    managed.run(Span::from_secs(70));
    managed.data_flows();
    let of_an_epoch = 2 * 2 * 2 * 3;
    assert_eq!(seen.beginnings().len(), 2 * of_an_epoch, "sides, uses, directions, three parts");
    let keys = managed.keying[0].stored.pop().expect("those of the second epoch");
    managed.crash(Side::A);
    managed.restart(Side::A, &keys);
    assert!(managed.run_until(Span::from_secs(10), Managed::is_restarted));
    managed.data_flows();
    assert_eq!(seen.beginnings().len(), 3 * of_an_epoch);
    (managed, seen)
}

#[test]
fn printed_or_sent_text_has_no_keys() {
    let (managed, seen) = rekeyed();
    // Endpoints, associations, contexts, ciphers, exchanges, key managements, credentials, and all their events.
    let printed = format!("{managed:?}");
    assert!(
        ["KeyManager {", "SuiteCipher {", "TlsExchange {", "RestartContext {", "RestartKeys {"]
            .iter()
            .all(|part| printed.contains(part))
    );
    assert!(!seen.are_shown_in(&printed), "a key is printed");
    let beginnings = seen.beginnings();
    for (_, packet) in managed.duo.kept.iter().flatten() {
        assert_eq!(count_in(&packet.bytes, &beginnings), 0, "a key is sent");
    }
}

#[cfg(target_os = "linux")]
mod memory {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt as _;

    use anabranch_tests::seen_keys::count_in;

    use super::rekeyed;

    /// Returns the number of occurrences of these keys in writable memory, except in the stacks of threads.
    fn count(veiled: &[u64]) -> usize {
        let memory = File::open("/proc/self/mem").expect("a process may read its memory");
        let maps = fs::read_to_string("/proc/self/maps").expect("a process may read its map");
        let local = 0_u8;
        let stack = std::ptr::from_ref(&local).addr() as u64;
        let mut bytes = vec![0; 1 << 20];
        let mut found = 0;
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
            let (start, end) = range.split_once('-').expect("a range");
            let address = |digits| u64::from_str_radix(digits, 16).expect("an address");
            let (start, end) = (address(start), address(end));
            if !rights.starts_with("rw") || line.ends_with("[stack]") || (start..end).contains(&stack) {
                continue;
            }
            let mut at = start;
            while at < end {
                bytes.fill(0);
                let wanted = bytes.len().min((end - at) as usize);
                // Another test may have released it at the same time.
                let Ok(read @ 1..) = memory.read_at(&mut bytes[..wanted], at) else { break };
                found += count_in(&bytes[..read], veiled);
                at += read as u64;
            }
        }
        found
    }

    #[test]
    fn keys_are_in_memory_while_they_are_used_and_not_afterwards() {
        let (managed, seen) = rekeyed();
        let beginnings = seen.beginnings();
        assert!(count(&beginnings) > 0, "keys in use, or stored, are found");
        drop(managed);
        assert_eq!(count(&beginnings), 0, "keys are left in memory");
    }
}
