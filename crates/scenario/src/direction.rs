//! Directions of a link.

use crate::form::OneOf;

/// Direction of a link, relative to the flows that go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In the direction of the data.
    Forward,
    /// Opposite to the data, in the direction of the acknowledgements.
    Reverse,
}

/// One direction, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// From the host at the near end of the paths to the host at the far end.
    Forward,
    /// From the far end to the near end.
    Reverse,
    /// Both directions.
    Both,
}

/// Words for one direction.
pub(crate) const ONE: OneOf<Direction> =
    OneOf(&[("forward", Direction::Forward), ("reverse", Direction::Reverse)]);

/// Words for one direction or both.
pub(crate) const ANY: OneOf<Directions> =
    OneOf(&[("forward", Directions::Forward), ("reverse", Directions::Reverse), ("both", Directions::Both)]);
