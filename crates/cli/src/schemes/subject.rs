//! Subject of a card: a scheme or a component.

use anabranch_schemes::registry::{COMPONENTS, Card, Component, Kind, PRESETS, Parameter, Preset};

/// A scheme or a component.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    Scheme(&'static Preset),
    Component(&'static Component),
}

impl Subject {
    /// Returns schemes, then components, in the order in which they are listed.
    pub(crate) fn all() -> Vec<Subject> {
        let schemes = PRESETS.iter().map(Subject::Scheme);
        schemes.chain(COMPONENTS.iter().map(Subject::Component)).collect()
    }

    pub(crate) fn named(name: &str) -> Option<Subject> {
        Subject::all().into_iter().find(|subject| subject.name() == name)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Subject::Scheme(preset) => preset.name,
            Subject::Component(component) => component.name,
        }
    }

    pub(crate) fn about(&self) -> &'static str {
        match self {
            Subject::Scheme(preset) => preset.about,
            Subject::Component(component) => component.about,
        }
    }

    pub(crate) fn source(&self) -> &'static str {
        match self {
            Subject::Scheme(preset) => preset.source,
            Subject::Component(component) => component.source,
        }
    }

    pub(crate) fn parameters(&self) -> &'static [Parameter] {
        match self {
            Subject::Scheme(preset) => preset.parameters,
            Subject::Component(component) => component.parameters,
        }
    }

    pub(crate) fn card(&self) -> &'static Card {
        match self {
            Subject::Scheme(preset) => &preset.card,
            Subject::Component(component) => &component.card,
        }
    }

    /// Returns the components that can be added to a scheme, or the schemes to which a component can be added.
    pub(crate) fn partners(&self) -> Vec<&'static str> {
        match self {
            Subject::Scheme(preset) => {
                COMPONENTS.iter().filter(|other| other.fits(preset)).map(|other| other.name).collect()
            }
            Subject::Component(component) => {
                PRESETS.iter().filter(|preset| component.fits(preset)).map(|preset| preset.name).collect()
            }
        }
    }

    /// Returns the shortest expression with a parameter, if there is one.
    pub(crate) fn example(&self) -> String {
        let parameter = self.parameters().first();
        let setting = parameter.map(|one| format!("({}={})", one.name, one.default)).unwrap_or_default();
        match self {
            Subject::Scheme(preset) => format!("{}{setting}", preset.name),
            Subject::Component(component) => format!("{}{setting}", component.example(PRESETS)),
        }
    }

    /// Returns a label and a text: the destination of new data, or the part of a scheme that a component replaces.
    pub(crate) fn place(&self) -> (&'static str, String) {
        match self {
            Subject::Scheme(Preset { multipath: true, .. }) => {
                ("new data", "on several paths at once".to_owned())
            }
            Subject::Scheme(_) => ("new data", "on the primary path only".to_owned()),
            Subject::Component(component) => {
                ("role", format!("{}, which {}", component.role, component.role.about()))
            }
        }
    }
}

/// Returns the share of a multipath scheme on a common bottleneck. Returns `None` for a single path and for components.
pub(crate) fn fairness(subject: &Subject) -> Option<String> {
    let Subject::Scheme(preset @ Preset { multipath: true, .. }) = subject else { return None };
    let windows = match preset.coupled {
        true => "windows coupled, to take about one flow's share of a shared bottleneck in all",
        false => "windows not coupled, to take one flow's share of a shared bottleneck with each path",
    };
    Some(match preset.unfair_because {
        "" => windows.to_owned(),
        because => format!("{windows}; but it does not. {because}"),
    })
}

/// Returns a parameter's default with its unit.
pub(crate) fn default_of(parameter: &Parameter) -> String {
    format!("{} {}", parameter.default, parameter.unit).trim_end().to_owned()
}

/// Returns the values of a parameter, in words.
pub(crate) fn values_of(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Switch => "true, false".to_owned(),
        Kind::Count { min, max } => format!("whole numbers from {min} to {max}"),
        Kind::Choice(choice) => choice.names().join(", "),
        Kind::Milliseconds { min, max } => format!("{min}ms to {max}ms"),
        Kind::Decimal { min, max } => format!("numbers from {min} to {max}"),
        Kind::Length => "bytes or largest chunks, such as 1468B or 1.5MTU".to_owned(),
        Kind::Weights => "a whole number per path, such as 3:1".to_owned(),
    }
}
