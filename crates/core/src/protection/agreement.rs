//! What both sides agree on in the handshake: who is client and server of the key management, and which method it uses
//! (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "Establishment of a Protected Association").

use anabranch_wire::{Cause, DtlsKeyManagement, KeyManagementMethod, List, Param, RawParam};
use arrayvec::ArrayVec;

/// The longest parameter that is taken from a peer: 22 methods, padding left out.
const LONGEST_PARAMETER: usize = 31;

/// Methods that fit our own parameter with room to spare.
const MOST_METHODS: usize = 8;

/// What becomes of a peer that cannot protect packets, or not in a way that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionMode {
    /// There is no association.
    Strict,
    /// The association goes without protection. An attacker on the way can bring that about.
    Loose,
}

/// Which roles an endpoint can have in the key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyManagementRoles {
    /// Client only: for endpoints that open associations.
    Client,
    /// Server only: for endpoints that accept them.
    Server,
    /// Either, for peers that may both open one at the same time.
    Either,
}

/// How packets are to be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// What becomes of a peer that does not do it.
    pub mode: ProtectionMode,
    /// The roles to offer.
    pub roles: KeyManagementRoles,
    /// The methods to offer, the preferred first; the first eight count.
    pub methods: Vec<KeyManagementMethod>,
    /// Whether keys are kept for a restart of either side, if the peer does so too.
    pub restart: bool,
}

/// The part that an endpoint has in the key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyManagementRole {
    /// It begins.
    Client,
    /// It answers.
    Server,
}

/// The parameter of one side as it was sent, header included and padding not.
pub(crate) type ParameterBytes = ArrayVec<u8, LONGEST_PARAMETER>;

/// The parameters of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParameterPair {
    pub(crate) local: ParameterBytes,
    pub(crate) peer: ParameterBytes,
}

/// What both sides have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    role: KeyManagementRole,
    method: KeyManagementMethod,
    restart: bool,
    parameters: ParameterPair,
}

impl Agreement {
    /// Our role.
    pub const fn role(&self) -> KeyManagementRole {
        self.role
    }

    /// How keys are agreed on.
    pub const fn method(&self) -> KeyManagementMethod {
        self.method
    }

    /// Whether both sides keep keys for a restart (bit R of both parameters).
    pub const fn restart(&self) -> bool {
        self.restart
    }

    /// Returns `true` if both sides confirm under protection what they have learnt in the clear.
    pub fn confirms(&self) -> bool {
        self.method == KeyManagementMethod::TLS_CONFIRMED
    }

    /// Our parameter and then the peer's, as they were sent: keys are derived from both, so that nobody can have changed them.
    pub fn parameters(&self) -> (&[u8], &[u8]) {
        (&self.parameters.local, &self.parameters.peer)
    }
}

/// Why there is no agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The peer sent no parameter, or none that can be read.
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
            Self::Missing => "the peer does not protect its packets, and this side takes no others",
            Self::NoCommonMethod => "the peer has no key management in common with this side",
            Self::Roles => "the peer's roles in the key management do not go with those of this side",
            Self::TieBreaker => "both sides drew the same tie breaker; try again",
        }
    }

    /// What a peer means that refuses our INIT with this cause.
    pub(crate) fn told(cause: Cause<'_>) -> Option<&'static str> {
        match cause {
            Cause::MissingDtlsSupport => {
                Some("the peer takes only protected packets, and this side does not protect its own")
            }
            Cause::NoCommonKeyManagement => Some(Self::NoCommonMethod.text()),
            Cause::IncompatibleKeyManagementRoles => Some(Self::Roles.text()),
            Cause::TieBreakerCollision => Some(Self::TieBreaker.text()),
            _ => None,
        }
    }
}

impl Protection {
    /// Methods to offer where keys come from TLS: the one that confirms what both sides have learnt in the clear, and the draft's.
    pub fn tls_methods() -> Vec<KeyManagementMethod> {
        vec![KeyManagementMethod::TLS_CONFIRMED, KeyManagementMethod::TLS]
    }

    /// Our parameter.
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

/// A parameter of the peer's, to keep: `None` if it cannot be read, or is longer than any that is taken.
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

/// What follows from both parameters; both sides come to the same.
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

    /// What both sides come to.
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
    fn two_clients_do_not_agree() {
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
    fn nothing_offered_is_no_parameter() {
        let nothing = offer(Client, &[], 1);
        assert_eq!(both(nothing, offer(Server, &[TLS], 1)), [Err(Mismatch::Missing); 2]);
    }

    proptest! {
        #[test]
        fn both_sides_come_to_the_same(a in any::<(u32, u8, [u8; 3])>(), b in any::<(u32, u8, [u8; 3])>()) {
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
