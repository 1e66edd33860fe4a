//! Schemes by name: presets, their parameters as data, and the expressions that select and adjust them.
//!
//! ```
//! use anabranch_schemes::registry;
//!
//! let list = registry::parse_list("sctp,cmt(rtx=rtx-asap,trigger=4)").unwrap();
//! assert_eq!(list[1].to_string(), "cmt(rtx=rtx-asap,trigger=4)");
//! assert!(registry::parse("cmtt").unwrap_err().to_string().contains("did you mean `cmt`"));
//! ```

mod card;
mod combination;
mod component;
mod expression;
mod parameter;
mod preset;

pub use card::{Card, Choice, Equation};
pub use component::{COMPONENTS, Component, Role};
pub use expression::{
    Addition, ExpressionError, NamedScheme, Owner, Vocabulary, parse, parse_list, split_list,
};
pub use parameter::{Kind, Length, Parameter, Value, Values, Weights};
pub use preset::{PRESETS, Preset};

#[cfg(test)]
mod tests;
