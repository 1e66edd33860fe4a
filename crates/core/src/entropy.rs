//! Random numbers that depend only on a seed.
//!
//! The endpoint has no source of randomness of its own: its creator passes 32 bytes. All random values (tags, initial TSNs, cookie
//! secrets, heartbeat jitter) come from named forks of that seed, so that an additional draw in one place does not change the
//! numbers drawn in another. The generator is ChaCha20, whose output depends on the seed alone and is suitable for the
//! unpredictable tags that RFC 9260 section 5.3.1 requires.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::fmt;

/// Prefix that separates the seeds of forks from other hashes of the same bytes.
const FORK_DOMAIN: &[u8] = b"anabranch entropy fork 1";

/// Stream of random numbers, and the seed from which further streams are derived by name.
#[derive(Clone)]
pub(crate) struct Entropy {
    seed: [u8; 32],
    numbers: ChaCha20Rng,
}

impl Entropy {
    /// Returns the stream of this seed.
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { seed, numbers: ChaCha20Rng::from_seed(seed) }
    }

    /// Returns an independent stream for one purpose.
    ///
    /// The new stream depends on the seed and the label only, not on the numbers drawn from this stream or on other forks. Equal
    /// labels give equal streams.
    pub(crate) fn fork(&self, label: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(FORK_DOMAIN)
            .chain_update(self.seed)
            // The label comes last and all parts before it have a fixed length, so different inputs differ as bytes.
            .chain_update(label.as_bytes())
            .finalize();
        Self::new(digest.into())
    }

    /// Returns a uniformly distributed 32-bit number.
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.numbers.next_u32()
    }

    /// Returns a uniformly distributed 64-bit number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.numbers.next_u64()
    }

    /// Returns a uniformly distributed 32-bit number other than zero, as an Initiate Tag must be (RFC 9260 section 3.3.2).
    //= docs/rfc9260.txt#section-3.3.3
    //# The Initiate Tag MUST NOT take the value 0.
    //= docs/rfc9260.txt#section-5.3.1
    //# Initiate Tag values SHOULD be selected from the range of 1 to 2^32 - 1.
    pub(crate) fn nonzero_u32(&mut self) -> u32 {
        loop {
            let value = self.next_u32();
            if value != 0 {
                return value;
            }
        }
    }

    /// Overwrites the whole slice with random bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.numbers.fill_bytes(bytes);
    }

    /// Returns a uniformly distributed number in `0..n`; zero if `n` is zero.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // Lemire's method: the high half of a 64 by 64 bit product is the result. The low half identifies the few products that
        // would favour some results, (2^64 mod n) of them, and those are drawn again.
        let unfair = if n == 0 { 0 } else { n.wrapping_neg() % n };
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a number in `0.0..1.0`, a multiple of 2^-53.
    pub(crate) fn unit_f64(&mut self) -> f64 {
        // 53 bits fill the significand exactly, so neither the cast nor the product rounds.
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns `true` with probability 1/2.
    pub(crate) fn coin(&mut self) -> bool {
        self.next_u32() >> 31 == 1
    }
}

/// Omits the seed, from which tags and cookie secrets follow.
impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entropy").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut zero = Entropy::new([0; 32]);
        // The ChaCha20 key stream of an all-zero key and nonce: 76 b8 e0 ad a0 f1 3d 90 40 5d 6a e5 53 86 bd 28.
        assert_eq!(zero.next_u32(), 0xade0_b876);
        assert_eq!(zero.next_u32(), 0x903d_f1a0);
        assert_eq!(zero.next_u64(), 0x28bd_8653_e56a_5d40);
        let mut tags = zero.fork("tags");
        assert_eq!(
            [tags.next_u64(), tags.next_u64()],
            [14_185_289_206_424_464_801, 12_857_791_602_919_292_575]
        );
        let mut bytes = [0; 5];
        tags.fill(&mut bytes);
        assert_eq!(bytes, [125, 81, 112, 202, 8]);
        assert_eq!((tags.below(1000), tags.nonzero_u32()), (345, 2_398_285_013));
        assert_eq!(tags.unit_f64().to_bits(), 0.249_904_962_277_921_36_f64.to_bits());
        assert_eq!([(); 8].map(|()| u8::from(tags.coin())), [0, 0, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_fork_depends_on_the_seed_and_the_label_alone() {
        let fresh = Entropy::new([7; 32]);
        let mut drawn = fresh.clone();
        drawn.next_u64();
        assert_eq!(fresh.fork("a").next_u64(), drawn.fork("a").next_u64());
        assert_ne!(fresh.fork("a").next_u64(), fresh.fork("b").next_u64());
        assert_ne!(fresh.fork("a").next_u64(), Entropy::new([8; 32]).fork("a").next_u64());
        assert_ne!(fresh.fork("").next_u64(), fresh.clone().next_u64());
    }

    #[test]
    fn below_is_even_where_scaling_alone_is_not() {
        // Scaling 2^64 numbers down to 3 * 2^62 results would give every third result twice as often as the others.
        let mut entropy = Entropy::new([1; 32]);
        let favoured = (0..30_000).filter(|_| entropy.below(3 << 62).is_multiple_of(3)).count();
        assert!((9_600..10_400).contains(&favoured), "{favoured} of 30000 are multiples of three");
    }

    #[test]
    fn a_coin_is_fair_and_a_unit_number_has_mean_one_half() {
        let mut entropy = Entropy::new([2; 32]);
        let heads = (0..10_000).filter(|_| entropy.coin()).count();
        assert!((4_800..5_200).contains(&heads), "{heads} heads of 10000");
        let mean = (0..10_000).map(|_| entropy.unit_f64()).sum::<f64>() / 10_000.0;
        assert!((0.49..0.51).contains(&mean), "mean {mean}");
    }

    #[test]
    fn debug_output_hides_the_seed() {
        assert_eq!(format!("{:?}", Entropy::new([3; 32])), "Entropy { .. }");
    }

    proptest! {
        #[test]
        fn every_draw_is_in_its_range(seed: [u8; 32], n: u64) {
            let mut entropy = Entropy::new(seed);
            prop_assert!(entropy.below(n) < n.max(1));
            prop_assert!((0.0..1.0).contains(&entropy.unit_f64()));
            prop_assert_ne!(entropy.nonzero_u32(), 0);
        }
    }
}
