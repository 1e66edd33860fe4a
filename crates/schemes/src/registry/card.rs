//! What a scheme or a component tells a reader about itself, as data: the command line and the book print it.

/// A rule that a scheme implements, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equation {
    /// How the publication calls it, such as `equation 5` or `Algorithm 2`.
    pub name: &'static str,
    /// The rule itself, in the field's notation.
    pub rule: &'static str,
    /// The file that implements it, from the root of the repository.
    pub place: &'static str,
}

/// A point at which the publication is silent or contradicts itself, and what was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is open.
    pub question: &'static str,
    /// What was chosen, and why.
    pub answer: &'static str,
    /// The parameter that chooses otherwise, or several divided by commas; empty if there is none.
    pub parameter: &'static str,
}

impl Choice {
    /// The parameters that choose otherwise.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.parameter.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

/// What a reader should know before using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// What it does, in at most five lines.
    pub summary: &'static [&'static str],
    /// The rules it implements.
    pub equations: &'static [Equation],
    /// Open points and choices.
    pub choices: &'static [Choice],
}
