//! Components, which expressions add to a scheme with `+`.

use anabranch_core::policy::Policies;

use crate::definition::{Card, Parameter, Preset, Role, Values};

/// Component before its parameters are chosen.
#[derive(Debug)]
pub struct Component {
    /// Name in scheme expressions.
    pub name: &'static str,
    /// Description of one line.
    pub about: &'static str,
    /// Publication that describes the component.
    pub source: &'static str,
    /// Role that the component replaces in a scheme.
    pub role: Role,
    /// Set if the component is useful only for schemes that send new data on several paths.
    pub needs_multipath: bool,
    /// Parameters with their defaults.
    pub parameters: &'static [Parameter],
    /// Documentation card.
    pub card: Card,
    /// Inserts the component into a scheme's policies.
    pub(crate) apply: fn(&Values, Policies) -> Policies,
}

impl Component {
    /// Returns `true` if the component can be added to a scheme. It cannot if it needs several paths and the scheme uses one, or if
    /// it would replace a role that defines the scheme.
    pub fn fits(&self, base: &Preset) -> bool {
        (base.multipath || !self.needs_multipath) && !base.owns.contains(&self.role)
    }

    /// Returns the shortest expression with this component, based on the usual scheme if the component fits there.
    pub fn example(&self, presets: &[Preset]) -> String {
        const USUAL: &str = "cmt";
        let fitting = || presets.iter().filter(|preset| self.fits(preset)).map(|preset| preset.name);
        let base = fitting().find(|name| *name == USUAL).or_else(|| fitting().next());
        format!("{}+{}", base.unwrap_or("NAME"), self.name)
    }
}
