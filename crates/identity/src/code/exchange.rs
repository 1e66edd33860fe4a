//! Exchange in which two endpoints prove knowledge of a code without revealing it.
//!
//! SPAKE2 (Abdalla and Pointcheval 2005, in the group of Ed25519) derives a key from the code that only an endpoint with the same
//! code shares. Each endpoint then sends a MAC with that key. The exchange runs inside a new TLS connection, whose exporter (RFC
//! 9266) enters both the key and the MACs. A man in the middle has two connections with different exporters, so messages relayed
//! from one to the other prove nothing.
//!
//! ```text
//! initiator                               responder
//!   version, SPAKE2 share          ──▶
//!                                  ◀──    version, SPAKE2 share
//!   version, MAC of the initiator  ──▶    the code is pinned to the initiator's TLS key, or spent by a wrong MAC
//!                                  ◀──    version, MAC of the responder
//! ```
//!
//! The initiator sends its MAC first, and a responder that rejects it sends none, so one exchange tests one guess. Before that MAC
//! neither endpoint has learnt anything, and the code stays valid.
//!
//! The first accepted proof pins the code to the key that the initiator proved in TLS. The same key may prove the code again after
//! an interruption, or [resume] without it while it remembers the responder's key. Any message of the responder may be a refusal:
//! the version and one byte with the reason.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_keying::crypto::hkdf::{HKDF_SHA256, Salt};
use anabranch_keying::crypto::hmac::{self, HMAC_SHA256};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

use super::OneTimeCode;
use crate::error::IdentityError;
use crate::public_key::PublicKey;

/// Label under which TLS exports the channel binding, with an empty context (RFC 9266 section 4.2).
pub const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";

/// Version of this exchange and of the catalogue that follows it: the first byte of each message. In every version a message of two
/// bytes is a refusal, so each endpoint can read the version of the other.
pub const EXCHANGE_VERSION: u8 = 2;

/// Length of a share in bytes: a byte that identifies the endpoint, and a point.
const SHARE_LEN: usize = 33;

const MAC_LEN: usize = 32;

/// Length of the reason of a refusal, in bytes.
const REASON_LEN: usize = 1;

/// Value in place of a reason that requests or confirms a resumption.
const RESUME: u8 = 255;

/// Maximum length of a message, in bytes.
pub const LONGEST_MESSAGE: usize = 1 + SHARE_LEN;

/// Reason for the failure of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// A message is malformed.
    #[error(
        "the peer sent a message that is not part of an exchange of codes; the code was not used: check host and port, and use the \
         same version of anabranch on both sides"
    )]
    Malformed,
    /// The peer speaks another version of the exchange.
    #[error(
        "the peer speaks version {0} of the exchange of codes and this program version {EXCHANGE_VERSION}; the code was not used: \
         install the same version of anabranch on both sides"
    )]
    Version(u8),
    /// The peer knows another code, or a man in the middle answers.
    #[error(
        "the code is wrong, or another host answers in place of the peer; a wrong code is tried only once, so ask for a new one"
    )]
    Wrong,
    /// A wrong code was tried before.
    #[error("a wrong code was tried before, so the code is no longer valid; ask for a new one")]
    Spent,
    /// Another receiver has proved the code.
    #[error(
        "another receiver has used this code, and it stays valid for that one alone (`recv` with the same keys); ask for a new one"
    )]
    InUse,
    /// The receiver resumes a transfer that this offer did not begin.
    #[error("the sender was started again and does not know this receiver; ask for its new code")]
    Unknown,
}

impl CodeError {
    /// Returns the message that reports this error to an initiator.
    pub fn refusal(self) -> Vec<u8> {
        let reason = match self {
            CodeError::Malformed | CodeError::Version(_) => 0,
            CodeError::Wrong => 1,
            CodeError::Spent => 2,
            CodeError::InUse => 3,
            CodeError::Unknown => 4,
        };
        with_version(&[reason])
    }

    /// Reads a refusal. A message of another version, and an unknown reason, count as malformed.
    fn of_refusal(reason: u8) -> Self {
        match reason {
            1 => CodeError::Wrong,
            2 => CodeError::Spent,
            3 => CodeError::InUse,
            4 => CodeError::Unknown,
            _ => CodeError::Malformed,
        }
    }
}

/// Channel binding of a TLS connection: 32 exported bytes that are unique to the connection and equal at both ends.
#[derive(Clone)]
pub struct ChannelBinding(Zeroizing<[u8; 32]>);

impl ChannelBinding {
    /// Creates the binding from the bytes exported under [`BINDING_LABEL`].
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

/// Sender of a MAC. Both senders have different keys, because with a single key each endpoint could reflect the other's MAC.
#[derive(Clone, Copy)]
enum Side {
    Initiator,
    Responder,
}

/// MACs of both endpoints over all messages, with keys derived from the shared key.
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

    /// Verifies a MAC in constant time.
    fn verify(&self, side: Side, mac: &[u8]) -> Result<(), CodeError> {
        hmac::verify(self.key(side), &self.said, mac).map_err(|_| CodeError::Wrong)
    }
}

fn with_version(body: &[u8]) -> Vec<u8> {
    [&[EXCHANGE_VERSION], body].concat()
}

/// Returns the bytes after the version, if their number is `len`.
fn body(message: &[u8], len: usize) -> Result<&[u8], CodeError> {
    match message.split_first() {
        Some((&EXCHANGE_VERSION, body)) if body.len() == len => Ok(body),
        Some((&version, body)) if version != EXCHANGE_VERSION && is_of_any_version(body) => {
            Err(CodeError::Version(version))
        }
        _ => Err(CodeError::Malformed),
    }
}

/// Returns `true` for message lengths of versions 1 and 2. Other lengths belong to other protocols.
fn is_of_any_version(body: &[u8]) -> bool {
    [REASON_LEN, MAC_LEN, SHARE_LEN].contains(&body.len())
}

/// Returns the [`body`] of a message of the responder. A refusal becomes an error.
fn answer_body(message: &[u8], len: usize) -> Result<&[u8], CodeError> {
    match body(message, REASON_LEN) {
        Ok(&[reason]) => Err(CodeError::of_refusal(reason)),
        _ => body(message, len),
    }
}

/// Returns the first message of an initiator that resumes a transfer whose code it proved before. The responder answers with
/// [`resumed`](is_resumed) or a refusal.
pub fn resume() -> Vec<u8> {
    with_version(&[RESUME])
}

/// Returns `Ok` if the answer to [`resume`] is a confirmation.
///
/// # Errors
/// Returns the reason of the refusal, or [`CodeError::Malformed`] for other messages.
pub fn is_resumed(message: &[u8]) -> Result<(), CodeError> {
    match body(message, REASON_LEN)? {
        &[RESUME] => Ok(()),
        body => Err(CodeError::of_refusal(body[0])),
    }
}

/// Returns a first message of version 1. A responder of version 1 answers the message, and responders of later versions refuse it.
/// It contains a random code, so it reveals nothing.
///
/// # Errors
/// Fails if the system provides no random bytes.
pub fn version_1_probe(binding: ChannelBinding) -> Result<Vec<u8>, IdentityError> {
    let (_, mut message) = Initiator::start(&OneTimeCode::random()?, binding);
    message[0] = 1;
    Ok(message)
}

/// Returns `true` if an answer to [`version_1_probe`] is one of that version.
pub fn is_of_version_1(message: &[u8]) -> bool {
    body(message, SHARE_LEN) == Err(CodeError::Version(1))
}

fn finish(state: Spake2<Ed25519Group>, share: &[u8]) -> Result<Zeroizing<Vec<u8>>, CodeError> {
    state.finish(share).map(Zeroizing::new).map_err(|_| CodeError::Malformed)
}

/// Endpoint that received the code from its user, after its first message.
pub struct Initiator {
    state: Spake2<Ed25519Group>,
    share: Vec<u8>,
    binding: ChannelBinding,
}

impl Initiator {
    /// Begins an exchange. Returns the first message to send.
    pub fn start(code: &OneTimeCode, binding: ChannelBinding) -> (Self, Vec<u8>) {
        let [own, peer] = binding.identities();
        let password = Password::new(code.password().as_bytes());
        let (state, share) = Spake2::<Ed25519Group>::start_a(&password, &own, &peer);
        let message = with_version(&share);
        (Initiator { state, share, binding }, message)
    }

    /// Processes the answer, and returns the message that proves the code.
    ///
    /// # Errors
    /// Returns the reason of a refusal, or [`CodeError::Malformed`].
    pub fn prove(self, answer: &[u8]) -> Result<(Waiting, Vec<u8>), CodeError> {
        let share = answer_body(answer, SHARE_LEN)?;
        let shared = finish(self.state, share)?;
        let proof = Proof::new(&shared, &self.binding, [&self.share, share]);
        let message = proof.message(Side::Initiator);
        Ok((Waiting { proof }, message))
    }
}

/// Initiator that has sent its proof.
pub struct Waiting {
    proof: Proof,
}

impl Waiting {
    /// Verifies the proof of the responder.
    ///
    /// # Errors
    /// Returns [`CodeError::Wrong`] if the responder does not know the code. The initiator must then not use data of the responder.
    pub fn verify(self, message: &[u8]) -> Result<(), CodeError> {
        let mac = answer_body(message, MAC_LEN)?;
        self.proof.verify(Side::Responder, mac)
    }
}

/// Locally generated code. Several initiators may run exchanges at the same time. The first accepted proof pins the code to the key
/// of its initiator, and a wrong proof before that spends it.
#[derive(Debug)]
pub struct Offer {
    code: OneTimeCode,
    state: Mutex<State>,
}

/// State of a code: the receivers that may prove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Any receiver may prove the code.
    Open,
    /// Only the holder of this key, who has proved the code before, may prove it again.
    Pinned(PublicKey),
    /// No receiver may prove the code, because a wrong code was tried.
    Spent,
}

/// First message of an initiator, as interpreted by the responder.
pub enum Opening {
    /// The initiator begins an exchange. Contains the answer to send.
    Exchange(Box<Answered>, Vec<u8>),
    /// The holder of the code resumes. Contains the answer to send.
    Resumed(Vec<u8>),
}

impl Offer {
    /// Creates an offer of this code to one receiver.
    pub fn new(code: OneTimeCode) -> Self {
        Offer { code, state: Mutex::new(State::Open) }
    }

    /// Returns `false` once an unsuccessful guess has spent the code.
    pub fn is_open(&self) -> bool {
        *self.state() != State::Spent
    }

    /// Returns the key of the receiver that has proved the code.
    pub fn holder(&self) -> Option<PublicKey> {
        match *self.state() {
            State::Pinned(key) => Some(key),
            State::Open | State::Spent => None,
        }
    }

    /// Processes the first message of the initiator that holds `key`.
    ///
    /// # Errors
    /// Returns the refusal to [report](CodeError::refusal) to the initiator. It does not spend the code.
    pub fn open(
        &self,
        message: &[u8],
        binding: &ChannelBinding,
        key: PublicKey,
    ) -> Result<Opening, CodeError> {
        let state = *self.state();
        if message == resume() {
            return match state {
                State::Pinned(holder) if holder == key => Ok(Opening::Resumed(resume())),
                State::Pinned(_) => Err(CodeError::InUse),
                State::Open | State::Spent => Err(CodeError::Unknown),
            };
        }
        let share = body(message, SHARE_LEN)?;
        match state {
            State::Pinned(holder) if holder != key => return Err(CodeError::InUse),
            State::Spent => return Err(CodeError::Spent),
            State::Open | State::Pinned(_) => {}
        }
        let [peer, own] = binding.identities();
        let password = Password::new(self.code.password().as_bytes());
        let (state, own_share) = Spake2::<Ed25519Group>::start_b(&password, &peer, &own);
        let shared = finish(state, share)?;
        let proof = Proof::new(&shared, binding, [share, &own_share]);
        Ok(Opening::Exchange(Box::new(Answered { proof, key }), with_version(&own_share)))
    }

    /// Verifies the proof of an initiator. While the code is not pinned, a correct proof pins it and a wrong one spends it. A wrong
    /// proof of the holder does not spend the code, because the holder has proved it before.
    ///
    /// # Errors
    /// Returns [`CodeError::Wrong`], or [`CodeError::Spent`] and [`CodeError::InUse`] if another initiator was faster.
    pub fn verify(&self, answered: Answered, message: &[u8]) -> Result<Accepted, CodeError> {
        let mut state = self.state();
        match *state {
            State::Spent => return Err(CodeError::Spent),
            State::Pinned(holder) if holder != answered.key => return Err(CodeError::InUse),
            State::Open | State::Pinned(_) => {}
        }
        let verified = body(message, MAC_LEN).and_then(|mac| answered.proof.verify(Side::Initiator, mac));
        if *state == State::Open {
            *state = verified.map_or(State::Spent, |()| State::Pinned(answered.key));
        }
        verified.map(|()| Accepted { message: answered.proof.message(Side::Responder) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exchange whose first message has been answered.
pub struct Answered {
    proof: Proof,
    key: PublicKey,
}

/// Exchange whose initiator has proved the code.
#[derive(Debug)]
pub struct Accepted {
    /// Message to send to the initiator.
    pub message: Vec<u8>,
}

#[cfg(test)]
mod tests;
