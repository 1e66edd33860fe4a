//! Aging of keys by use.

use anabranch_core::protection::{KeyManagementRole, KeyUse};

use crate::policy::KeyPolicy;

/// Number of failed authentications after which a key is replaced: half of the 2^36 after which it must not be used (RFC 9147
/// section 4.5.3).
const FORGERIES: u64 = 1 << 35;

/// Returns a limit as applied in this role. The server adds an eighth, so that usually the client requests new keys first.
pub(super) fn limit_of(role: KeyManagementRole, limit: u64) -> u64 {
    match role {
        KeyManagementRole::Client => limit,
        KeyManagementRole::Server => limit.saturating_add(limit / 8),
    }
}

pub(super) fn is_used_up(role: KeyManagementRole, policy: &KeyPolicy, usage: &KeyUse) -> bool {
    // Three quarters of the cipher's limit. The rest serves the exchange and the packets queued before it.
    let cipher = usage.sealed.saturating_add(usage.seals_left) / 4 * 3;
    let records = limit_of(role, policy.rekey_records.min(cipher));
    usage.sealed.max(usage.opened) >= records
        || usage.bytes >= limit_of(role, policy.rekey_bytes)
        || usage.failed >= FORGERIES
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyManagementRole::{Client, Server};

    const AES: u64 = 23_726_566;

    fn used(sealed: u64, opened: u64, bytes: u64, failed: u64) -> KeyUse {
        KeyUse { sealed, seals_left: AES - sealed, opened, failed, bytes }
    }

    #[test]
    fn the_client_asks_first_and_the_server_before_the_cipher_is_at_its_end() {
        let policy = KeyPolicy::default();
        for (role, at) in [(Client, 17_794_923), (Server, 20_019_288)] {
            assert!(!is_used_up(role, &policy, &used(at - 1, 0, 0, 0)), "{role:?}");
            assert!(is_used_up(role, &policy, &used(at, 0, 0, 0)), "{role:?}");
            assert!(is_used_up(role, &policy, &used(0, at, 0, 0)), "{role:?}");
        }
    }

    #[test]
    fn bytes_and_forgeries_count_too() {
        let policy = KeyPolicy::default();
        assert!(is_used_up(Client, &policy, &used(1, 1, 100_000_000_000, 0)));
        assert!(!is_used_up(Server, &policy, &used(1, 1, 100_000_000_000, 0)));
        assert!(is_used_up(Server, &policy, &used(1, 1, 0, FORGERIES)));
    }

    #[test]
    fn fewer_records_can_be_asked_for() {
        let policy = KeyPolicy { rekey_records: 100, ..KeyPolicy::default() };
        assert!(is_used_up(Client, &policy, &used(100, 0, 0, 0)));
        assert!(
            !is_used_up(Server, &policy, &used(111, 0, 0, 0))
                && is_used_up(Server, &policy, &used(112, 0, 0, 0))
        );
    }
}
