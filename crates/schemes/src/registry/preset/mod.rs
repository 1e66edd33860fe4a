//! The presets: what each scheme is made of, one file each.

mod a_cmt;
mod bonded;
mod cmt;
mod cmt_dfr;
mod cmt_pf;
mod cmt_qa;
mod cmt_rpv1;
mod cmt_rpv2;
mod db_cmt;
mod mptcp_balia;
mod mptcp_lia;
mod mptcp_ns2;
mod mptcp_olia;
mod naive_cmt;
pub(crate) mod rules;
mod sctp;
pub(crate) mod shared;
mod smt_afr;

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::registry::{Card, Parameter, Role, Values};

/// A scheme before its parameters are chosen.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Whether new data uses several paths.
    pub multipath: bool,
    /// Whether its paths' windows are coupled, so that where they share a bottleneck they together take about what one flow takes.
    /// Paths that are not coupled take one flow's share each.
    pub coupled: bool,
    /// Why it takes another share than that, if it does (the book's chapter on fairness has the shares); empty otherwise.
    pub unfair_because: &'static str,
    /// The roles in which it is what it is: a component of such a role would leave nothing of it but the name.
    pub owns: &'static [Role],
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The rest of what it says about itself.
    pub card: Card,
    /// The rules it runs under, given those of the profile's row.
    pub(crate) profile: fn(&Values, Profile) -> Profile,
    pub(crate) build: fn(&Values) -> Policies,
}

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[
    sctp::PRESET,
    naive_cmt::PRESET,
    cmt::PRESET,
    cmt_pf::PRESET,
    a_cmt::PRESET,
    db_cmt::PRESET,
    cmt_dfr::PRESET,
    cmt_qa::PRESET,
    mptcp_lia::PRESET,
    mptcp_olia::PRESET,
    mptcp_balia::PRESET,
    mptcp_ns2::PRESET,
    cmt_rpv1::PRESET,
    cmt_rpv2::PRESET,
    smt_afr::PRESET,
    bonded::PRESET,
];

#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;
