//! Rules for an endpoint on the open Internet: identity of peers, destinations of data, and limits for strangers.

mod access;
mod amplification;
mod attackers;
mod connecting;
mod floods;
mod listed;
mod many;
mod net;
mod replays;
mod translators;
