use rustls::{ClientConnection, Connection, ServerConnection};

use super::*;
use crate::key_set::KeySet;

/// Runs a handshake of both configurations. Returns both connections or the first error.
pub(crate) fn handshake(
    client: &Credentials,
    server: &Credentials,
    name: &str,
) -> Result<[Connection; 2], Error> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut ends = [
        Connection::from(ClientConnection::new(Arc::clone(client.client()), name)?),
        Connection::from(ServerConnection::new(Arc::clone(server.server()))?),
    ];
    for _ in 0..8 {
        for at in [0, 1] {
            let mut bytes = Vec::new();
            while ends[at].wants_write() {
                ends[at].write_tls(&mut bytes).expect("room");
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                ends[1 - at].read_tls(&mut rest).expect("bytes");
                ends[1 - at].process_new_packets()?;
            }
        }
    }
    assert!(ends.iter().all(|end| !end.is_handshaking()));
    Ok(ends)
}

fn pair() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn shown(end: &Connection) -> PublicKey {
    let sent = end.peer_certificates().expect("a key");
    assert_eq!(sent.len(), 1);
    PublicKey::from_spki(&sent[0]).expect("an Ed25519 key")
}

#[test]
fn each_side_sees_the_others_key() {
    let (one, two) = (pair(), pair());
    let [client, server] = [&one, &two].map(|pair| pair.credentials(Admission::Anyone).expect("credentials"));
    let [client, server] = handshake(&client, &server, "peer.invalid").expect("agreed");
    assert_eq!((shown(&client), shown(&server)), (two.public(), one.public()));
    assert_eq!(client.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
}

#[test]
fn a_key_that_is_not_admitted_is_refused_in_either_role() {
    let (one, two) = (pair(), pair());
    let strangers = Arc::new(KeySet::default());
    let open = |pair: &KeyPair| pair.credentials(Admission::Anyone).expect("credentials");
    let closed =
        |pair: &KeyPair| pair.credentials(Admission::Only(Arc::clone(&strangers))).expect("credentials");
    let refused = Error::from(CertificateError::ApplicationVerificationFailure);
    assert_eq!(handshake(&open(&one), &closed(&two), "x").expect_err("a stranger"), refused);
    assert_eq!(handshake(&closed(&one), &open(&two), "x").expect_err("a stranger"), refused);
    // Each handshake reads the current set.
    let server = closed(&two);
    strangers.replace([one.public()]);
    handshake(&open(&one), &server, "x").expect("known by now");
    strangers.replace([]);
    assert!(strangers.is_empty() && handshake(&open(&one), &server, "x").is_err());
}

#[test]
fn a_client_without_a_key_is_refused() {
    let two = pair().credentials(Admission::Anyone).expect("credentials");
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(RawKeyVerifier { provider: Arc::clone(&provider), admission: Admission::Anyone });
    let nameless = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let nameless = Credentials::new(Arc::new(nameless), Arc::clone(two.server()), IdentityForm::RawPublicKey);
    assert!(handshake(&nameless, &two, "x").is_err());
}

#[test]
fn a_key_whose_private_half_the_peer_does_not_have_is_refused() {
    let (one, two, victim) = (pair(), pair(), pair());
    let client = one.credentials(Admission::Anyone).expect("credentials");
    // The peer presents the victim's key and signs with its own.
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(RawKeyVerifier { provider: Arc::clone(&provider), admission: Admission::Anyone });
    let certified = CertifiedKey::new(vec![CertificateDer::from(victim.public().to_spki())], two.signing());
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified))));
    let liar = Credentials::new(Arc::clone(client.client()), Arc::new(server), IdentityForm::RawPublicKey);
    assert_eq!(
        handshake(&client, &liar, "x").expect_err("a lie"),
        Error::from(CertificateError::BadSignature)
    );
}

#[test]
fn debug_output_of_verifier_has_admitted_keys_only() {
    let verifier =
        RawKeyVerifier { provider: Arc::new(provider::default_provider()), admission: Admission::Anyone };
    assert_eq!(format!("{verifier:?}"), "RawKeyVerifier { admission: Anyone, .. }");
}
