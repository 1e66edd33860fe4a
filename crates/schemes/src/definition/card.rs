//! Documentation cards of schemes and components, as data: the command line and the book print them.

/// The file of core that processes SACKs, for the rules that it implements.
pub(crate) const SACK_PROCESSING: &str = "crates/core/src/association/sack_in.rs";

/// A rule that a scheme implements, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equation {
    /// What the publication calls it, such as `equation 5` or `Algorithm 2`.
    pub name: &'static str,
    /// The rule itself, in the field's notation.
    pub rule: &'static str,
    /// The file that implements it, as `file!()` names it there.
    pub file: &'static str,
}

impl Equation {
    /// The file that implements it, from the root of the repository. What `file!()` begins with depends on the workspace that is
    /// built: this one, or one that depends on this crate by a path.
    pub fn place(&self) -> &'static str {
        self.file.rfind("crates/").map_or(self.file, |start| &self.file[start..])
    }
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

/// What a reader should know before using it. Rules and choices are in groups, so that schemes share those that they have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// What it does, in at most five lines.
    pub summary: &'static [&'static str],
    /// The rules it implements.
    pub equations: &'static [&'static [Equation]],
    /// Open points and choices.
    pub choices: &'static [&'static [Choice]],
}

impl Card {
    /// The rules it implements.
    pub fn equations(&self) -> impl Iterator<Item = &'static Equation> + use<> {
        self.equations.iter().copied().flatten()
    }

    /// Open points and choices.
    pub fn choices(&self) -> impl Iterator<Item = &'static Choice> + use<> {
        self.choices.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_from_the_root_whatever_workspace_is_built() {
        let place = |file| Equation { name: "", rule: "", file }.place();
        let expected = "crates/schemes/src/definition/card.rs";
        assert_eq!(place(file!()), expected);
        assert_eq!(place("/src/crates/a/../crates/schemes/src/definition/card.rs"), expected);
        assert_eq!(place("src/elsewhere.rs"), "src/elsewhere.rs");
    }
}
