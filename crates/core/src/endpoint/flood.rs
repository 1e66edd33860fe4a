//! Limits on handshakes, for each source and for all together, in memory of a fixed size.
//!
//! Answering an INIT and judging a cookie cost a hash each, and nothing is kept for either; what a flood can take is time. Each
//! source has a bucket of its own, so that one that cannot forge its address hinders nobody else. A flood from forged addresses
//! is bounded by the bucket of all: while it lasts an INIT is looked at by chance, and one that is sent again has another. The
//! two kinds have their own buckets, so that a peer whose INIT was answered is not held up by others' INITs.

use std::net::IpAddr;

use crate::config::{Guard, Rate};
use crate::entropy::Entropy;
use crate::time::{Span, Time};

/// Sources remembered at a time. A new one takes the place of another: remembering is for those that come often.
const CELLS: usize = 4096;

/// A forged cookie costs so much less than an INIT: a hash, and no answer to write and send.
const CHEAPER: u32 = 10;

/// The gates that handshakes pass.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) inits: Gate,
    pub(super) cookies: Gate,
}

impl Gates {
    pub(super) fn new(guard: &Guard, entropy: &Entropy) -> Self {
        let faster = |rate: Rate| Rate {
            per_second: rate.per_second.saturating_mul(CHEAPER),
            burst: rate.burst.saturating_mul(CHEAPER),
        };
        let for_cookies = Guard { in_all: faster(guard.in_all), ..*guard };
        Gates {
            inits: Gate::new(guard, &mut entropy.fork("gate of INITs")),
            cookies: Gate::new(&for_cookies, &mut entropy.fork("gate of cookies")),
        }
    }
}

/// A bucket of tokens as the time at which it will be full again: one number, exact in any order of rates.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    full_at: Time,
}

/// The interval between tokens, and how far ahead of the clock a bucket may be to give one more.
#[derive(Clone, Copy, Debug)]
struct Refill {
    interval: Span,
    ahead: Span,
}

impl Refill {
    fn new(rate: Rate) -> Self {
        let interval = Span::from_nanos(1_000_000_000 / u64::from(rate.per_second.max(1)));
        Refill { interval, ahead: interval.times(u64::from(rate.burst.saturating_sub(1))) }
    }

    fn admits(&self, now: Time, bucket: Bucket) -> bool {
        bucket.full_at.since(now) <= self.ahead
    }

    fn take(&self, now: Time, bucket: Bucket) -> Bucket {
        Bucket { full_at: bucket.full_at.max(now) + self.interval }
    }
}

/// A source's bucket. Sources that share a cell are told apart by a part of their hash.
#[derive(Clone, Copy, Debug)]
struct Cell {
    source: u32,
    bucket: Bucket,
}

/// Buckets for one kind of packet.
pub(super) struct Gate {
    /// Multiplier and summand of the hash. Without them nobody can choose addresses that share a cell.
    key: (u128, u128),
    cells: Box<[Cell]>,
    of_all: Bucket,
    per_source: Refill,
    in_all: Refill,
}

/// Prints no key.
impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("of_all", &self.of_all).finish_non_exhaustive()
    }
}

impl Gate {
    fn new(guard: &Guard, entropy: &mut Entropy) -> Self {
        let mut draw = || u128::from(entropy.next_u64()) << 64 | u128::from(entropy.next_u64());
        let empty = Bucket { full_at: Time::ZERO };
        Gate {
            key: (draw() | 1, draw()),
            cells: vec![Cell { source: 0, bucket: empty }; CELLS].into_boxed_slice(),
            of_all: empty,
            per_source: Refill::new(guard.per_source),
            in_all: Refill::new(guard.in_all),
        }
    }

    /// Whether one more from there is to be looked at.
    pub(super) fn admits(&self, now: Time, source: IpAddr) -> bool {
        let (index, source) = self.place(source);
        let cell = &self.cells[index];
        let own = cell.source != source || self.per_source.admits(now, cell.bucket);
        own && self.in_all.admits(now, self.of_all)
    }

    /// Counts one from there.
    pub(super) fn charge(&mut self, now: Time, source: IpAddr) {
        let (index, source) = self.place(source);
        let cell = &mut self.cells[index];
        let bucket = if cell.source == source { cell.bucket } else { Bucket { full_at: now } };
        *cell = Cell { source, bucket: self.per_source.take(now, bucket) };
        self.of_all = self.in_all.take(now, self.of_all);
    }

    /// The cell of a source and the mark it has there, by multiply-shift hashing (Dietzfelbinger, 1996) of the address, or of
    /// the network of an IPv6 address: a host has all of that.
    fn place(&self, source: IpAddr) -> (usize, u32) {
        let number = match source {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => 1 << 64 | v6.to_bits() >> 64,
        };
        let (multiplier, summand) = self.key;
        let hash = (multiplier.wrapping_mul(number).wrapping_add(summand) >> 64) as u64;
        ((hash >> 52) as usize % CELLS, hash as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        per_source: Rate { per_second: 10, burst: 3 },
        in_all: Rate { per_second: 1000, burst: 100 },
    };

    fn gate() -> Gate {
        Gate::new(&GUARD, &mut Entropy::new([4; 32]))
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn pass(gate: &mut Gate, now: Time, source: &str) -> bool {
        let source = source.parse().expect("an address");
        let admitted = gate.admits(now, source);
        if admitted {
            gate.charge(now, source);
        }
        admitted
    }

    #[test]
    fn a_source_has_its_burst_and_then_its_rate() {
        let mut gate = gate();
        let burst = (0..5).filter(|_| pass(&mut gate, at(1000), "192.0.2.1")).count();
        assert_eq!(burst, 3);
        let passed = (0..10_000).filter(|n| pass(&mut gate, at(1001 + n), "192.0.2.1")).count();
        assert!((99..=101).contains(&passed), "{passed} in ten seconds");
    }

    #[test]
    fn a_source_that_floods_hinders_no_other() {
        let mut gate = gate();
        for n in 0..50 {
            pass(&mut gate, at(1000 + n), "192.0.2.1");
        }
        assert!(!pass(&mut gate, at(1050), "192.0.2.1"));
        assert!(pass(&mut gate, at(1050), "192.0.2.2"));
    }

    #[test]
    fn an_ipv6_host_is_its_network() {
        let mut gate = gate();
        let passed = (0..50).filter(|n| pass(&mut gate, at(1000), &format!("2001:db8::{n}"))).count();
        assert_eq!(passed, 3);
        assert!(pass(&mut gate, at(1000), "2001:db8:0:1::1"));
    }

    #[test]
    fn all_sources_together_have_a_rate_as_well() {
        let mut gate = gate();
        let mut passed = 0;
        for n in 0..100_000_u64 {
            let now = Time::ZERO + Span::from_micros(10 * n);
            passed += u32::from(pass(&mut gate, now, &std::net::Ipv4Addr::from_bits(n as u32).to_string()));
        }
        assert!((1000..=1101).contains(&passed), "{passed} in a second");
    }
}
