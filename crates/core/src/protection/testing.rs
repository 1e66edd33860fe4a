//! Protection states for tests.

use anabranch_wire::KeyManagementMethod;

use crate::protection::{
    KeyManagementRoles, PacketProtection, ParameterPair, Protection, ProtectionMode, Start, agree,
};

pub(crate) const START: Start = Start { own_initial: 1, peer_initial: 1, first_ssn: 0, transcript: None };

/// Returns the state of a client that has agreed on protection with restarts, and waits for keys.
pub(crate) fn agreed() -> PacketProtection {
    agreed_with(true)
}

/// Returns the state of a client that offered restarts, with a server that offers them or does not.
pub(crate) fn agreed_with(peer_restart: bool) -> PacketProtection {
    let offer = |roles, restart| {
        let methods = vec![KeyManagementMethod::TLS];
        Protection { mode: ProtectionMode::Strict, roles, methods, restart }.parameter(1)
    };
    let local = offer(KeyManagementRoles::Client, true);
    let pair = ParameterPair { local: local.clone(), peer: offer(KeyManagementRoles::Server, peer_restart) };
    let mut protection = PacketProtection::new(Some(local));
    protection.begin(Some(agree(&pair).expect("roles that go together")), START);
    protection
}
