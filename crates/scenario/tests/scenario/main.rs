//! Valid, invalid and random scenario files.

mod bad;
mod canonical;
mod generated;
mod good;
mod line;
mod random;
