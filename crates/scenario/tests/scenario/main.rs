//! Scenario files as a user meets them: good ones, bad ones and random ones.

mod bad;
mod canonical;
mod generated;
mod good;
mod random;
