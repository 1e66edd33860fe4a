//! Definitions of schemes and components as data: parameters, documentation cards, and constructors of their policies.

mod card;
mod component;
mod parameter;
mod preset;
mod role;
pub(crate) mod text;

pub use card::{Card, Choice, Equation};
pub use component::Component;
pub use parameter::{ChoiceParameter, Kind, Length, Names, Parameter, Value, Values, Weights};
pub use preset::Preset;
pub use role::Role;

pub(crate) use card::SACK_PROCESSING;
pub(crate) use text::text;
