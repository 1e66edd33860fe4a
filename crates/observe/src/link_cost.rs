//! State of a link with a cost or limit, as its command reports it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Use of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Bytes cost nothing.
    Free,
    /// The link is for data that free links cannot carry.
    Metered,
    /// The link is for times without any other working link.
    Backup,
    /// The limit is used up.
    Barred,
}

impl Usage {
    /// All uses.
    pub const ALL: [Usage; 4] = [Usage::Free, Usage::Metered, Usage::Backup, Usage::Barred];

    /// Returns the name in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Usage::Free => "free",
            Usage::Metered => "metered",
            Usage::Backup => "backup",
            Usage::Barred => "barred",
        }
    }
}

impl From<anabranch_net::PathCost> for Usage {
    fn from(cost: anabranch_net::PathCost) -> Self {
        match cost {
            anabranch_net::PathCost::Free => Usage::Free,
            anabranch_net::PathCost::Metered => Usage::Metered,
            anabranch_net::PathCost::Backup => Usage::Backup,
        }
    }
}

/// State of a link with a cost or limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCost {
    /// Address or interface, as the user named it.
    pub name: String,
    /// Current use.
    pub usage: Usage,
    /// Bytes of IP packets that the command has sent and received.
    pub bytes: u64,
    /// Limit of the link, if it has one.
    pub limit: Option<LinkLimit>,
}

/// State of a limit, with the bytes of all commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLimit {
    /// Bytes of IP packets in the current period.
    pub used_bytes: u64,
    /// Maximum number of bytes in a period.
    pub limit_bytes: u64,
    /// Name of the period: `day`, `week` or `month`.
    pub period: String,
    /// First day of the next period in UTC, such as `2026-12-01`.
    pub until: String,
}

/// Function that returns the states of a command's links.
pub type LinkCostSource = Arc<dyn Fn() -> Vec<LinkCost> + Send + Sync>;
