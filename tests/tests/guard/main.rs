//! What an endpoint on the open Internet must hold to: who is whom, where data may go, how much strangers get.

mod access;
mod amplification;
mod attackers;
mod connecting;
mod floods;
mod listed;
mod many;
mod net;
mod replays;
#[path = "../rig/mod.rs"]
mod rig;
mod translators;
