//! Random streams that belong to a name.
//!
//! A component never draws from a shared generator: it has the stream of its own name. Its draws therefore do not depend on other
//! components, and adding one does not disturb the others.
//!
//! The seed of a stream is the SHA-256 of a label, the scenario's seed, the run's number and the parts of the name, each part
//! preceded by its length; all numbers are 64-bit little-endian. The 32 bytes seed a PCG64 (XSL-RR 128/64). A change of this
//! derivation would change the results of every run, so a test compares it with fixed values.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// Origin of all randomness of one run: the scenario's seed and the number of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Seed of the scenario, the same for all its runs.
    pub seed: u64,
    /// Number of the repetition.
    pub run: u64,
}

impl Seeds {
    /// Returns the seeds of run `run` of a scenario seeded with `seed`.
    pub const fn new(seed: u64, run: u64) -> Self {
        Seeds { seed, run }
    }

    /// Returns the random stream of a name. The name is given in parts, so that no separator can make two names equal.
    ///
    /// ```
    /// use anabranch_sim::rng::Seeds;
    /// let seeds = Seeds::new(1, 0);
    /// let mut stream = seeds.stream(&["traffic", "web"]);
    /// assert!(stream.unit() < 1.0);
    /// assert_ne!(seeds.stream(&["ab", "c"]).next_u64(), seeds.stream(&["a", "bc"]).next_u64());
    /// ```
    pub fn stream(&self, name: &[&str]) -> Stream {
        Stream(Pcg64::from_seed(self.hash("anabranch/stream/1", name)))
    }

    /// Returns 32 bytes for a component with a generator of its own, such as a protocol endpoint.
    pub fn entropy(&self, name: &[&str]) -> [u8; 32] {
        self.hash("anabranch/entropy/1", name)
    }

    fn hash(&self, label: &str, name: &[&str]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(label);
        hash.update(self.seed.to_le_bytes());
        hash.update(self.run.to_le_bytes());
        for part in name {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// A stream of random numbers. Every draw takes exactly one step of the generator.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform multiple of 2^-53 in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// Returns `true` with the given probability: never at 0, always at 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns a uniform number in `0..n`, and 0 for `n == 0`. Probabilities differ by at most `n` parts in 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns an exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// Returns a Pareto distributed number: at least `scale`, with mean `scale * shape / (shape - 1)` if `shape > 1`.
    pub fn pareto(&mut self, scale: f64, shape: f64) -> f64 {
        scale / libm::pow(1.0 - self.unit(), 1.0 / shape)
    }

    /// Returns a Pareto distributed number between `low` and `high`.
    pub fn bounded_pareto(&mut self, low: f64, high: f64, shape: f64) -> f64 {
        let tail = libm::pow(low / high, shape);
        (low / libm::pow(1.0 - self.unit() * (1.0 - tail), 1.0 / shape)).min(high)
    }

    /// Returns the mean of [`bounded_pareto`](Self::bounded_pareto), for a shape above 1.
    pub fn bounded_pareto_mean(low: f64, high: f64, shape: f64) -> f64 {
        let tail = libm::pow(low / high, shape);
        let without_tail = low - high * tail;
        shape / (shape - 1.0) * without_tail / (1.0 - tail)
    }

    /// Skips `draws` draws at a cost that grows with their logarithm.
    pub fn skip(&mut self, draws: u64) {
        self.0.advance(u128::from(draws));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_pareto_has_its_mean_bounds_and_tail_index() {
        let (low, high, shape) = (10e3, 10e6, 1.5);
        let mut stream = Seeds::new(3, 0).stream(&["sizes"]);
        let drawn: Vec<f64> = (0..1_000_000).map(|_| stream.bounded_pareto(low, high, shape)).collect();
        assert!(drawn.iter().all(|size| (low..=high).contains(size)));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let expected = Stream::bounded_pareto_mean(low, high, shape);
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
        // Hill's estimate over the sizes far below the upper bound.
        let above = |threshold: f64| drawn.iter().filter(|size| **size > threshold).count() as f64;
        let index = libm::log(above(20e3) / above(200e3)) / libm::log(10.0);
        assert!((index - shape).abs() < 0.05, "{index}");
    }

    #[test]
    fn streams_never_change() {
        let seeds = Seeds::new(42, 7);
        let mut stream = seeds.stream(&["link", "bottleneck", "loss", "flow-1"]);
        let drawn: [u64; 3] = std::array::from_fn(|_| stream.next_u64());
        assert_eq!(drawn, KNOWN_STREAM);
        let entropy = seeds.entropy(&["host", "client"]);
        assert_eq!(entropy[..8], KNOWN_ENTROPY.to_be_bytes());
    }

    // Computed independently with Python's hashlib and integers.
    const KNOWN_STREAM: [u64; 3] = [0x5458db0a1b3b67dd, 0x05279a2a40b82431, 0x3c5f5ff90f091bcb];
    const KNOWN_ENTROPY: u64 = 0x8cdca1017b1134f9;

    #[test]
    fn every_part_of_the_origin_matters() {
        let first = |seed, run, name: &[&str]| Seeds::new(seed, run).stream(name).next_u64();
        let base = first(1, 0, &["a"]);
        for other in [first(2, 0, &["a"]), first(1, 1, &["a"]), first(1, 0, &["b"]), first(1, 0, &["a", ""])]
        {
            assert_ne!(base, other);
        }
        assert_ne!(first(0, 1, &["a"]), first(1, 0, &["a"]));
    }

    #[test]
    fn skipping_equals_drawing() {
        let mut drawn = Seeds::new(3, 0).stream(&["x"]);
        let mut skipped = drawn.clone();
        for _ in 0..1001 {
            drawn.next_u64();
        }
        skipped.skip(1001);
        assert_eq!(drawn.next_u64(), skipped.next_u64());
    }

    #[test]
    fn distributions_have_their_means() {
        let mut stream = Seeds::new(5, 0).stream(&["means"]);
        let mut mean =
            |draw: fn(&mut Stream) -> f64| (0..200_000).map(|_| draw(&mut stream)).sum::<f64>() / 2e5;
        assert!((mean(Stream::unit) - 0.5).abs() < 0.003);
        assert!((mean(|s| s.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!((mean(|s| s.pareto(1.0, 3.0)) - 1.5).abs() < 0.02);
        assert!((mean(|s| s.below(10) as f64) - 4.5).abs() < 0.03);
        assert!((mean(|s| f64::from(u8::from(s.chance(0.1)))) - 0.1).abs() < 0.003);
    }

    #[test]
    fn extreme_probabilities_are_certain() {
        let mut stream = Seeds::new(5, 0).stream(&["chance"]);
        for _ in 0..1000 {
            assert!(!stream.chance(0.0));
            assert!(stream.chance(1.0));
            assert_eq!(stream.below(0), 0);
            assert!(stream.below(3) < 3);
        }
    }
}
