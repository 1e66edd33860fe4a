//! Agreement of both sides in the handshake: roles and method of the key management (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026,
//! section "Establishment of a Protected Association").

use anabranch_wire::{Cause, DtlsKeyManagement, KeyManagementMethod, List, Param, RawParam};
use arrayvec::ArrayVec;

/// Maximum length of the parameter of a peer: 22 methods, without padding.
const LONGEST_PARAMETER: usize = 31;

/// Maximum number of methods in the own parameter, which fits more.
const MOST_METHODS: usize = 8;

/// Treatment of a peer that does not protect packets, or only in an unknown way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionMode {
    /// The association is refused.
    Strict,
    /// The association continues without protection. An attacker on the network path can cause this.
    Loose,
}

/// Roles that an endpoint can have in the key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyManagementRoles {
    /// Client only: for endpoints that open associations.
    Client,
    /// Server only: for endpoints that accept them.
    Server,
    /// Either role, for peers that may both open an association at the same time.
    Either,
}

/// Configuration of the protection of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Treatment of a peer that does not support it.
    pub mode: ProtectionMode,
    /// Roles to offer.
    pub roles: KeyManagementRoles,
    /// Methods to offer, the preferred one first; at most eight are offered.
    pub methods: Vec<KeyManagementMethod>,
    /// `true` to keep keys for a restart of either side, if the peer does so too.
    pub restart: bool,
}

/// Role of an endpoint in the key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyManagementRole {
    /// Side that sends the first message.
    Client,
    /// Side that answers.
    Server,
}

/// Parameter of one side as it was sent, with its header and without padding.
pub(crate) type ParameterBytes = ArrayVec<u8, LONGEST_PARAMETER>;

/// Parameters of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParameterPair {
    pub(crate) local: ParameterBytes,
    pub(crate) peer: ParameterBytes,
}

/// Agreement of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    role: KeyManagementRole,
    method: KeyManagementMethod,
    restart: bool,
    parameters: ParameterPair,
}

impl Agreement {
    /// Returns the own role.
    pub const fn role(&self) -> KeyManagementRole {
        self.role
    }

    /// Returns the method of key management.
    pub const fn method(&self) -> KeyManagementMethod {
        self.method
    }

    /// Returns `true` if both sides keep keys for a restart (bit R of both parameters).
    pub const fn restart(&self) -> bool {
        self.restart
    }

    /// Returns `true` if both sides confirm the plain handshake under protection.
    pub fn confirms(&self) -> bool {
        self.method == KeyManagementMethod::TLS_CONFIRMED
    }

    /// Returns the own parameter and the peer's, as they were sent. Keys are derived from both, which reveals changes.
    pub fn parameters(&self) -> (&[u8], &[u8]) {
        (&self.parameters.local, &self.parameters.peer)
    }
}

/// Reason for which there is no agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The peer sent no valid parameter.
    Missing,
    NoCommonMethod,
    Roles,
    TieBreaker,
}

impl Mismatch {
    pub(crate) const fn cause(self) -> Cause<'static> {
        match self {
            Self::Missing => Cause::MissingDtlsSupport,
            Self::NoCommonMethod => Cause::NoCommonKeyManagement,
            Self::Roles => Cause::IncompatibleKeyManagementRoles,
            Self::TieBreaker => Cause::TieBreakerCollision,
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Missing => "the peer does not protect its packets, and this side requires protection",
            Self::NoCommonMethod => "the peer has no key management in common with this side",
            Self::Roles => "the peer's roles in the key management do not go with those of this side",
            Self::TieBreaker => "both sides drew the same tie breaker; try again",
        }
    }

    /// Returns the text for a peer that refuses the INIT with this cause.
    pub(crate) fn refusal_text(cause: Cause<'_>) -> Option<&'static str> {
        match cause {
            Cause::MissingDtlsSupport => {
                Some("the peer requires protection, and this side does not protect its packets")
            }
            Cause::NoCommonKeyManagement => Some(Self::NoCommonMethod.text()),
            Cause::IncompatibleKeyManagementRoles => Some(Self::Roles.text()),
            Cause::TieBreakerCollision => Some(Self::TieBreaker.text()),
            _ => None,
        }
    }
}

impl Protection {
    /// Returns the methods to offer for keys from TLS: the one that confirms the plain handshake, and the draft's.
    pub fn tls_methods() -> Vec<KeyManagementMethod> {
        vec![KeyManagementMethod::TLS_CONFIRMED, KeyManagementMethod::TLS]
    }

    /// Returns the own parameter.
    pub(crate) fn parameter(&self, tie_breaker: u32) -> ParameterBytes {
        let methods = &self.methods[..self.methods.len().min(MOST_METHODS)];
        let offer = Param::DtlsKeyManagement(DtlsKeyManagement {
            tie_breaker,
            client: self.roles != KeyManagementRoles::Server,
            server: self.roles != KeyManagementRoles::Client,
            restart: self.restart,
            methods: List::new(methods),
        });
        let mut space = [0; LONGEST_PARAMETER];
        let len = offer.put(&mut space).unwrap_or(0);
        space.into_iter().take(len).collect()
    }
}

/// Returns a copy of the peer's parameter; `None` if it is invalid or too long.
pub(crate) fn kept(raw: &RawParam<'_>) -> Option<ParameterBytes> {
    decode(raw.bytes())?;
    raw.bytes().try_into().ok()
}

fn decode(bytes: &[u8]) -> Option<DtlsKeyManagement<'_>> {
    match RawParam::parse(bytes).ok()?.decode().ok()? {
        Param::DtlsKeyManagement(offer) => Some(offer),
        _ => None,
    }
}

/// Returns the result of both parameters, which is the same on both sides.
pub(crate) fn agree(parameters: &ParameterPair) -> Result<Agreement, Mismatch> {
    let local = decode(&parameters.local).ok_or(Mismatch::Missing)?;
    let peer = decode(&parameters.peer).ok_or(Mismatch::Missing)?;
    let role = role(&local, &peer)?;
    let restart = local.restart && peer.restart;
    let (server, client) = match role {
        KeyManagementRole::Server => (local, peer),
        KeyManagementRole::Client => (peer, local),
    };
    let common = server.methods.iter().find(|method| client.methods.contains(*method));
    let method = common.ok_or(Mismatch::NoCommonMethod)?;
    Ok(Agreement { role, method, restart, parameters: parameters.clone() })
}

fn role(local: &DtlsKeyManagement<'_>, peer: &DtlsKeyManagement<'_>) -> Result<KeyManagementRole, Mismatch> {
    match (local.client && peer.server, local.server && peer.client) {
        (true, false) => Ok(KeyManagementRole::Client),
        (false, true) => Ok(KeyManagementRole::Server),
        (false, false) => Err(Mismatch::Roles),
        (true, true) if local.tie_breaker == peer.tie_breaker => Err(Mismatch::TieBreaker),
        (true, true) if local.tie_breaker > peer.tie_breaker => Ok(KeyManagementRole::Server),
        (true, true) => Ok(KeyManagementRole::Client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyManagementRole as Role;
    use KeyManagementRoles::{Client, Either, Server};
    use proptest::prelude::*;

    const TLS: KeyManagementMethod = KeyManagementMethod::TLS;
    const PRE_SHARED: KeyManagementMethod = KeyManagementMethod::PRE_SHARED;

    fn offer(roles: KeyManagementRoles, methods: &[KeyManagementMethod], tie: u32) -> ParameterBytes {
        let methods = methods.to_vec();
        Protection { mode: ProtectionMode::Strict, roles, methods, restart: false }.parameter(tie)
    }

    /// Returns the results of both sides.
    fn both(a: ParameterBytes, b: ParameterBytes) -> [Result<(Role, KeyManagementMethod), Mismatch>; 2] {
        let ours = ParameterPair { local: a.clone(), peer: b.clone() };
        let theirs = ParameterPair { local: b, peer: a };
        [ours, theirs].map(|pair| agree(&pair).map(|agreed| (agreed.role(), agreed.method())))
    }

    #[test]
    fn a_side_with_one_role_has_it() {
        for (a, b) in [(Client, Server), (Client, Either), (Either, Server)] {
            let agreed = both(offer(a, &[TLS], 1), offer(b, &[TLS], 9));
            assert_eq!(agreed, [Ok((Role::Client, TLS)), Ok((Role::Server, TLS))], "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_larger_number_is_the_servers() {
        let agreed = both(offer(Either, &[TLS], 5), offer(Either, &[TLS], 4));
        assert_eq!(agreed, [Ok((Role::Server, TLS)), Ok((Role::Client, TLS))]);
        let equal = both(offer(Either, &[TLS], 5), offer(Either, &[TLS], 5));
        assert_eq!(equal, [Err(Mismatch::TieBreaker); 2]);
    }

    #[test]
    fn two_client_roles_are_no_agreement() {
        for roles in [Client, Server] {
            assert_eq!(both(offer(roles, &[TLS], 1), offer(roles, &[TLS], 2)), [Err(Mismatch::Roles); 2]);
        }
    }

    #[test]
    fn the_servers_order_decides_the_method() {
        let client = offer(Client, &[TLS, PRE_SHARED], 1);
        let agreed = both(client.clone(), offer(Server, &[KeyManagementMethod(7), PRE_SHARED, TLS], 2));
        assert_eq!(agreed, [Ok((Role::Client, PRE_SHARED)), Ok((Role::Server, PRE_SHARED))]);
        let none = both(client, offer(Server, &[KeyManagementMethod(7)], 2));
        assert_eq!(none, [Err(Mismatch::NoCommonMethod); 2]);
    }

    #[test]
    fn keys_are_kept_for_a_restart_if_both_sides_offer_it() {
        let offer = |roles, restart| {
            let methods = vec![TLS];
            Protection { mode: ProtectionMode::Strict, roles, methods, restart }.parameter(1)
        };
        for (client, server) in [(false, false), (false, true), (true, false), (true, true)] {
            let pair = ParameterPair { local: offer(Client, client), peer: offer(Server, server) };
            assert_eq!(agree(&pair).expect("roles that go together").restart(), client && server);
        }
    }

    #[test]
    fn empty_offer_writes_no_parameter() {
        let nothing = offer(Client, &[], 1);
        assert_eq!(both(nothing, offer(Server, &[TLS], 1)), [Err(Mismatch::Missing); 2]);
    }

    proptest! {
        #[test]
        fn both_sides_compute_the_same_agreement(a in any::<(u32, u8, [u8; 3])>(), b in any::<(u32, u8, [u8; 3])>()) {
            let make = |(tie, roles, methods): (u32, u8, [u8; 3])| {
                let roles = [Client, Server, Either][usize::from(roles % 3)];
                offer(roles, &methods.map(|method| KeyManagementMethod(method % 4)), tie)
            };
            match both(make(a), make(b)) {
                [Ok((role, method)), Ok((other, same))] => {
                    prop_assert_ne!(role, other);
                    prop_assert_eq!(method, same);
                }
                [ours, theirs] => prop_assert_eq!(ours, theirs),
            }
        }
    }
}
