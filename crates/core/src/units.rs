//! Byte counts that must not be mixed, each with its own type.
//!
//! Real stacks have stalled because one window was counted with headers and another without. Such a sum does not compile here.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

macro_rules! byte_unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Zero bytes.
            pub const ZERO: Self = Self(0);

            /// Returns a count of `bytes`.
            pub const fn new(bytes: u64) -> Self {
                Self(bytes)
            }

            /// Returns the plain number, for output and for ratios.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Returns `n` times this count.
            pub const fn times(self, n: u64) -> Self {
                Self(self.0.saturating_mul(n))
            }

            /// Returns this count divided by `n`, rounded down.
            pub const fn over(self, n: u64) -> Self {
                Self(self.0 / n)
            }

            /// Returns `true` if the count is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} B", self.0)
            }
        }
    };
}

byte_unit! {
    /// DATA chunk bytes: chunk header and user data, without padding, common header or IP. The unit of cwnd and outstanding bytes.
    ChunkBytes
}
byte_unit! {
    /// Receive-window bytes. The profile defines if a chunk costs its user data or its whole length.
    WindowBytes
}
byte_unit! {
    /// Bytes that a packet occupies on a link: IP, encapsulation, common header, chunks and padding.
    WireBytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(ChunkBytes::new(1) - ChunkBytes::new(2), ChunkBytes::ZERO);
    }

    #[test]
    fn counts_of_a_unit_add_up() {
        let total: WireBytes = [WireBytes::new(40), WireBytes::new(1500)].into_iter().sum();
        assert_eq!(total.get(), 1540);
    }
}
