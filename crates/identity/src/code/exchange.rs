//! How both sides prove to each other that they know a code, without saying it.
//!
//! SPAKE2 (Abdalla and Pointcheval 2005, in the group of Ed25519) turns the code into a key that only somebody who knows the code
//! shares. Each side then sends a MAC with that key. Everything happens inside a fresh TLS connection, and the exporter of that
//! connection (RFC 9266) enters both the key and the MACs: somebody in the middle has two connections with two exporters, so
//! what is relayed from one to the other proves nothing.
//!
//! ```text
//! initiator                               responder
//!   version, SPAKE2 share          ──▶
//!                                  ◀──    version, SPAKE2 share
//!   version, MAC of the initiator  ──▶    the code is spent from here on
//!                                  ◀──    version, MAC of the responder
//! ```
//!
//! The initiator's MAC comes first, and a responder that does not accept it says nothing more, so one exchange tests one guess.
//! Before that MAC nobody has learnt anything, and nothing is spent.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

use super::OneTimeCode;

/// The label under which TLS exports the binding, with an empty context (RFC 9266 section 4.2).
pub const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";

/// The version of this exchange, in front of each message.
const VERSION: u8 = 1;

/// Bytes of a share: a point, and in front of it which side it is from.
const SHARE_LEN: usize = 33;

const MAC_LEN: usize = 32;

/// Bytes of the longest message.
pub const LONGEST_MESSAGE: usize = 1 + SHARE_LEN;

/// What an exchange came to, if not to an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// A message has another form or version.
    #[error(
        "the peer does not answer as this version expects; use the same version of anabranch on both sides"
    )]
    Malformed,
    /// The other side knows another code, or somebody is in the middle.
    #[error(
        "the code is wrong, or somebody else answers in the peer's place; a code is good for one attempt, so ask for a new one"
    )]
    Wrong,
    /// The code was used before, by somebody who knew it or by somebody who guessed.
    #[error("the code was used already, so it is good for nothing any more; make a new one")]
    Spent,
}

/// What TLS exports for one connection: 32 bytes that both of its ends have, and no other connection.
#[derive(Clone)]
pub struct ChannelBinding(Zeroizing<[u8; 32]>);

impl ChannelBinding {
    /// From the exporter, under [`BINDING_LABEL`].
    pub fn new(exported: [u8; 32]) -> Self {
        ChannelBinding(Zeroizing::new(exported))
    }

    fn identities(&self) -> [Identity; 2] {
        [b"initiator", b"responder"].map(|side| Identity::new(&[&side[..], &self.0[..]].concat()))
    }
}

impl fmt::Debug for ChannelBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelBinding(..)")
    }
}

/// Which side a MAC is from. With one key for both, each side could send the other's MAC back.
#[derive(Clone, Copy)]
enum Side {
    Initiator,
    Responder,
}

/// What both sides compute from the key: a MAC of each over all that was said.
struct Proof {
    keys: [hmac::Key; 2],
    said: Vec<u8>,
}

impl Proof {
    fn new(shared: &[u8], binding: &ChannelBinding, shares: [&[u8]; 2]) -> Self {
        let secret = Salt::new(HKDF_SHA256, &binding.0[..]).extract(shared);
        let key = |side: &'static [u8]| {
            let info = [b"anabranch one-time code 1, ".as_slice(), side];
            let expanded = secret.expand(&info, HMAC_SHA256);
            hmac::Key::from(expanded.expect("HKDF-SHA256 gives up to 8,160 bytes"))
        };
        Proof {
            keys: [key(b"initiator"), key(b"responder")],
            said: [&binding.0[..], shares[0], shares[1]].concat(),
        }
    }

    fn key(&self, side: Side) -> &hmac::Key {
        match side {
            Side::Initiator => &self.keys[0],
            Side::Responder => &self.keys[1],
        }
    }

    fn message(&self, side: Side) -> Vec<u8> {
        with_version(hmac::sign(self.key(side), &self.said).as_ref())
    }

    /// Takes the same time wherever a MAC differs.
    fn verify(&self, side: Side, message: &[u8]) -> Result<(), CodeError> {
        let mac = body(message, MAC_LEN)?;
        hmac::verify(self.key(side), &self.said, mac).map_err(|_| CodeError::Wrong)
    }
}

fn with_version(body: &[u8]) -> Vec<u8> {
    [&[VERSION], body].concat()
}

fn body(message: &[u8], len: usize) -> Result<&[u8], CodeError> {
    match message.split_first() {
        Some((&VERSION, body)) if body.len() == len => Ok(body),
        _ => Err(CodeError::Malformed),
    }
}

fn finish(state: Spake2<Ed25519Group>, share: &[u8]) -> Result<Zeroizing<Vec<u8>>, CodeError> {
    state.finish(share).map(Zeroizing::new).map_err(|_| CodeError::Malformed)
}

/// The side that was told the code, after its first message.
pub struct Initiator {
    state: Spake2<Ed25519Group>,
    share: Vec<u8>,
    binding: ChannelBinding,
}

impl Initiator {
    /// Begins, with the message to send first.
    pub fn start(code: &OneTimeCode, binding: ChannelBinding) -> (Self, Vec<u8>) {
        let [own, peer] = binding.identities();
        let password = Password::new(code.password().as_bytes());
        let (state, share) = Spake2::<Ed25519Group>::start_a(&password, &own, &peer);
        let message = with_version(&share);
        (Initiator { state, share, binding }, message)
    }

    /// Takes the answer, and gives the message that proves the code.
    ///
    /// # Errors
    /// [`CodeError::Malformed`].
    pub fn prove(self, answer: &[u8]) -> Result<(Waiting, Vec<u8>), CodeError> {
        let share = body(answer, SHARE_LEN)?;
        let shared = finish(self.state, share)?;
        let proof = Proof::new(&shared, &self.binding, [&self.share, share]);
        let message = proof.message(Side::Initiator);
        Ok((Waiting { proof }, message))
    }
}

/// The side that was told the code, when it has proved it.
pub struct Waiting {
    proof: Proof,
}

impl Waiting {
    /// Takes the other side's proof.
    ///
    /// # Errors
    /// [`CodeError::Wrong`] if the other side does not know the code: nothing it says may be used.
    pub fn verify(self, message: &[u8]) -> Result<(), CodeError> {
        self.proof.verify(Side::Responder, message)
    }
}

/// A code that was made here, until somebody has tried it. Several may begin an exchange at the same time, and one may end it.
#[derive(Debug)]
pub struct Offer {
    code: Mutex<Option<OneTimeCode>>,
}

impl Offer {
    /// For one attempt with this code.
    pub fn new(code: OneTimeCode) -> Self {
        Offer { code: Mutex::new(Some(code)) }
    }

    /// Whether nobody has tried it.
    pub fn is_open(&self) -> bool {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the first message of an initiator, and gives the answer.
    ///
    /// # Errors
    /// [`CodeError::Malformed`], and [`CodeError::Spent`].
    pub fn answer(&self, message: &[u8], binding: &ChannelBinding) -> Result<(Answered, Vec<u8>), CodeError> {
        let share = body(message, SHARE_LEN)?;
        let [peer, own] = binding.identities();
        let guard = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let password = Password::new(guard.as_ref().ok_or(CodeError::Spent)?.password().as_bytes());
        drop(guard);
        let (state, own_share) = Spake2::<Ed25519Group>::start_b(&password, &peer, &own);
        let shared = finish(state, share)?;
        let proof = Proof::new(&shared, binding, [share, &own_share]);
        Ok((Answered { proof }, with_version(&own_share)))
    }

    /// Takes the proof of an initiator. The code is spent by that, whether the proof is right or wrong.
    ///
    /// # Errors
    /// [`CodeError::Wrong`], and [`CodeError::Spent`] if somebody else was quicker.
    pub fn verify(&self, answered: Answered, message: &[u8]) -> Result<Accepted, CodeError> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(CodeError::Spent)?;
        answered.proof.verify(Side::Initiator, message)?;
        Ok(Accepted { message: answered.proof.message(Side::Responder) })
    }
}

/// An initiator that has begun.
pub struct Answered {
    proof: Proof,
}

/// An initiator that has proved the code.
#[derive(Debug)]
pub struct Accepted {
    /// What is to be sent to it.
    pub message: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(text: &str) -> OneTimeCode {
        text.parse().expect("a code")
    }

    fn binding(byte: u8) -> ChannelBinding {
        ChannelBinding::new([byte; 32])
    }

    /// An exchange as far as it goes: what the responder says to it, and what the initiator.
    fn exchange(
        offer: &Offer,
        typed: &str,
        bindings: [u8; 2],
    ) -> (Result<(), CodeError>, Option<Result<(), CodeError>>) {
        let (initiator, first) = Initiator::start(&code(typed), binding(bindings[0]));
        let (answered, answer) = match offer.answer(&first, &binding(bindings[1])) {
            Ok(both) => both,
            Err(error) => return (Err(error), None),
        };
        let (waiting, proof) = initiator.prove(&answer).expect("an answer");
        match offer.verify(answered, &proof) {
            Ok(accepted) => (Ok(()), Some(waiting.verify(&accepted.message))),
            Err(error) => (Err(error), None),
        }
    }

    #[test]
    fn both_sides_agree_on_the_same_code_and_only_once() {
        let offer = Offer::new(code("7-apple-river"));
        assert!(offer.is_open());
        assert_eq!(exchange(&offer, "7-apple-river", [1, 1]), (Ok(()), Some(Ok(()))));
        assert!(!offer.is_open());
        assert_eq!(exchange(&offer, "7-apple-river", [1, 1]), (Err(CodeError::Spent), None));
    }

    #[test]
    fn one_wrong_guess_spends_the_code() {
        let offer = Offer::new(code("7-apple-river"));
        assert_eq!(exchange(&offer, "8-apple-river", [1, 1]), (Err(CodeError::Wrong), None));
        assert_eq!(exchange(&offer, "7-apple-river", [1, 1]), (Err(CodeError::Spent), None));
    }

    #[test]
    fn guesses_at_the_same_time_are_one_guess() {
        let offer = Offer::new(code("7-apple-river"));
        let begin = |typed| {
            let (initiator, first) = Initiator::start(&code(typed), binding(1));
            let (answered, answer) = offer.answer(&first, &binding(1)).expect("nobody has tried");
            (answered, initiator.prove(&answer).expect("an answer").1)
        };
        let (wrong, wrong_proof) = begin("8-apple-river");
        let (right, right_proof) = begin("7-apple-river");
        assert_eq!(offer.verify(wrong, &wrong_proof).expect_err("wrong"), CodeError::Wrong);
        assert_eq!(offer.verify(right, &right_proof).expect_err("too late"), CodeError::Spent);
    }

    #[test]
    fn somebody_in_the_middle_of_two_connections_proves_nothing() {
        let offer = Offer::new(code("7-apple-river"));
        assert_eq!(exchange(&offer, "7-apple-river", [1, 2]), (Err(CodeError::Wrong), None));
    }

    #[test]
    fn a_proof_sent_back_proves_nothing() {
        let offer = Offer::new(code("7-apple-river"));
        let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
        let (_, answer) = offer.answer(&first, &binding(1)).expect("open");
        let (waiting, proof) = initiator.prove(&answer).expect("an answer");
        assert_eq!(waiting.verify(&proof), Err(CodeError::Wrong));
        // Nor does a share.
        let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
        assert!(matches!(initiator.prove(&first), Err(CodeError::Malformed)));
    }

    #[test]
    fn secrets_are_not_shown() {
        let offer = Offer::new(code("7-apple-river"));
        let shown = format!("{offer:?} {:?}", binding(0xAB));
        assert!(!shown.contains("apple") && !shown.contains("171"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_message_is_refused_or_answered(message in prop::collection::vec(any::<u8>(), 0..40), with_version in any::<bool>()) {
            let mut message = message;
            if with_version && !message.is_empty() {
                message[0] = VERSION;
            }
            let offer = Offer::new(code("7-apple-river"));
            prop_assert!(offer.answer(&message, &binding(1)).is_err() || message.len() == LONGEST_MESSAGE);
            let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
            let _ = initiator.prove(&message);
            let (answered, _) = offer.answer(&first, &binding(1)).expect("open");
            prop_assert!(offer.verify(answered, &message).is_err());
        }
    }
}
