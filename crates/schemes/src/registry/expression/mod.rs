//! Scheme expressions: `base(parameter=value,…)+component(…)`, and lists of them.

mod error;
mod grammar;
mod named;
mod vocabulary;

pub use error::{ExpressionError, Owner};
pub use grammar::split_list;
pub use named::{Addition, NamedScheme};
pub use vocabulary::{Vocabulary, parse, parse_list};

#[cfg(test)]
mod tests;
