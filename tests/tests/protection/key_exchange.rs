//! Exchanges by TLS without an association.

use anabranch_core::protection::{RecordCipher, SendContext};
use anabranch_keying::{
    Credentials, KeyExchange, KeyExchanges, KeyingError, ParameterBinding, Part, Progress, ScriptedExchanges,
    TlsExchanges, TlsProblem,
};
use anabranch_tests::credentials::{asks_nobody, credentials, identity};

type Exchange = Box<dyn KeyExchange>;

/// Both sides of a handshake, and its result at each.
struct Handshake {
    client: (Exchange, Result<Progress, KeyingError>),
    server: (Exchange, Result<Progress, KeyingError>),
}

/// Exchanges at most ten messages, until a side has none to send. `change` may change them in transit.
fn handshake(client: Credentials, server: Credentials, mut change: impl FnMut(&mut Vec<u8>)) -> Handshake {
    let mut client = TlsExchanges::new(client).start(Part::Client).expect("a client");
    let mut server = TlsExchanges::new(server).start(Part::Server).expect("a server");
    let (mut at_client, mut at_server) = (Ok(Progress::Running), Ok(Progress::Running));
    let mut message = Vec::new();
    client.begin(&mut message).expect("a ClientHello");
    for turn in 0..10 {
        if message.is_empty() {
            break;
        }
        change(&mut message);
        let mut answer = Vec::new();
        let (side, outcome) =
            if turn % 2 == 0 { (&mut server, &mut at_server) } else { (&mut client, &mut at_client) };
        *outcome = side.receive(&message, &mut answer);
        message = answer;
    }
    Handshake { client: (client, at_client), server: (server, at_server) }
}

fn done() -> Handshake {
    let both = handshake(credentials(1, &[2]), credentials(2, &[1]), |_| {});
    assert_eq!((both.client.1, both.server.1), (Ok(Progress::Done), Ok(Progress::Done)));
    both
}

fn binding(client: &[u8], server: &[u8]) -> ParameterBinding {
    ParameterBinding::new(client, server)
}

/// Returns a record of a cipher, which distinguishes it from others.
fn sealed(cipher: Box<dyn RecordCipher>) -> ([u8; 4], [u8; 16], [u8; 2]) {
    let (mut content, mut tag) = (*b"data", [0; 16]);
    cipher.seal(0, b"header", &mut content, &mut tag).expect("it seals");
    let mask = cipher.mask(&[7; 16]);
    assert_eq!(SendContext::new(3, cipher).tag_bytes(), 16);
    (content, tag, mask)
}

#[test]
fn both_sides_have_the_same_keys_and_each_direction_its_own() {
    let both = done();
    let parameters = binding(b"client's", b"server's");
    let cipher =
        |exchange: &Exchange, direction| sealed(exchange.cipher(direction, &parameters).expect("keys"));
    let (client, server) = (&both.client.0, &both.server.0);
    let up = cipher(client, Part::Client.outward());
    assert_eq!(up, cipher(server, Part::Server.inward()));
    let down = cipher(client, Part::Client.inward());
    assert_eq!(down, cipher(server, Part::Server.outward()));
    assert_ne!(up, down);
}

#[test]
fn a_side_that_saw_other_parameters_has_other_keys() {
    let both = done();
    let direction = Part::Client.outward();
    let cipher = |exchange: &Exchange, binding| sealed(exchange.cipher(direction, &binding).expect("keys"));
    let ours = cipher(&both.client.0, binding(b"client's", b"server's"));
    for other in [binding(b"client's", b"serVer's"), binding(b"Client's", b"server's"), binding(b"", b"")] {
        assert_ne!(ours, cipher(&both.server.0, other));
    }
}

#[test]
fn each_handshake_has_keys_of_its_own() {
    let parameters = binding(b"client's", b"server's");
    let cipher =
        |both: Handshake| sealed(both.client.0.cipher(Part::Client.outward(), &parameters).expect("keys"));
    assert_ne!(cipher(done()), cipher(done()));
}

#[test]
fn both_sides_know_the_identity_of_the_peer() {
    let both = done();
    assert_eq!(both.client.0.identity(), Some(&identity(2)));
    assert_eq!(both.server.0.identity(), Some(&identity(1)));
    assert!(identity(1).is_same(&identity(1)) && !identity(1).is_same(&identity(2)));
}

#[test]
fn a_key_that_is_not_accepted_is_refused_by_either_side() {
    let refused = |alert| Err(KeyingError::Tls(TlsProblem::Identity(alert)));
    let told = |alert| Err(KeyingError::Tls(TlsProblem::PeerAlert(alert)));
    let server_refused = handshake(credentials(1, &[9]), credentials(2, &[1]), |_| {});
    assert_eq!((server_refused.client.1, server_refused.server.1), (refused(49), told(49)));
    let client_refused = handshake(credentials(1, &[2]), credentials(2, &[9]), |_| {});
    // The client had finished, and learns of it afterwards. By then the server has proved its identity.
    let denied = Err(KeyingError::Tls(TlsProblem::Refused(49)));
    assert_eq!((client_refused.client.1, client_refused.server.1), (denied, refused(49)));
}

#[test]
fn server_without_client_authentication_has_no_keys() {
    let both = handshake(credentials(1, &[2]), asks_nobody(2, &[1]), |_| {});
    assert_eq!(both.server.1, Err(KeyingError::Tls(TlsProblem::Incompatible)));
    let keys = both.server.0.cipher(Part::Server.outward(), &binding(b"", b""));
    assert_eq!(keys.err(), Some(KeyingError::Tls(TlsProblem::Internal)));
}

#[test]
fn a_changed_byte_fails_the_handshake() {
    // Unused values in the headers of records and extensions are part of the transcript too.
    for at in (0..200).step_by(7) {
        let both = handshake(credentials(1, &[2]), credentials(2, &[1]), |message| {
            if let Some(byte) = message.get_mut(at) {
                *byte ^= 0x55;
            }
        });
        assert!(both.server.1 != Ok(Progress::Done), "byte {at}");
    }
}

#[test]
fn records_have_to_be_complete() {
    let mut server = TlsExchanges::new(credentials(2, &[1])).start(Part::Server).expect("a server");
    for bytes in [&[22][..], &[22, 3, 1, 0, 1], &[22, 3, 1, 0, 1, 0, 22]] {
        assert_eq!(server.receive(bytes, &mut Vec::new()), Err(KeyingError::Malformed), "{bytes:?}");
    }
}

#[test]
fn a_handshake_message_without_end_is_not_kept() {
    let mut server = TlsExchanges::new(credentials(2, &[1])).start(Part::Server).expect("a server");
    // A ClientHello of 16 MiB in records of 16 KiB.
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0xFF, 0xFF, 0xFF];
    record.resize(5 + 0x4000, 0);
    let failed = (0..10).map(|_| server.receive(&record, &mut Vec::new())).find_map(Result::err);
    assert!(
        matches!(failed, Some(KeyingError::TooLong | KeyingError::Tls(TlsProblem::Misbehaved))),
        "{failed:?}"
    );
}

#[test]
fn no_exchange_shows_a_key() {
    let both = done();
    let parameters = binding(b"", b"");
    let shown =
        format!("{:?} {:?}", both.client.0, both.client.0.cipher(Part::Client.outward(), &parameters));
    assert_eq!(shown, "TlsExchange { done: true, .. } Ok(SuiteCipher { suite: Aes256Gcm, .. })");
}

/// Returns the lengths of a handshake's messages in the order of sending.
fn lengths(make: impl Fn(u8, u8) -> Box<dyn KeyExchanges>) -> Vec<usize> {
    let mut sides = [
        make(1, 2).start(Part::Client).expect("a client"),
        make(2, 1).start(Part::Server).expect("a server"),
    ];
    let (mut message, mut lengths) = (Vec::new(), Vec::new());
    sides[0].begin(&mut message).expect("a first message");
    while !message.is_empty() {
        lengths.push(message.len());
        let mut answer = Vec::new();
        sides[lengths.len() % 2].receive(&message, &mut answer).expect("the handshake continues");
        message = answer;
    }
    lengths
}

#[test]
fn simulated_handshake_is_as_long_as_that_of_tls() {
    let tls = lengths(|own, peer| Box::new(TlsExchanges::new(credentials(own, &[peer]))));
    assert_eq!(lengths(|_, _| Box::new(ScriptedExchanges)), tls);
}
