//! TLS cryptography with seeded random numbers, so that a run can be repeated byte for byte, and with a count of public key
//! operations. Seed and counter belong to the thread, since each test has its own thread.

use std::cell::{Cell, RefCell};

use anabranch_keying::rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    aws_lc_rs as aws_lc_provider,
};
use anabranch_keying::rustls::ffdhe_groups::FfdheGroup;
use anabranch_keying::rustls::{Error, NamedGroup, PeerMisbehaved};
use aws_lc_rs::agreement::{self, PrivateKey, PublicKey, UnparsedPublicKey};

use crate::dice::Dice;

thread_local! {
    static DICE: RefCell<Dice> = RefCell::new(Dice::new(0));
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Restarts the random numbers of this thread from a seed.
pub fn seed(seed: u64) {
    DICE.set(Dice::new(seed));
}

/// Returns the number of key shares that this thread has generated. Each handshake begins with one.
pub fn public_key_operations() -> u64 {
    OPERATIONS.get()
}

fn count_operation() {
    OPERATIONS.set(OPERATIONS.get() + 1);
}

/// Returns X25519 alone, since the post-quantum groups take no random numbers from outside.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![&SeededX25519],
        secure_random: &SeededRandom,
        ..aws_lc_provider::default_provider()
    }
}

#[derive(Debug)]
struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        out.copy_from_slice(&DICE.with_borrow_mut(|dice| dice.bytes(out.len())));
        Ok(())
    }
}

#[derive(Debug)]
struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        count_operation();
        let secret = DICE.with_borrow_mut(|dice| dice.bytes(32));
        let failed = |_| Error::General("no share of X25519".to_owned());
        let private = PrivateKey::from_private_key(&agreement::X25519, &secret)
            .map_err(|_| Error::General("no key of X25519".to_owned()))?;
        let public = private.compute_public_key().map_err(failed)?;
        Ok(Box::new(Share { private, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Share {
    private: PrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for Share {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        count_operation();
        let peer = UnparsedPublicKey::new(&agreement::X25519, peer);
        let refused = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        agreement::agree(&self.private, peer, refused, |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
