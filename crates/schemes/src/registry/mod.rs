//! Schemes by name: presets, their parameters as data, and the expressions that select and configure them.
//!
//! ```
//! use anabranch_schemes::registry;
//!
//! let list = registry::parse_list("sctp,cmt(rtx=rtx-asap,trigger=4)").unwrap();
//! assert_eq!(list[1].to_string(), "cmt(rtx=rtx-asap,trigger=4)");
//! assert!(registry::parse("cmtt").unwrap_err().to_string().contains("did you mean `cmt`"));
//! ```

mod expression;

pub use crate::component::COMPONENTS;
pub use crate::definition::{
    Card, Choice, ChoiceParameter, Component, Equation, Kind, Length, Names, Parameter, Preset, Role, Value,
    Values, Weights,
};
pub use crate::preset::PRESETS;
pub use expression::{
    Addition, ExpressionError, NamedScheme, Owner, Vocabulary, parse, parse_list, split_list,
};

#[cfg(test)]
mod tests;
