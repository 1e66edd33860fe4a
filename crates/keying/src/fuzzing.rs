//! Fuzz target: any bytes, as a key management message from a peer without keys.

use crate::credentials::Credentials;
use crate::exchange::{Direction, KeyExchanges, ParameterBinding, Part, Progress};
use crate::message::{Content, Message};
use crate::scripted::ScriptedExchanges;
use crate::tls::TlsExchanges;

/// Parses `bytes` as a message, and passes its records to both roles of an exchange with these credentials.
///
/// # Panics
/// Panics if the encoded message differs from the input, or if the exchange accepts it as the end of a handshake.
pub fn fuzz_message(credentials: &Credentials, bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    assert_eq!(message.to_bytes(), bytes, "a message is written as it was read");
    let Content::Records(records) = message.content else { return };
    // The simulator's exchanges do not authenticate, so they may succeed.
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
