//! Components: what can be added to a scheme with `+`.

use anabranch_core::policy::Policies;

use crate::definition::{Card, Parameter, Preset, Role, Values};

/// A component before its parameters are chosen.
#[derive(Debug)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// What it takes the place of.
    pub role: Role,
    /// Whether it makes sense only for schemes that send new data on several paths.
    pub needs_multipath: bool,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The rest of what it says about itself.
    pub card: Card,
    /// Puts itself into a scheme's policies.
    pub(crate) apply: fn(&Values, Policies) -> Policies,
}

impl Component {
    /// Whether it can be added to a scheme: not where it needs several paths and finds one, and not where it would replace
    /// what defines the scheme.
    pub fn fits(&self, base: &Preset) -> bool {
        (base.multipath || !self.needs_multipath) && !base.owns.contains(&self.role)
    }

    /// The shortest expression that has it, with the scheme that most of them are thought for if it fits there.
    pub fn example(&self, presets: &[Preset]) -> String {
        const USUAL: &str = "cmt";
        let fitting = || presets.iter().filter(|preset| self.fits(preset)).map(|preset| preset.name);
        let base = fitting().find(|name| *name == USUAL).or_else(|| fitting().next());
        format!("{}+{}", base.unwrap_or("NAME"), self.name)
    }
}
