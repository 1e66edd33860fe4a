//! Sequence numbers of received records: reconstruction from the 16 bits on the wire, and detection of replays (RFC 9147 sections
//! 4.2.2 and 4.5.1).
//!
//! One sequence counts the packets of all paths, so a packet of a slow path is behind all packets that fast ones have carried
//! meanwhile. The window has the size that 16 bits can distinguish: a record that is more than 32,767 behind the highest is taken
//! for one that is ahead, and is not authentic.

/// Maximum distance of a number from the highest one in either direction.
const REACH: u64 = 1 << 15;

/// Largest number of a record (RFC 9147 section 4.5.3 permits no more records with one key).
pub(super) const MAX_SEQUENCE_NUMBER: u64 = (1 << 48) - 1;

const WORDS: usize = (REACH / WORD_BITS) as usize;

const WORD_BITS: u64 = u64::BITS as u64;

/// Received numbers, as far back as they can be distinguished.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// Highest number received, plus one.
    next: u64,
    /// One bit for each of the `REACH` numbers below `next`, at its remainder.
    seen: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        Self { next: 0, seen: Box::new([0; WORDS]) }
    }

    /// Returns the number with these low bits that is closest to the next expected one.
    pub(super) fn reconstruct(&self, low: u16) -> u64 {
        let ahead = u64::from(low.wrapping_sub(self.next as u16));
        if ahead < REACH {
            return self.next + ahead;
        }
        // A number before the first record means one that is far ahead.
        (self.next + ahead).checked_sub(2 * REACH).unwrap_or(self.next + ahead)
    }

    /// Returns `true` if a record with this number may be opened: it was not received, and is within the window.
    pub(super) fn is_fresh(&self, number: u64) -> bool {
        match self.next.checked_sub(number) {
            None | Some(0) => number <= MAX_SEQUENCE_NUMBER,
            Some(behind) => behind <= REACH && !self.is_seen(number),
        }
    }

    /// Records an authentic record with this number.
    pub(super) fn mark(&mut self, number: u64) {
        if number >= self.next {
            self.forget_up_to(number);
            self.next = number + 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    /// Clears the bits of the numbers from `next` to `number`, which belonged to numbers far below them.
    fn forget_up_to(&mut self, number: u64) {
        if number - self.next >= REACH {
            self.seen.fill(0);
            return;
        }
        let mut at = self.next;
        while at <= number {
            let (word, bit) = place(at);
            if bit == 1 && number - at >= WORD_BITS - 1 {
                self.seen[word] = 0;
                at += WORD_BITS;
            } else {
                self.seen[word] &= !bit;
                at += 1;
            }
        }
    }

    fn is_seen(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % REACH;
    ((at / WORD_BITS) as usize, 1 << (at % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn window(numbers: impl IntoIterator<Item = u64>) -> ReplayWindow {
        let mut window = ReplayWindow::new();
        numbers.into_iter().for_each(|number| window.mark(number));
        window
    }

    #[test]
    fn repeated_number_is_refused() {
        let mut window = ReplayWindow::new();
        for number in [0, 1, 5, 3, 70, 69] {
            assert!(window.is_fresh(number));
            window.mark(number);
            assert!(!window.is_fresh(number));
        }
        assert!([2, 4, 6, 68, 71].into_iter().all(|number| window.is_fresh(number)));
    }

    #[test]
    fn a_number_32_767_behind_the_highest_is_the_oldest_that_is_taken() {
        let window = window([100_000]);
        let oldest = 100_000 - 32_767;
        assert!(window.is_fresh(oldest) && !window.is_fresh(oldest - 1));
        assert_eq!(window.reconstruct(oldest as u16), oldest);
        assert_eq!(window.reconstruct((oldest - 1) as u16), oldest - 1 + 65_536);
    }

    #[test]
    fn the_first_numbers_are_never_below_zero() {
        assert_eq!(ReplayWindow::new().reconstruct(0), 0);
        assert_eq!(ReplayWindow::new().reconstruct(u16::MAX), 65_535);
        assert_eq!(window([2]).reconstruct(0x9000), 0x9000);
        assert_eq!(window([2]).reconstruct(0), 0);
    }

    #[test]
    fn no_number_is_above_the_largest() {
        let window = window([MAX_SEQUENCE_NUMBER - 1]);
        assert!(window.is_fresh(MAX_SEQUENCE_NUMBER) && !window.is_fresh(MAX_SEQUENCE_NUMBER + 1));
    }

    #[test]
    fn a_path_300_ms_slower_at_1_gbit_per_second_loses_nothing() {
        // Packets of 1,500 bytes, every other one on the slow path.
        let packets_per_second = 1_000_000_000 / (8 * 1_500);
        let skew = packets_per_second * 3 / 10;
        let mut window = ReplayWindow::new();
        let mut taken = 0;
        let mut receive = |number: u64| {
            assert_eq!(window.reconstruct(number as u16), number);
            assert!(window.is_fresh(number), "{number}");
            window.mark(number);
            taken += 1;
        };
        for now in 0..packets_per_second {
            if now % 2 == 0 {
                receive(now);
            }
            let sent_earlier = now.checked_sub(skew);
            if let Some(late) = sent_earlier.filter(|number| number % 2 == 1) {
                receive(late);
            }
        }
        assert!(taken > packets_per_second * 8 / 10);
    }

    proptest! {
        #[test]
        fn a_number_within_reach_is_found_from_its_low_bits(highest in 0_u64..1 << 40, offset in -32_767_i64..=32_768) {
            let window = window([highest]);
            let Some(number) = highest.checked_add_signed(offset) else { return Ok(()) };
            prop_assert_eq!(window.reconstruct(number as u16), number);
        }

        #[test]
        fn replay_window_agrees_with_a_set(steps in prop::collection::vec(-40_000_i64..50_000, 1..200)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::new(), BTreeSet::new(), 0_u64);
            for step in steps {
                let number = highest.saturating_add_signed(step);
                let fresh = !seen.contains(&number) && (seen.is_empty() || number + 32_768 > highest);
                prop_assert_eq!(window.is_fresh(number), fresh, "{} with {}", number, highest);
                if fresh {
                    window.mark(number);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
