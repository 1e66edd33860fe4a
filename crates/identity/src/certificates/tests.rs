use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa,
    KeyPair as CertificateKey,
};

use super::*;
use crate::raw_key::tests::handshake;
use crate::testing::{set_mode, write};

/// Certification authority, and a folder with the certificates that it issued.
struct Authority {
    issuer: CertifiedIssuer<'static, CertificateKey>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, CertificateKey::generate().expect("a key"))
            .expect("an authority");
        let folder = tempfile::tempdir().expect("a folder");
        write(&folder.path().join("ca.pem"), &issuer.pem());
        Authority { issuer, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Issues a certificate for this name and returns its files.
    fn issue(&self, name: &str) -> [PathBuf; 2] {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = CertificateKey::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("issued");
        let paths = [self.path(&format!("{name}.pem")), self.path(&format!("{name}.key"))];
        write(&paths[0], &certificate.pem());
        write(&paths[1], &key.serialize_pem());
        paths
    }

    fn certificates(&self, name: &str) -> Certificates {
        let [chain, key] = self.issue(name);
        Certificates::load(&self.path("ca.pem"), &chain, &key).expect("read")
    }
}

fn host(name: &str) -> HostName {
    HostName::new(name, 9899).expect("a host")
}

#[test]
fn sides_of_one_authority_accept_each_other_in_both_roles() {
    let authority = Authority::new();
    let (client, server) = (authority.certificates("client.test"), authority.certificates("server.test"));
    let [client, server] =
        [client.to_connect(&host("server.test")), server.to_listen()].map(|made| made.expect("credentials"));
    handshake(&client, &server, "server.test").expect("agreed");
    // The listening endpoint requests new keys.
    handshake(&server, &client, "peer.invalid").expect("agreed");
}

#[test]
fn a_server_with_a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let client = authority.certificates("client.test").to_connect(&host("server.test")).expect("credentials");
    let server = authority.certificates("other.test").to_listen().expect("credentials");
    assert!(matches!(
        handshake(&client, &server, "server.test").expect_err("another name"),
        Error::InvalidCertificate(rustls::CertificateError::NotValidForNameContext { .. })
    ));
}

#[test]
fn a_certificate_of_another_authority_is_refused_in_either_role() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let [client, server] = [&ours, &theirs].map(|authority| authority.certificates("server.test"));
    let client = client.to_connect(&host("server.test")).expect("credentials");
    let server = server.to_listen().expect("credentials");
    assert!(handshake(&client, &server, "server.test").is_err());
    let server = ours.certificates("server.test").to_listen().expect("credentials");
    let stranger = theirs.certificates("client.test").to_listen().expect("credentials");
    assert!(handshake(&stranger, &server, "server.test").is_err());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let [chain, key] = authority.issue("a.test");
    let [_, other_key] = authority.issue("b.test");
    let ca = authority.path("ca.pem");
    let missing = authority.path("missing.pem");
    let error = |ca: &Path, chain: &Path, key: &Path| {
        Certificates::load(ca, chain, key).expect_err("refused").to_string()
    };
    assert!(error(&missing, &chain, &key).contains("missing.pem: no such file"));
    assert!(error(&ca, &key, &key).contains("a.test.key: no certificate in PEM"));
    assert!(error(&ca, &chain, &chain).contains("a.test.pem: no private key in PEM"));
    assert!(error(&ca, &chain, &other_key).contains("b.test.key: does not match the certificate"));
    #[cfg(unix)]
    {
        set_mode(&key, 0o644);
        assert!(error(&ca, &chain, &key).contains("chmod 600"));
    }
}
