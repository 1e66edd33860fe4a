//! Names of paths, flows and links, and the references to them.

use super::error::ProblemKind;
use super::fault::Fault;
use super::key::{default_name, is_name};
use super::origin::Origin;
use super::reader::Reader;
use super::shape::{Placed, Text};

/// Names given so far in one list, by index.
pub(super) struct Names {
    /// What is named: `path`, `flow` or `link`.
    what: &'static str,
    names: Vec<String>,
    /// Whether there are more that were not read.
    cut: bool,
}

impl Names {
    pub(super) fn new(what: &'static str) -> Self {
        Names { what, names: Vec::new(), cut: false }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Complains about more than `most` elements and leaves them unread.
    pub(super) fn limit(&mut self, readers: &mut Vec<Reader<'_>>, most: usize) {
        let Some(extra) = readers.get(most) else { return };
        let message = format!("a scenario has at most {most} {}s", self.what);
        let help = format!("this is one of {}", readers.len());
        extra.fault_here(Fault::because(ProblemKind::OutOfRange, message, help));
        readers.truncate(most);
        self.cut = true;
    }

    /// Reads the name of the next element. An element whose name is wrong keeps its default name, so that references
    /// to the others are still understood.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Option<String> {
        let default = default_name(self.what, self.names.len());
        let given = reader.has("name");
        let name = reader.or("name", &Text, default.clone()).filter(|name| self.check(reader, name, given));
        self.names.push(name.clone().unwrap_or(default));
        name
    }

    fn check(&self, reader: &Reader<'_>, name: &str, given: bool) -> bool {
        if !is_name(name) {
            let expected = "up to 64 ASCII letters, digits, `-` and `_`, not all of them digits";
            reader.fault("name", Fault::invalid(expected, super::text::quoted(name)));
            return false;
        }
        if self.names.iter().any(|earlier| earlier == name) {
            let what = self.what;
            let help = if given {
                "choose another name"
            } else {
                "give this one a `name`: its default name is taken"
            };
            let message = format!("there are two {what}s named `{name}`");
            reader.fault("name", Fault::because(ProblemKind::Duplicate, message, help));
            return false;
        }
        true
    }

    /// The indices of elements that the list under `key` names.
    pub(super) fn resolve(&self, reader: &Reader<'_>, key: &str, wanted: &[Placed]) -> Option<Vec<usize>> {
        let indices: Vec<Option<usize>> =
            wanted.iter().map(|(name, origin)| self.resolve_one(reader, key, name, origin)).collect();
        indices.into_iter().collect()
    }

    fn resolve_one(&self, reader: &Reader<'_>, key: &str, name: &str, origin: &Origin) -> Option<usize> {
        let index = self.names.iter().position(|known| known == name);
        if index.is_none() && !self.cut {
            let message = format!("there is no {} named {}", self.what, super::text::quoted(name));
            let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let fault = Fault::unknown(ProblemKind::UnknownName, message, name, &known);
            reader.fault_at(origin, key, fault);
        }
        index
    }
}
