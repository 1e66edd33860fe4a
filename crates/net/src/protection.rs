//! How packets of associations are protected.

use anabranch_core::AssociationConfig;
use anabranch_core::protection::{KeyManagementRoles, ProtectionMode};
use anabranch_keying::{Credentials, KeyPolicy};

/// How packets are protected.
///
/// There is no default: protected sides have to say who they are, which cannot be made up, and to go without is a decision.
#[derive(Clone, Debug)]
pub enum Protection {
    /// Not at all: everyone on the way can read and change them.
    Insecure,
    /// By the DTLS chunk, with keys that TLS 1.3 agrees on. A peer that does not do that is refused.
    Dtls(DtlsProtection),
}

/// What protection by the DTLS chunk needs.
#[derive(Clone, Debug)]
pub struct DtlsProtection {
    /// Who this side is, and whom it accepts.
    pub credentials: Credentials,
    /// When keys change.
    pub policy: KeyPolicy,
    /// Whether keys are kept for a restart of either side, if the peer does so too. A side that has stored its own
    /// ([`Association::restart_keys`](crate::Association::restart_keys)) can go on after a crash
    /// ([`Host::restart`](crate::Host::restart)); whoever steals them from there can end the association with them.
    pub restart: bool,
}

impl Protection {
    /// By the DTLS chunk under these credentials, with the default times and limits of keys.
    pub fn dtls(credentials: Credentials) -> Self {
        Self::Dtls(DtlsProtection { credentials, policy: KeyPolicy::default(), restart: false })
    }

    /// The same, and keys are [kept for a restart](DtlsProtection::restart).
    #[must_use]
    pub fn with_restart(self) -> Self {
        match self {
            Self::Insecure => Self::Insecure,
            Self::Dtls(dtls) => Self::Dtls(DtlsProtection { restart: true, ..dtls }),
        }
    }

    pub(crate) fn into_dtls(self) -> Option<DtlsProtection> {
        match self {
            Self::Insecure => None,
            Self::Dtls(dtls) => Some(dtls),
        }
    }
}

/// What an association of this role is configured with; `Insecure` leaves alone what the configuration says. Methods of the key
/// management that the configuration names are the ones that are offered.
pub(crate) fn configure(
    config: &mut AssociationConfig,
    dtls: Option<&DtlsProtection>,
    roles: KeyManagementRoles,
) {
    if let Some(dtls) = dtls {
        let named = config.protection.take().map(|wanted| wanted.methods);
        config.protection = Some(anabranch_core::protection::Protection {
            mode: ProtectionMode::Strict,
            roles,
            methods: named.unwrap_or_else(anabranch_core::protection::Protection::tls_methods),
            restart: dtls.restart,
        });
    }
}
