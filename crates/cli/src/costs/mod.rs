//! Costs and limits of links: their descriptions on the command line, the stored counts of their bytes, and the keeper that applies
//! both while a command runs.

mod calendar;
mod description;
mod keeper;
mod meter;

pub(crate) use description::{PathDescription, read_cost, read_path};
pub(crate) use keeper::{Costs, link_object, link_text};
