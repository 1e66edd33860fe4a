//! Documentation cards of schemes and components, as data. The command line and the book print them.

/// File of core that processes SACKs, for the rules that it implements.
pub(crate) const SACK_PROCESSING: &str = "crates/core/src/association/sack_in.rs";

/// Rule that a scheme implements, and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equation {
    /// Name in the publication, such as `equation 5` or `Algorithm 2`.
    pub name: &'static str,
    /// Rule in the field's notation.
    pub rule: &'static str,
    /// Implementing file, as returned by `file!()` there.
    pub file: &'static str,
}

impl Equation {
    /// Returns the implementing file, relative to the root of the repository. The prefix of `file!()` depends on the workspace that
    /// is built: this one, or one that depends on this crate by a path.
    pub fn place(&self) -> &'static str {
        self.file.rfind("crates/").map_or(self.file, |start| &self.file[start..])
    }
}

/// Point on which the publication is silent or contradictory, and its resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Open question.
    pub question: &'static str,
    /// Choice and its reason.
    pub answer: &'static str,
    /// Parameter that selects another choice, or several separated by commas; empty if there is none.
    pub parameter: &'static str,
}

impl Choice {
    /// Iterates over the parameters that select another choice.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.parameter.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

/// Information for readers about a scheme or component. Rules and choices are grouped, so that schemes can share groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Summary of at most five lines.
    pub summary: &'static [&'static str],
    /// Implemented rules.
    pub equations: &'static [&'static [Equation]],
    /// Open questions and choices.
    pub choices: &'static [&'static [Choice]],
}

impl Card {
    /// Iterates over the implemented rules.
    pub fn equations(&self) -> impl Iterator<Item = &'static Equation> + use<> {
        self.equations.iter().copied().flatten()
    }

    /// Iterates over the open questions and choices.
    pub fn choices(&self) -> impl Iterator<Item = &'static Choice> + use<> {
        self.choices.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_named_from_the_root_in_every_workspace() {
        let place = |file| Equation { name: "", rule: "", file }.place();
        let expected = "crates/schemes/src/definition/card.rs";
        assert_eq!(place(file!()), expected);
        assert_eq!(place("/src/crates/a/../crates/schemes/src/definition/card.rs"), expected);
        assert_eq!(place("src/elsewhere.rs"), "src/elsewhere.rs");
    }
}
