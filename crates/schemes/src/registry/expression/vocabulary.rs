//! Names in expressions, and the components that fit each scheme.

use crate::registry::expression::error::{listed, nearest};
use crate::registry::expression::grammar::{Term, base_name, split_list, terms};
use crate::registry::expression::named::{Addition, NamedScheme};
use crate::registry::{COMPONENTS, Component, ExpressionError, Owner, PRESETS, Preset};

/// Name of the list of all presets.
const ALL: &str = "all";

/// Names that expressions consist of: presets, components, and defined schemes.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    pub(super) presets: &'static [Preset],
    pub(super) components: &'static [Component],
    pub(super) defined: Vec<NamedScheme>,
}

impl Default for Vocabulary {
    /// Returns the vocabulary without definitions.
    fn default() -> Self {
        Vocabulary { presets: PRESETS, components: COMPONENTS, defined: Vec::new() }
    }
}

/// Parses a list of schemes. `all` selects every preset with its defaults.
///
/// # Errors
/// Returns [`ExpressionError`] for the first invalid scheme.
pub fn parse_list(text: &str) -> Result<Vec<NamedScheme>, ExpressionError> {
    Vocabulary::default().parse_list(text)
}

/// Parses one scheme.
///
/// # Errors
/// Returns [`ExpressionError`] if the expression is invalid.
pub fn parse(text: &str) -> Result<NamedScheme, ExpressionError> {
    Vocabulary::default().parse(text)
}

impl Vocabulary {
    /// Adds definitions of a name and an expression each, which may refer to each other in any order. Returns the errors with the
    /// index of their definition. Invalid definitions, and those that depend on them, are omitted.
    pub fn define(mut self, definitions: &[(&str, &str)]) -> (Self, Vec<(usize, ExpressionError)>) {
        let mut faults: Vec<(usize, ExpressionError)> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (index, (name, _)) in definitions.iter().enumerate() {
            match self.taken(name) {
                Some(taken) => {
                    faults.push((index, ExpressionError::Shadows { name: (*name).to_owned(), taken }));
                }
                None => open.push(index),
            }
        }
        let left = self.define_open(definitions, open, &mut faults);
        faults.extend(left.iter().filter_map(|&index| Some((index, circle(definitions, index)?))));
        faults.sort_by_key(|(index, _)| *index);
        (self, faults)
    }

    /// Repeatedly parses the definitions that do not depend on unparsed ones. Returns those left when none can be parsed: members
    /// of a cycle, and definitions that depend on a cycle.
    fn define_open(
        &mut self,
        definitions: &[(&str, &str)],
        mut open: Vec<usize>,
        faults: &mut Vec<(usize, ExpressionError)>,
    ) -> Vec<usize> {
        let mut failed: Vec<&str> = Vec::new();
        loop {
            let waiting: Vec<&str> = open.iter().map(|&index| definitions[index].0).collect();
            let waits = |index: &usize| waiting.contains(&base_name(definitions[*index].1));
            let (later, now): (Vec<usize>, Vec<usize>) = open.into_iter().partition(waits);
            open = later;
            if now.is_empty() {
                return open;
            }
            for index in now {
                let (name, text) = definitions[index];
                if failed.contains(&base_name(text)) {
                    failed.push(name);
                    continue;
                }
                match self.parse(text) {
                    Ok(scheme) => self.defined.push(scheme.called(name.to_owned())),
                    Err(fault) => {
                        failed.push(name);
                        faults.push((index, fault));
                    }
                }
            }
        }
    }

    fn taken(&self, name: &str) -> Option<&'static str> {
        if name == ALL {
            Some("the word for every scheme")
        } else if self.preset(name).is_some() || self.defined(name).is_some() {
            Some("the name of a scheme")
        } else if self.component(name).is_some() {
            Some("the name of a component")
        } else {
            None
        }
    }

    fn preset(&self, name: &str) -> Option<&'static Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }

    fn component(&self, name: &str) -> Option<&'static Component> {
        self.components.iter().find(|component| component.name == name)
    }

    fn defined(&self, name: &str) -> Option<&NamedScheme> {
        self.defined.iter().find(|scheme| scheme.text == name)
    }

    /// Iterates over the names of schemes.
    fn scheme_names(&self) -> impl Iterator<Item = &str> {
        let defined = self.defined.iter().map(|scheme| scheme.text.as_str());
        self.presets.iter().map(|preset| preset.name).chain(defined)
    }

    fn component_names(&self) -> impl Iterator<Item = &'static str> {
        self.components.iter().map(|component| component.name)
    }

    /// Returns the names of the components that fit a preset.
    fn fitting(&self, base: &Preset) -> String {
        listed(
            self.components.iter().filter(|component| component.fits(base)).map(|component| component.name),
        )
    }

    /// Returns an expression with this component.
    fn example(&self, component: &Component) -> String {
        component.example(self.presets)
    }

    /// Parses a list of schemes. `all` selects every preset with its defaults.
    ///
    /// # Errors
    /// Returns [`ExpressionError`] for the first invalid scheme.
    pub fn parse_list(&self, text: &str) -> Result<Vec<NamedScheme>, ExpressionError> {
        let mut schemes = Vec::new();
        for part in split_list(text) {
            if part == ALL {
                for preset in self.presets {
                    schemes.push(self.parse(preset.name)?);
                }
            } else {
                schemes.push(self.parse(part)?);
            }
        }
        if schemes.is_empty() {
            return Err(ExpressionError::Form { text: text.to_owned(), problem: "it is empty" });
        }
        Ok(schemes)
    }

    /// Parses one scheme.
    ///
    /// # Errors
    /// Returns [`ExpressionError`] if the expression is invalid.
    pub fn parse(&self, text: &str) -> Result<NamedScheme, ExpressionError> {
        let terms = terms(text)?;
        let Some((first, rest)) = terms.split_first() else {
            return Err(ExpressionError::Form { text: text.to_owned(), problem: "it is empty" });
        };
        let mut scheme = self.base(first)?;
        scheme.setting.set(|| Owner::Scheme(first.name.to_owned()), &first.arguments)?;
        for term in rest {
            let addition = self.addition(&scheme, term)?;
            scheme.additions.push(addition);
        }
        let text: Vec<String> = terms.iter().map(Term::canonical).collect();
        Ok(scheme.called(text.join("+")))
    }

    fn base(&self, term: &Term<'_>) -> Result<NamedScheme, ExpressionError> {
        let name = term.name;
        if let Some(preset) = self.preset(name) {
            return Ok(NamedScheme::of(preset));
        }
        if let Some(scheme) = self.defined(name) {
            return Ok(scheme.clone());
        }
        if let Some(component) = self.component(name) {
            return Err(ExpressionError::ComponentAsScheme {
                name: name.to_owned(),
                example: self.example(component),
            });
        }
        let near_scheme = nearest(name, self.scheme_names()).map(str::to_owned);
        let near_component = || nearest(name, self.component_names()).and_then(|name| self.component(name));
        Err(ExpressionError::UnknownScheme {
            name: name.to_owned(),
            nearest: near_scheme.or_else(|| near_component().map(|component| self.example(component))),
            known: listed(self.scheme_names()),
        })
    }

    /// Parses the component that a term adds to the preceding terms.
    fn addition(&self, scheme: &NamedScheme, term: &Term<'_>) -> Result<Addition, ExpressionError> {
        let Some(component) = self.component(term.name) else { return Err(self.no_component(term.name)) };
        self.check_combination(scheme, component)?;
        let mut addition = Addition::of(component);
        addition.setting.set(|| Owner::Component(component.name.to_owned()), &term.arguments)?;
        Ok(addition)
    }

    fn no_component(&self, name: &str) -> ExpressionError {
        let (name, known) = (name.to_owned(), listed(self.component_names()));
        if self.scheme_names().any(|scheme| scheme == name) {
            return ExpressionError::SchemeAsComponent { name, known };
        }
        let nearest = nearest(&name, self.component_names()).or_else(|| nearest(&name, self.scheme_names()));
        ExpressionError::UnknownComponent { nearest: nearest.map(str::to_owned), name, known }
    }

    fn check_combination(
        &self,
        scheme: &NamedScheme,
        component: &'static Component,
    ) -> Result<(), ExpressionError> {
        let (name, base) = (component.name.to_owned(), scheme.preset());
        let mut earlier = scheme.additions.iter().map(Addition::component);
        if let Some(first) = earlier.find(|earlier| earlier.role == component.role) {
            return Err(match first.name == component.name {
                true => ExpressionError::ComponentTwice { name },
                false => {
                    let first = first.name.to_owned();
                    ExpressionError::SameRole { first, second: name, role: component.role }
                }
            });
        }
        let (base_name, fitting) = (base.name.to_owned(), || self.fitting(base));
        if component.needs_multipath && !base.multipath {
            return Err(ExpressionError::NeedsMultipath {
                component: name,
                base: base_name,
                fitting: fitting(),
            });
        }
        if base.owns.contains(&component.role) {
            return Err(ExpressionError::Owned {
                component: name,
                base: base_name,
                role: component.role,
                fitting: fitting(),
            });
        }
        Ok(())
    }
}

/// Returns the cycle that a definition is part of, or `None` if it only depends on one.
fn circle(definitions: &[(&str, &str)], start: usize) -> Option<ExpressionError> {
    let first = definitions[start].0;
    let mut names = vec![first];
    let mut at = start;
    while names.len() <= definitions.len() {
        let next = base_name(definitions[at].1);
        names.push(next);
        if next == first {
            return Some(ExpressionError::Circle { circle: names.join(" → ") });
        }
        at = definitions.iter().position(|(name, _)| *name == next)?;
    }
    None
}
