//! The presets: what each scheme is made of, one file each.

mod cmt;
mod cmt_pf;
mod naive_cmt;
mod sctp;
pub(crate) mod shared;

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::registry::{Card, Parameter, Values};

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
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The rest of what it says about itself.
    pub card: Card,
    /// The rules it runs under, given those of the profile's row.
    pub(crate) profile: fn(&Values, Profile) -> Profile,
    pub(crate) build: fn(&Values) -> Policies,
}

/// For a scheme that sets no rule of its own.
pub(crate) fn unchanged(_: &Values, row: Profile) -> Profile {
    row
}

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[sctp::PRESET, naive_cmt::PRESET, cmt::PRESET, cmt_pf::PRESET];

#[cfg(test)]
mod tests;
