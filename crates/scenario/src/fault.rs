//! Faults in values of a scenario, before the report adds their place in the text.

use crate::error::ProblemKind;
use crate::origin::Origin;

/// Fault in one value of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Fault(pub(crate) Box<Details>);

#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub(crate) kind: ProblemKind,
    /// Origin of the faulty part, if it is known more exactly than that of the whole value.
    pub(crate) at: Option<Origin>,
    /// Message. By default it consists of the kind of problem and the key.
    pub(crate) message: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) nearest: Option<String>,
    pub(crate) help: Option<String>,
}

impl Fault {
    pub(crate) fn new(kind: ProblemKind) -> Self {
        let details =
            Details { kind, at: None, message: None, expected: None, found: None, nearest: None, help: None };
        Fault(Box::new(details))
    }

    /// Returns the fault of an invalid value.
    pub(crate) fn invalid(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault::new(ProblemKind::InvalidValue).with_expected(expected).with_found(found)
    }

    /// Returns the fault of a value outside its range.
    pub(crate) fn out_of_range(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault::new(ProblemKind::OutOfRange).with_expected(expected).with_found(found)
    }

    /// Returns a fault with this message and remedy.
    pub(crate) fn explained(kind: ProblemKind, message: impl Into<String>, help: impl Into<String>) -> Self {
        Fault::new(kind).with_message(message).with_help(help)
    }

    /// Returns the fault of a word that is not in `known`.
    pub(crate) fn unknown(kind: ProblemKind, message: String, word: &str, known: &[&str]) -> Self {
        let fault = Fault::new(kind).with_message(message).near(word, known.iter().copied());
        match known {
            [] => fault.with_help("there are none"),
            [one] => fault.with_expected(format!("`{one}`")),
            many => fault.with_expected(format!("one of: {}", many.join(", "))),
        }
    }

    pub(crate) fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    pub(crate) fn has_proposal(&self) -> bool {
        self.0.nearest.is_some()
    }

    pub(crate) fn at(mut self, origin: &Origin) -> Self {
        self.0.at = Some(origin.clone());
        self
    }

    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into());
        self
    }

    pub(crate) fn with_expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    pub(crate) fn with_found(mut self, found: impl Into<String>) -> Self {
        self.0.found = Some(found.into());
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Proposes the known word nearest to `word`, if one is near enough.
    pub(crate) fn near<'w>(self, word: &str, known: impl IntoIterator<Item = &'w str>) -> Self {
        let nearest = crate::nearest(word, known).map(str::to_owned);
        self.proposing(nearest)
    }

    pub(crate) fn proposing(mut self, nearest: Option<String>) -> Self {
        self.0.nearest = nearest;
        self
    }

    pub(crate) fn message(&self, key: &str) -> String {
        let plain = match self.0.kind {
            ProblemKind::OutOfRange => format!("`{key}` is out of range"),
            ProblemKind::MissingKey => format!("missing key `{key}`"),
            ProblemKind::UnknownKey => format!("unknown key `{key}`"),
            _ => format!("invalid value for `{key}`"),
        };
        self.0.message.clone().unwrap_or(plain)
    }
}
