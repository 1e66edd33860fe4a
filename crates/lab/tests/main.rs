//! Tests of scenarios and runs.

mod common;
mod components;
mod copies;
mod copy_outcomes;
mod cross;
mod determinism;
mod differences;
mod fingerprint;
mod forward_flows;
mod handover;
mod impairments;
mod live_links;
mod message_flows;
mod physics;
mod protected;
mod recorded;
mod regret;
mod stopping;
mod trace_parts;
mod video_flows;
