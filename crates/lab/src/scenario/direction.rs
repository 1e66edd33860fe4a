//! The directions of a link.

/// A direction, seen from the flows that go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data.
    Forward,
    /// Against the data, with the acknowledgements.
    Reverse,
}

/// Words for the directions.
pub(super) const DIRECTIONS: &[(&str, Direction)] =
    &[("forward", Direction::Forward), ("reverse", Direction::Reverse)];
