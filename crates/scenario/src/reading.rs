//! Reads keys of a table by their forms.

use crate::form::{Form, OneOf};
use crate::reader::Reader;

impl Reader<'_> {
    /// A value that need not be given: `None` if it is wrong, `Some(None)` if it is not given.
    pub(crate) fn optional<F: Form>(&mut self, key: &'static str, form: &F) -> Option<Option<F::Output>> {
        let Some(node) = self.node(key) else { return Some(None) };
        form.read_key(self, key, node).map(Some)
    }

    /// A value with a default.
    pub(crate) fn or<F: Form>(
        &mut self,
        key: &'static str,
        form: &F,
        default: F::Output,
    ) -> Option<F::Output> {
        self.optional(key, form).map(|value| value.unwrap_or(default))
    }

    /// A value that has to be given.
    pub(crate) fn required<F: Form>(&mut self, key: &'static str, form: &F) -> Option<F::Output> {
        let value = self.optional(key, form)?;
        if value.is_none() {
            self.missing(key, form.expected());
        }
        value
    }

    /// The word that selects which of the following keys apply.
    pub(crate) fn select<T: Copy + PartialEq>(
        &mut self,
        key: &'static str,
        words: &OneOf<T>,
        default: Option<T>,
    ) -> Option<T> {
        let value = match default {
            Some(default) => self.or(key, words, default),
            None => self.required(key, words),
        };
        self.set_selected(key, value.map(|value| words.word(value)));
        value
    }
}
