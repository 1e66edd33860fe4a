//! Scheme that an expression describes: a preset, its components, and the values of all parameters.

use std::fmt;
use std::sync::Arc;

use anabranch_core::policy::{Policies, Scheme};
use anabranch_core::profile::Profile;

use crate::registry::expression::error::{listed, nearest};
use crate::registry::expression::grammar::{Argument, parenthesised};
use crate::registry::{Component, ExpressionError, Owner, Parameter, Preset, Values};

/// Parameter values of a scheme or component, and the arguments as written.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    values: Values,
    written: Vec<(&'static str, String)>,
}

impl Setting {
    fn defaults(parameters: &'static [Parameter]) -> Self {
        Setting { values: Values::defaults(parameters), written: Vec::new() }
    }

    /// Sets the values of the arguments, each parameter at most once.
    pub(super) fn set(
        &mut self,
        owner: impl Fn() -> Owner,
        arguments: &[Argument<'_>],
    ) -> Result<(), ExpressionError> {
        for (index, argument) in arguments.iter().enumerate() {
            if arguments[..index].iter().any(|earlier| earlier.name == argument.name) {
                return Err(ExpressionError::ParameterTwice {
                    owner: owner(),
                    name: argument.name.to_owned(),
                });
            }
            self.set_one(&owner, argument)?;
        }
        Ok(())
    }

    fn set_one(
        &mut self,
        owner: &impl Fn() -> Owner,
        argument: &Argument<'_>,
    ) -> Result<(), ExpressionError> {
        let parameters = self.values.parameters;
        let names = || parameters.iter().map(|parameter| parameter.name);
        let Some(at) = names().position(|name| name == argument.name) else {
            return Err(ExpressionError::UnknownParameter {
                owner: owner(),
                name: argument.name.to_owned(),
                nearest: nearest(argument.name, names()).map(str::to_owned),
                known: listed(names()),
            });
        };
        let value = parameters[at].read(argument.value).map_err(|expected| ExpressionError::BadValue {
            owner: owner(),
            name: argument.name.to_owned(),
            value: argument.value.to_owned(),
            expected,
        })?;
        self.values.values[at] = value;
        let name = parameters[at].name;
        self.written.retain(|(earlier, _)| *earlier != name);
        self.written.push((name, argument.value.split_whitespace().collect()));
        Ok(())
    }

    fn text(&self) -> String {
        parenthesised(self.written.iter().map(|(name, value)| (*name, value.clone())))
    }
}

/// Component added to a scheme, with its parameters chosen.
#[derive(Clone, Debug)]
pub struct Addition {
    component: &'static Component,
    pub(super) setting: Setting,
}

impl Addition {
    pub(super) fn of(component: &'static Component) -> Self {
        Addition { component, setting: Setting::defaults(component.parameters) }
    }

    /// Returns the component.
    pub fn component(&self) -> &'static Component {
        self.component
    }

    /// Returns the values of its parameters.
    pub fn values(&self) -> &Values {
        &self.setting.values
    }
}

/// Scheme with chosen parameters and added components, for the configuration of an association.
#[derive(Clone, Debug)]
pub struct NamedScheme {
    preset: &'static Preset,
    pub(super) setting: Setting,
    pub(super) additions: Vec<Addition>,
    /// Display name: the name of its definition, or else the expression as written, without blanks.
    pub(super) text: String,
}

impl NamedScheme {
    pub(super) fn of(preset: &'static Preset) -> Self {
        NamedScheme {
            preset,
            setting: Setting::defaults(preset.parameters),
            additions: Vec::new(),
            text: String::new(),
        }
    }

    pub(super) fn called(self, text: String) -> Self {
        NamedScheme { text, ..self }
    }

    /// Returns the preset.
    pub fn preset(&self) -> &'static Preset {
        self.preset
    }

    /// Returns the values of the preset's parameters.
    pub fn values(&self) -> &Values {
        &self.setting.values
    }

    /// Returns the added components, in the order of the expression.
    pub fn additions(&self) -> &[Addition] {
        &self.additions
    }

    /// Returns the expression in terms of presets and components only, without defined names.
    pub fn expression(&self) -> String {
        let mut text = format!("{}{}", self.preset.name, self.setting.text());
        for addition in &self.additions {
            text += &format!("+{}{}", addition.component.name, addition.setting.text());
        }
        text
    }

    /// Converts the scheme for the configuration of an association.
    pub fn into_scheme(self) -> Arc<dyn Scheme> {
        Arc::new(self)
    }
}

/// Display name: the name of its definition, or else the expression as written, without blanks.
impl fmt::Display for NamedScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Scheme for NamedScheme {
    fn policies(&self) -> Policies {
        let base = (self.preset.build)(self.values());
        self.additions.iter().fold(base, |policies, added| (added.component.apply)(added.values(), policies))
    }

    fn is_multipath(&self) -> bool {
        self.preset.multipath
    }

    fn profile(&self, row: Profile) -> Profile {
        (self.preset.profile)(self.values(), row)
    }
}
