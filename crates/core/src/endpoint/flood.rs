//! Rate limits of handshakes, in memory of a fixed size.
//!
//! **INITs.** The answer costs two hashes and a packet. Each source has a share of its own, and all shares together have half of
//! the budget: a source that cannot forge its address takes no part of another's share. If the share or that half is used up, an
//! INIT is admitted by chance from the other half. A bucket with `level` of its `burst` tokens admits with the probability
//! `level / burst`. Under a flood of `r` such INITs per second, about `min(1, rate / r)` of them are answered, with `rate` half of
//! [`Guard::in_all`]. That also applies to a host whose share an attacker uses up with its forged address, and to every
//! retransmitted INIT separately: with `n` retransmissions one is answered with a probability of `1 - (1 - rate / r)^(n + 1)`.
//!
//! **COOKIE ECHOs** have no limit by source or in total. A forged one costs as much as a checksum (see [`crate::cookie`]), and a
//! genuine one is never refused because of its source or of other packets. An attacker can still send a genuine cookie repeatedly:
//! each cookie has a share, which exceeds the needs of a peer that retransmits.

use std::net::IpAddr;

use crate::config::{Guard, RateLimit};
use crate::entropy::Entropy;
use crate::source::Source;
use crate::time::{Span, Time};

/// Number of sources, or cookies, remembered at a time. A new one replaces another: the table is for frequent ones.
const CELLS: usize = 4096;

/// Limit for opening one cookie. A peer retransmits its COOKIE ECHO after an RTO, which doubles each time.
const PER_COOKIE: RateLimit = RateLimit { per_second: 1, burst: 5 };

/// Rate limits that handshakes pass.
#[derive(Clone, Debug)]
pub(super) struct Gates {
    pub(super) inits: InitGate,
    pub(super) cookies: CookieGate,
}

impl Gates {
    pub(super) fn new(guard: &Guard, entropy: &Entropy) -> Self {
        Gates {
            inits: InitGate::new(guard, entropy.fork("gate of INITs")),
            cookies: CookieGate { shares: Shares::new(PER_COOKIE, &mut entropy.fork("gate of cookies")) },
        }
    }
}

/// Token bucket, stored as the time at which it will be full again: one number, exact for any order of rates.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    full_at: Time,
}

impl Bucket {
    const FULL: Bucket = Bucket { full_at: Time::ZERO };
}

/// Interval between tokens, and capacity of a bucket.
#[derive(Clone, Copy, Debug)]
struct Refill {
    interval: Span,
    burst: u64,
}

impl Refill {
    fn new(rate: RateLimit) -> Self {
        let interval = Span::from_nanos(1_000_000_000 / u64::from(rate.per_second.max(1)));
        Refill { interval, burst: u64::from(rate.burst.max(1)) }
    }

    fn has_token(&self, now: Time, bucket: Bucket) -> bool {
        bucket.full_at.since(now) <= self.interval.times(self.burst - 1)
    }

    /// Returns `true` with a probability equal to the fraction of tokens in the bucket.
    fn by_chance(&self, now: Time, bucket: Bucket, entropy: &mut Entropy) -> bool {
        let missing = bucket.full_at.since(now);
        entropy.below(self.interval.times(self.burst).as_nanos()) >= missing.as_nanos()
    }

    fn take(&self, now: Time, bucket: Bucket) -> Bucket {
        Bucket { full_at: bucket.full_at.max(now) + self.interval }
    }
}

/// Used shares of sources or cookies. Those that hash to the same cell are distinguished by another part of their hash.
#[derive(Clone)]
struct Shares {
    /// Secret multiplier and summand of the hash, which prevent an attacker from choosing addresses that share a cell.
    key: (u128, u128),
    cells: Box<[Cell]>,
    refill: Refill,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    mark: u32,
    bucket: Bucket,
}

/// Omits the key.
impl std::fmt::Debug for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shares").field("refill", &self.refill).finish_non_exhaustive()
    }
}

impl Shares {
    fn new(rate: RateLimit, entropy: &mut Entropy) -> Self {
        let mut draw = || u128::from(entropy.next_u64()) << 64 | u128::from(entropy.next_u64());
        Shares {
            key: (draw() | 1, draw()),
            cells: vec![Cell { mark: 0, bucket: Bucket::FULL }; CELLS].into_boxed_slice(),
            refill: Refill::new(rate),
        }
    }

    /// Takes a token of a share if one is available and the condition is true. Returns `true` if it did.
    fn take_if(&mut self, now: Time, who: u128, condition: impl FnOnce() -> bool) -> bool {
        let (index, mark) = self.place(who);
        let cell = &mut self.cells[index];
        let bucket = if cell.mark == mark { cell.bucket } else { Bucket::FULL };
        let taken = self.refill.has_token(now, bucket) && condition();
        if taken {
            *cell = Cell { mark, bucket: self.refill.take(now, bucket) };
        }
        taken
    }

    /// Returns the cell and the mark in it, by multiply-shift hashing (Dietzfelbinger, 1996).
    fn place(&self, who: u128) -> (usize, u32) {
        let (multiplier, summand) = self.key;
        let hash = (multiplier.wrapping_mul(who).wrapping_add(summand) >> 64) as u64;
        ((hash >> 52) as usize % CELLS, hash as u32)
    }
}

/// Rate limit of INITs.
#[derive(Clone, Debug)]
pub(super) struct InitGate {
    sources: Shares,
    /// Budget for INITs within the share of their source.
    shared: Bucket,
    /// Budget for other INITs.
    open: Bucket,
    half: Refill,
    entropy: Entropy,
}

impl InitGate {
    fn new(guard: &Guard, mut entropy: Entropy) -> Self {
        let half = RateLimit { per_second: guard.in_all.per_second / 2, burst: guard.in_all.burst / 2 };
        InitGate {
            sources: Shares::new(guard.per_source, &mut entropy),
            shared: Bucket::FULL,
            open: Bucket::FULL,
            half: Refill::new(half),
            entropy,
        }
    }

    /// Returns `true` if an INIT from this address is answered. An answered INIT is counted.
    pub(super) fn admits(&mut self, now: Time, source: IpAddr) -> bool {
        let InitGate { sources, shared, half, .. } = self;
        if sources.take_if(now, Source::from(source).number(), || half.has_token(now, *shared)) {
            *shared = half.take(now, *shared);
            return true;
        }
        let lucky = self.half.by_chance(now, self.open, &mut self.entropy);
        if lucky {
            self.open = self.half.take(now, self.open);
        }
        lucky
    }
}

/// Rate limit of COOKIE ECHOs.
#[derive(Clone, Debug)]
pub(super) struct CookieGate {
    shares: Shares,
}

impl CookieGate {
    /// Returns `true` if the cookie of this name, which has passed the screen, may be opened again. Each opening is counted.
    pub(super) fn admits(&mut self, now: Time, (created, tag): (Time, u32)) -> bool {
        let name = u128::from(tag) << 64 | u128::from(created.as_nanos());
        self.shares.take_if(now, name, || true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        per_source: RateLimit { per_second: 10, burst: 3 },
        in_all: RateLimit { per_second: 1000, burst: 100 },
    };

    fn gates() -> Gates {
        Gates::new(&GUARD, &Entropy::new([4; 32]))
    }

    fn at_us(micros: u64) -> Time {
        Time::ZERO + Span::from_secs(1) + Span::from_micros(micros)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn stranger(n: u64) -> IpAddr {
        std::net::Ipv4Addr::from_bits(n as u32).into()
    }

    /// Returns the number of answered INITs, of `count` from this address in ten seconds.
    fn answered(gate: &mut InitGate, count: u64, source: IpAddr) -> u64 {
        (0..count).filter(|n| gate.admits(at_us(n * 10_000_000 / count), source)).count() as u64
    }

    #[test]
    fn source_keeps_its_share_under_any_load_of_others() {
        let mut gate = gates().inits;
        // Ten thousand per second from one source, and ten from another, which is within its share.
        let mut refused = 0;
        for n in 0..100_000 {
            gate.admits(at_us(n * 100), address("192.0.2.1"));
            refused += u32::from(n % 1000 == 0 && !gate.admits(at_us(n * 100), address("192.0.2.2")));
        }
        assert_eq!(refused, 0);
    }

    #[test]
    fn one_source_takes_no_more_than_its_share_and_half_of_the_budget() {
        let mut gate = gates().inits;
        let answered = answered(&mut gate, 100_000, address("192.0.2.1"));
        // In ten seconds: 10 and 500 per second, and the initial tokens of both buckets.
        assert!((5_000..=5_000 + 100 + 3 + 50 + 1).contains(&answered), "{answered}");
    }

    #[test]
    fn share_used_up_by_another_source_leaves_the_stated_chance() {
        // The burst equals the rate.
        let guard = Guard { in_all: RateLimit { per_second: 1000, burst: 1000 }, ..GUARD };
        for (forged_per_second, stated) in [(100, 1.0), (1_000, 0.5), (5_000, 0.1), (25_000, 0.02)] {
            let mut gate = Gates::new(&guard, &Entropy::new([4; 32])).inits;
            let victim = address("192.0.2.7");
            let (mut lucky, mut tries) = (0_u32, 0_u32);
            for n in 0..30 * forged_per_second {
                let now = at_us(n * 1_000_000 / forged_per_second);
                gate.admits(now, victim);
                // Own attempts, ten per second; they do not count until the bucket has settled.
                if n % (forged_per_second / 10) == 0 {
                    let admitted = gate.admits(now + Span::from_micros(13), victim);
                    let settled = n > 10 * forged_per_second;
                    tries += u32::from(settled);
                    lucky += u32::from(settled && admitted);
                }
            }
            let (share, count) = (f64::from(lucky) / f64::from(tries), f64::from(tries));
            let deviation = (stated * (1.0 - stated) / count).sqrt();
            let least = 0.95 * stated - 3.0 * deviation;
            assert!(
                share >= least && share <= stated + 4.0 * deviation,
                "{forged_per_second}: {share} of {count}"
            );
        }
    }

    #[test]
    fn distributed_flood_leaves_equal_chances_to_a_source_without_share() {
        let mut gate = gates().inits;
        let victim = address("192.0.2.7");
        let (mut lucky, mut tries) = (0_u32, 0_u32);
        for n in 0..100_000_u64 {
            // Five thousand per second from changing addresses, a hundred from the victim's.
            let now = at_us(n * 200);
            gate.admits(now, stranger(n));
            if n % 50 == 0 {
                gate.admits(now, victim);
            }
            if n % 50 == 25 {
                tries += 1;
                lucky += u32::from(gate.admits(now, victim));
            }
        }
        let share = f64::from(lucky) / f64::from(tries);
        assert!(share > 0.07, "{share}");
    }

    #[test]
    fn all_sources_together_have_a_rate_as_well() {
        let mut gate = gates().inits;
        let answered = (0..100_000).filter(|n| gate.admits(at_us(10 * n), stranger(*n))).count();
        assert!((1000..=1101).contains(&answered), "{answered} in a second");
    }

    #[test]
    fn an_ipv6_host_is_its_network() {
        let gate = gates().inits;
        let place = |text: &str| gate.sources.place(Source::from(address(text)).number());
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:1"));
        assert_ne!(place("2001:db8::1"), place("2001:db8:0:1::1"));
    }

    #[test]
    fn cookie_is_opened_once_per_allowed_retransmission() {
        let mut gate = gates().cookies;
        let (one, other) = ((at_us(0), 1), (at_us(0), 2));
        let opened = (0..10_000).filter(|n| gate.admits(at_us(n * 1000), one)).count();
        assert!((14..=15).contains(&opened), "{opened} in ten seconds");
        assert!(gate.admits(at_us(10_000_000), other));
        assert!(gate.admits(at_us(10_000_000), (at_us(1), 1)));
    }
}
