//! Reading of keys by their forms.

use crate::form::{Form, OneOf};
use crate::reader::Reader;

impl Reader<'_> {
    /// Reads an optional value. Returns `None` if it is invalid, and `Some(None)` if it is missing.
    pub(crate) fn optional<F: Form>(&mut self, key: &'static str, form: &F) -> Option<Option<F::Output>> {
        let Some(node) = self.node(key) else { return Some(None) };
        form.read_key(self, key, node).map(Some)
    }

    /// Reads a value with a default.
    pub(crate) fn or<F: Form>(
        &mut self,
        key: &'static str,
        form: &F,
        default: F::Output,
    ) -> Option<F::Output> {
        self.optional(key, form).map(|value| value.unwrap_or(default))
    }

    /// Reads a required value.
    pub(crate) fn required<F: Form>(&mut self, key: &'static str, form: &F) -> Option<F::Output> {
        let value = self.optional(key, form)?;
        if value.is_none() {
            self.missing(key, form.expected());
        }
        value
    }

    /// Reads the word that selects the applicable keys among the following ones.
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
