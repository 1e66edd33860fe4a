//! Costs of paths, which both sides know and schemes may honour.

/// Cost of sending on a path, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathCost {
    /// Bytes cost nothing.
    #[default]
    Free,
    /// Bytes cost money or volume: the path is for data for which free paths do not suffice.
    Metered,
    /// Reserve: the path is for times without any other working path.
    Backup,
}

impl PathCost {
    /// Returns the value of the HEARTBEAT parameter.
    pub(crate) const fn code(self) -> u8 {
        match self {
            PathCost::Free => 0,
            PathCost::Metered => 1,
            PathCost::Backup => 2,
        }
    }

    /// Returns the cost with this value in the HEARTBEAT parameter, if there is one.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(PathCost::Free),
            1 => Some(PathCost::Metered),
            2 => Some(PathCost::Backup),
            _ => None,
        }
    }

    /// Returns the highest cost below this one, or `Free`.
    pub(crate) const fn next_cheaper(self) -> Self {
        match self {
            PathCost::Free | PathCost::Metered => PathCost::Free,
            PathCost::Backup => PathCost::Metered,
        }
    }

    /// Returns the name in one word.
    pub const fn name(self) -> &'static str {
        match self {
            PathCost::Free => "free",
            PathCost::Metered => "metered",
            PathCost::Backup => "backup",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_code_is_no_cost() {
        for cost in [PathCost::Free, PathCost::Metered, PathCost::Backup] {
            assert_eq!(PathCost::from_code(cost.code()), Some(cost));
        }
        assert_eq!(PathCost::from_code(3), None);
        assert_eq!(PathCost::from_code(255), None);
    }
}
