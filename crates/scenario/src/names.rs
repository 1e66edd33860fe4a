//! Names of paths, flows and links, and the references to them.

use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::form::{Form as _, Name, Placed};
use crate::key::default_name;
use crate::origin::Origin;
use crate::reader::Reader;

/// Names of one list so far, by index.
pub(crate) struct Names {
    /// Kind of the elements: `path`, `flow` or `link`.
    what: &'static str,
    names: Vec<String>,
    /// Set if the list has further elements that were not read.
    cut: bool,
}

impl Names {
    pub(crate) fn new(what: &'static str) -> Self {
        Names { what, names: Vec::new(), cut: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Reports more than `most` elements, and ignores the others.
    pub(crate) fn limit(&mut self, readers: &mut Vec<Reader<'_>>, most: usize) {
        let Some(extra) = readers.get(most) else { return };
        let message = format!("a scenario has at most {most} {}s", self.what);
        let help = format!("this is one of {}", readers.len());
        extra.fault_here(Fault::explained(ProblemKind::OutOfRange, message, help));
        readers.truncate(most);
        self.cut = true;
    }

    /// Returns the name of the next element, and reports a name that is used twice. An element with an invalid name keeps its
    /// default name, so that references to the others are still resolved.
    pub(crate) fn add(&mut self, reader: &Reader<'_>) -> Option<String> {
        let default = default_name(self.what, self.names.len());
        let given = reader.peek("name").map(|node| Name.read(node));
        let wrong = matches!(given, Some(Err(_)));
        let name = given.and_then(Result::ok).unwrap_or(default);
        let free = wrong || self.check(reader, &name);
        self.names.push(name.clone());
        (free && !wrong).then_some(name)
    }

    fn check(&self, reader: &Reader<'_>, name: &str) -> bool {
        if !self.names.iter().any(|earlier| earlier == name) {
            return true;
        }
        let help = if reader.has("name") {
            "choose another name"
        } else {
            "give this one a `name`: its default name is taken"
        };
        let message = format!("there are two {}s named `{name}`", self.what);
        reader.fault("name", Fault::explained(ProblemKind::Duplicate, message, help));
        false
    }

    /// Returns the indices of the elements in the list under `key`.
    pub(crate) fn resolve(&self, reader: &Reader<'_>, key: &str, wanted: &[Placed]) -> Option<Vec<usize>> {
        let indices: Vec<Option<usize>> =
            wanted.iter().map(|(name, origin)| self.resolve_one(reader, key, name, origin)).collect();
        indices.into_iter().collect()
    }

    fn resolve_one(&self, reader: &Reader<'_>, key: &str, name: &str, origin: &Origin) -> Option<usize> {
        let index = self.names.iter().position(|known| known == name);
        if index.is_none() && !self.cut {
            let message = format!("no {} is named {}", self.what, crate::text::quoted(name));
            let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let fault = Fault::unknown(ProblemKind::UnknownName, message, name, &known);
            reader.fault_at(origin, key, fault);
        }
        index
    }
}
