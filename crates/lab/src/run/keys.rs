//! Key management of an end whose packets are protected.

use anabranch_core::protection::{KEY_MANAGEMENT_PPID, KeyManagementRoles, Protection, ProtectionMode};
use anabranch_core::time::Time;
use anabranch_core::{Association, ReceivedMessage};
use anabranch_keying::{KeyManager, KeyPolicy, KeyingEvent, ScriptedExchanges};

/// Returns the configuration of both ends of a flow. The left end opens the association.
pub(crate) fn offers() -> [Protection; 2] {
    [KeyManagementRoles::Client, KeyManagementRoles::Server].map(|roles| Protection {
        mode: ProtectionMode::Strict,
        roles,
        methods: Protection::tls_methods(),
        restart: false,
    })
}

/// Returns the payload protocol identifier of an application's number. The function skips the identifier of the key management.
pub(crate) fn identifier_of(number: u32) -> u32 {
    number + u32::from(number >= KEY_MANAGEMENT_PPID)
}

/// Returns the number of an identifier.
pub(crate) fn number_of(identifier: u32) -> u32 {
    identifier - u32::from(identifier > KEY_MANAGEMENT_PPID)
}

/// Keys of one end.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Key management, once both ends have agreed on protection.
    manager: Option<KeyManager>,
}

impl Keys {
    /// Begins the key management if both ends have agreed on protection and it has not begun yet.
    pub(crate) fn begin(&mut self, now: Time, association: &mut Association) {
        let Some(agreement) = association.protection().filter(|_| self.manager.is_none()) else { return };
        let manager = KeyManager::new(now, agreement, Box::new(ScriptedExchanges), KeyPolicy::default());
        // TLS is the only method that both ends offer.
        if let Ok(mut manager) = manager {
            manager.start(association);
            self.manager = Some(manager);
        }
    }

    /// Handles a received message. Returns `false` if it belongs to the application.
    pub(crate) fn take(
        &mut self,
        now: Time,
        piece: &ReceivedMessage,
        payload: &[u8],
        association: &mut Association,
    ) -> bool {
        if piece.ppid != KEY_MANAGEMENT_PPID {
            return false;
        }
        if let Some(manager) = &mut self.manager {
            manager.receive(now, piece, payload, association);
        }
        true
    }

    /// Performs the actions that are due. Returns `true` if the association got its first keys. Aborts the association if the key
    /// management fails.
    pub(crate) fn advance(&mut self, now: Time, association: &mut Association) -> bool {
        let Some(manager) = &mut self.manager else { return false };
        manager.poll(now, association);
        let mut established = false;
        while let Some(event) = manager.poll_event() {
            match event {
                KeyingEvent::Established => established = true,
                // Hosts of a scenario do not restart.
                KeyingEvent::Restarted | KeyingEvent::Rekeyed { .. } | KeyingEvent::RekeyFailed(_) => {}
                KeyingEvent::Failed(error) => association.abort_for_key_management(now, error.text()),
            }
        }
        established
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.manager.as_ref().and_then(KeyManager::deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_and_ppid_except_key_management_can_be_sent() {
        for number in [0, 4_241, 4_242, 4_243, u32::MAX - 1] {
            assert_ne!(identifier_of(number), KEY_MANAGEMENT_PPID);
            assert_eq!(number_of(identifier_of(number)), number);
        }
    }
}
