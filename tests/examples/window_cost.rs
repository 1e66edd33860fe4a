//! Runs an association with windows of a fixed size for some round trips, so that the cost of a packet can be counted. The run
//! itself measures nothing, and prints the number of sent packets with DATA.
//!
//! Usage: window_cost SCHEME PATHS LOSS CHUNKS ROUNDS

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::process::ExitCode;
use std::sync::Arc;

use anabranch_core::time::Time;
use rig::fixed_window::{Fixed, ROUND, data_packets_sent, world};

struct Setting {
    scheme: String,
    paths: u8,
    loss: f64,
    chunks: u64,
    rounds: u64,
}

fn setting(mut arguments: impl Iterator<Item = String>) -> Option<Setting> {
    Some(Setting {
        scheme: arguments.next()?,
        paths: arguments.next()?.parse().ok()?,
        loss: arguments.next()?.parse().ok()?,
        chunks: arguments.next()?.parse().ok()?,
        rounds: arguments.next()?.parse().ok()?,
    })
}

fn main() -> ExitCode {
    let Some(setting) = setting(std::env::args().skip(1)) else {
        eprintln!("usage: window_cost SCHEME PATHS LOSS CHUNKS ROUNDS");
        return ExitCode::from(2);
    };
    let inner = rig::association(&setting.scheme).scheme;
    let fixed = Fixed { inner, chunks: setting.chunks / u64::from(setting.paths), asked: Arc::default() };
    let (mut world, sender) = world(&fixed, setting.paths, setting.loss);
    world.run_until(Time::ZERO + ROUND.times(setting.rounds));
    println!("{}", data_packets_sent(&world, sender));
    ExitCode::SUCCESS
}
