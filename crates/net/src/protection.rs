//! How packets of associations are protected.

use anabranch_core::AssociationConfig;
use anabranch_core::protection::{KeyManagementMethod, KeyManagementRoles, ProtectionMode};
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
}

impl Protection {
    /// By the DTLS chunk under these credentials, with the default times and limits of keys.
    pub fn dtls(credentials: Credentials) -> Self {
        Self::Dtls(DtlsProtection { credentials, policy: KeyPolicy::default() })
    }

    pub(crate) fn into_dtls(self) -> Option<DtlsProtection> {
        match self {
            Self::Insecure => None,
            Self::Dtls(dtls) => Some(dtls),
        }
    }
}

/// What an association of this role is configured with; `Insecure` leaves alone what the configuration says.
pub(crate) fn configure(
    config: &mut AssociationConfig,
    dtls: Option<&DtlsProtection>,
    roles: KeyManagementRoles,
) {
    if dtls.is_some() {
        config.protection = Some(anabranch_core::protection::Protection {
            mode: ProtectionMode::Strict,
            roles,
            methods: vec![KeyManagementMethod::TLS],
        });
    }
}
