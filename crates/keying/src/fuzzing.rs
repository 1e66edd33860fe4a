//! The body of a fuzz target: any bytes, as a message of the key management from somebody who has no keys.

use crate::credentials::Credentials;
use crate::exchange::{Direction, KeyExchanges, ParameterBinding, Part, Progress};
use crate::message::{Content, Message};
use crate::scripted::ScriptedExchanges;
use crate::tls::TlsExchanges;

/// Reads `bytes` as a message, and hands its records to both sides of an exchange under these credentials.
///
/// # Panics
/// If what is read is not what was written, or the exchange takes it for the end of a handshake.
pub fn fuzz_message(credentials: &Credentials, bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    assert_eq!(message.to_bytes(), bytes, "a message is written as it was read");
    let Content::Records(records) = message.content else { return };
    // The simulator's exchanges authenticate nobody: any may end.
    for part in [Part::Client, Part::Server] {
        let mut scripted = ScriptedExchanges.start(part).expect("it takes both parts");
        let _ = scripted.receive(records, &mut Vec::new());
    }
    let exchanges = TlsExchanges::new(credentials.clone());
    let _ = exchanges.begins(records);
    for part in [Part::Client, Part::Server] {
        let mut exchange = exchanges.start(part).expect("it takes both parts");
        let mut out = Vec::new();
        if part == Part::Client {
            exchange.begin(&mut out).expect("a ClientHello");
        }
        let progress = exchange.receive(records, &mut out);
        assert!(!matches!(progress, Ok(Progress::Done)), "a handshake in one message");
        assert!(exchange.identity().is_none(), "an identity without a proof");
        let binding = ParameterBinding::new(&[], &[]);
        assert!(exchange.cipher(Direction::FromClient, &binding).is_err(), "keys without a handshake");
    }
}
