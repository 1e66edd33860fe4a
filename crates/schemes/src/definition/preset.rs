//! Presets: the schemes that expressions begin with.

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::definition::{Card, Parameter, Role, Values};

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
