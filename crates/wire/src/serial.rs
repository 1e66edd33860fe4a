//! Serial numbers: TSNs (RFC 9260 section 1.6), stream sequence numbers, message identifiers, and the stream identifier.
//!
//! On the wire a TSN and a message identifier have 32 bits and an SSN has 16, and all wrap to zero. Their circular order (RFC
//! 1982) is not a total order, so none of the types implements `Ord`. Code that stores many of them converts each to 64 bits once,
//! with `unwrap_near`, and compares those as integers.

use std::fmt;

macro_rules! wrapping_number {
    ($(#[$doc:meta])* $name:ident, $int:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name($int);

        impl $name {
            /// Number of distinct values before the number wraps.
            pub const SPAN: u64 = <$int>::MAX as u64 + 1;

            /// Creates a number from its value on the wire.
            pub const fn new(value: $int) -> Self {
                Self(value)
            }

            /// Returns the value on the wire.
            pub const fn get(self) -> $int {
                self.0
            }

            /// Returns the next number.
            pub const fn next(self) -> Self {
                self.add(1)
            }

            /// Returns the previous number.
            pub const fn prev(self) -> Self {
                self.sub(1)
            }

            /// Returns the number `n` places ahead, modulo [`SPAN`](Self::SPAN).
            //= docs/rfc9260.txt#section-1.6
            //# Since the space is finite, all arithmetic dealing with Transmission Sequence Numbers MUST be performed
            //# modulo 2^32.
            pub const fn add(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }

            /// Returns the number `n` places behind, modulo [`SPAN`](Self::SPAN).
            pub const fn sub(self, n: $int) -> Self {
                Self(self.0.wrapping_sub(n))
            }

            /// Returns the distance by which `self` is ahead of `other` on the shorter way around. It is negative
            /// if `self` is behind.
            ///
            /// Of two numbers exactly half the space apart, each is *behind* the other.
            pub const fn offset_from(self, other: Self) -> $signed {
                self.0.wrapping_sub(other.0) as $signed
            }

            /// Returns `true` if `self` precedes `other` in the circular order of RFC 1982 section 3.2.
            ///
            /// RFC 1982 leaves the order of two numbers exactly half the space apart undefined. This function and
            /// [`is_after`](Self::is_after) return `false` for such numbers.
            //= docs/rfc9260.txt#section-1.6
            //# Comparisons and arithmetic on TSNs in this document SHOULD use Serial Number Arithmetic, as defined in
            //# [RFC1982], where SERIAL_BITS = 32.
            pub const fn is_before(self, other: Self) -> bool {
                other.offset_from(self) > 0
            }

            /// Returns `true` if `self` follows `other` in the circular order of RFC 1982 section 3.2.
            ///
            /// Returns `false` for two numbers exactly half the space apart, see [`is_before`](Self::is_before).
            pub const fn is_after(self, other: Self) -> bool {
                self.offset_from(other) > 0
            }

            /// Returns the 64-bit number nearest to `reference` whose low bits are this number.
            ///
            /// If two are equally near (half the space apart), the result is the lower one. If the nearest would be below
            /// zero or above `u64::MAX`, the result is the nearest that exists: near zero, a number from just before
            /// `reference` becomes one far ahead. Callers avoid that by counting from [`SPAN`](Self::SPAN) or higher.
            pub const fn unwrap_near(self, reference: u64) -> u64 {
                const SPAN: i64 = $name::SPAN as i64;
                let ahead = self.0.wrapping_sub(reference as $int) as $signed as i64;
                match reference.checked_add_signed(ahead) {
                    Some(near) => near,
                    None if ahead < 0 => reference.wrapping_add_signed(ahead + SPAN),
                    None => reference.wrapping_add_signed(ahead - SPAN),
                }
            }

            /// Returns the number on the wire for a 64-bit number.
            //= docs/rfc9260.txt#section-1.6
            //# That is, the next TSN a DATA chunk MUST use after transmitting TSN = 2^32 - 1 is TSN = 0.
            pub const fn from_unwrapped(value: u64) -> Self {
                Self(value as $int)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

wrapping_number! {
    /// Transmission sequence number, which counts DATA chunks (RFC 9260 section 1.6).
    Tsn, u32, i32
}

wrapping_number! {
    /// Stream sequence number, which counts the ordered messages of one stream (RFC 9260 section 1.6).
    Ssn, u16, i16
}

wrapping_number! {
    /// Message identifier, which counts the ordered or the unordered messages of one stream (RFC 8260 section 2.1).
    Mid, u32, i32
}

/// Stream identifier (RFC 9260 section 3.3.1). It is a name, not a counter, so it has an ordinary order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId(u16);

impl StreamId {
    /// Creates a stream identifier from its value on the wire.
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// Returns the value on the wire.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= docs/rfc9260.txt#section-1.6
    //= type=test
    //# Comparisons and arithmetic on TSNs in this document SHOULD use Serial Number Arithmetic, as defined in [RFC1982],
    //# where SERIAL_BITS = 32.
    #[test]
    fn order_continues_across_the_wrap() {
        assert!(Tsn::new(u32::MAX).is_before(Tsn::new(0)));
        assert!(Tsn::new(5).is_after(Tsn::new(u32::MAX - 5)));
        assert_eq!(Tsn::new(u32::MAX).next(), Tsn::new(0));
        assert_eq!(Ssn::new(0).prev(), Ssn::new(u16::MAX));
        assert_eq!(Ssn::new(3).offset_from(Ssn::new(u16::MAX)), 4);
    }

    #[test]
    fn number_is_unordered_with_itself_and_half_the_space() {
        for (a, b) in [(7, 7), (7, 7 + (1 << 31)), (0, 1 << 31)] {
            let (a, b) = (Tsn::new(a), Tsn::new(b));
            assert!(!a.is_before(b) && !b.is_before(a) && !a.is_after(b) && !b.is_after(a));
        }
    }

    #[test]
    fn unwrapping_near_zero_never_goes_below_it() {
        assert_eq!(Tsn::new(0).unwrap_near(0), 0);
        assert_eq!(Tsn::new(u32::MAX).unwrap_near(0), u64::from(u32::MAX));
        assert_eq!(Tsn::new(u32::MAX).unwrap_near(5), u64::from(u32::MAX));
        assert_eq!(Tsn::new(1 << 31).unwrap_near(0), 1 << 31);
        assert_eq!(Ssn::new(u16::MAX).unwrap_near(2), u64::from(u16::MAX));
    }

    #[test]
    fn unwrapping_near_a_wrap_finds_either_side() {
        let wrap = 7 * Tsn::SPAN;
        assert_eq!(Tsn::new(u32::MAX).unwrap_near(wrap), wrap - 1);
        assert_eq!(Tsn::new(0).unwrap_near(wrap - 1), wrap);
        assert_eq!(Tsn::new(1 << 31).unwrap_near(wrap), wrap - (1 << 31));
        assert_eq!(Tsn::new(0).unwrap_near(u64::MAX), u64::MAX - u64::from(u32::MAX));
    }

    proptest! {
        #[test]
        fn unwrapping_keeps_the_low_bits_and_stays_near(tsn: u32, reference: u64) {
            let wide = Tsn::new(tsn).unwrap_near(reference);
            prop_assert_eq!(Tsn::from_unwrapped(wide), Tsn::new(tsn));
            let inside = (1 << 31..=u64::MAX - (1 << 31)).contains(&reference);
            prop_assert!(!inside || wide.abs_diff(reference) <= 1 << 31);
        }

        #[test]
        fn unwrapping_undoes_wrapping(reference in (1_u64 << 32)..(1 << 48), ahead in -(1_i64 << 31)..(1 << 31)) {
            let wide = reference.wrapping_add_signed(ahead);
            prop_assert_eq!(Tsn::from_unwrapped(wide).unwrap_near(reference), wide);
        }

        #[test]
        fn stream_numbers_unwrap_likewise(reference in (1_u64 << 16)..(1 << 40), ahead in -(1_i64 << 15)..(1 << 15)) {
            let wide = reference.wrapping_add_signed(ahead);
            prop_assert_eq!(Ssn::from_unwrapped(wide).unwrap_near(reference), wide);
        }

        #[test]
        fn circular_order_is_the_wide_order(a in (1_u64 << 32)..(1 << 40), ahead in 1_u64..(1 << 31)) {
            prop_assert!(Tsn::from_unwrapped(a).is_before(Tsn::from_unwrapped(a + ahead)));
            prop_assert!(Tsn::from_unwrapped(a + ahead).is_after(Tsn::from_unwrapped(a)));
        }
    }
}
