//! Presets: the base schemes of expressions.

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::definition::{Card, Parameter, Role, Values};

/// Scheme before its parameters are chosen.
#[derive(Debug)]
pub struct Preset {
    /// Name in scheme expressions.
    pub name: &'static str,
    /// Description of one line.
    pub about: &'static str,
    /// Publication that describes the scheme.
    pub source: &'static str,
    /// Set if new data uses several paths.
    pub multipath: bool,
    /// Set if the windows of its paths are coupled, so that together they take about the share of one flow at a shared bottleneck.
    /// Uncoupled paths take the share of one flow each.
    pub coupled: bool,
    /// Reason why the scheme takes another share than `coupled` implies; empty if it does not. The book's chapter on fairness lists
    /// the shares.
    pub unfair_because: &'static str,
    /// Roles that define the scheme. Replacing one with a component would leave only the name of the scheme.
    pub owns: &'static [Role],
    /// Parameters with their defaults.
    pub parameters: &'static [Parameter],
    /// Documentation card.
    pub card: Card,
    /// Returns the profile of the scheme, derived from the profile's row.
    pub(crate) profile: fn(&Values, Profile) -> Profile,
    pub(crate) build: fn(&Values) -> Policies,
}
