//! Directions of a link.

use crate::form::OneOf;

/// Direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host at the near end of the paths, which sends the data of most flows, to the host at the far end.
    Forward,
    /// From the far end to the near end.
    Reverse,
}

/// One direction of a link, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// From the host at the near end of the paths to the host at the far end.
    Forward,
    /// From the far end to the near end.
    Reverse,
    /// Both directions.
    Both,
}

/// Values of a key that names one direction.
pub(crate) const ONE: OneOf<Direction> =
    OneOf(&[("forward", Direction::Forward), ("reverse", Direction::Reverse)]);

/// Values of a key that names one direction or both.
pub(crate) const ANY: OneOf<Directions> =
    OneOf(&[("forward", Directions::Forward), ("reverse", Directions::Reverse), ("both", Directions::Both)]);
