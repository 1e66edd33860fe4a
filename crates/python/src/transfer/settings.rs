//! Settings of associations from Python.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_net::Config;
use pyo3::prelude::*;

use super::failure::Failure;
use super::protection::KeyChoice;

/// Range of the endpoint's buffers.
const BUFFER_BYTES: RangeInclusive<i64> = 4096..=1 << 32;
const LONGEST_S: f64 = 86_400.0;

/// Fields of `anabranch.transfer.settings.Settings`.
#[derive(Debug, FromPyObject)]
pub struct Settings {
    scheme: String,
    streams: i64,
    send_buffer_bytes: Option<i64>,
    recv_buffer_bytes: Option<i64>,
    peer_silence_s: f64,
    failover_ms: Option<f64>,
    largest_message_bytes: i64,
    keys: Option<PathBuf>,
    insecure: bool,
}

impl Settings {
    /// Returns the place of keys.
    pub(super) fn keys(&self) -> Result<KeyChoice, Failure> {
        match (&self.keys, self.insecure) {
            (None, true) => Ok(KeyChoice::Insecure),
            (None, false) => Ok(KeyChoice::OfUser),
            (Some(folder), false) => Ok(KeyChoice::Folder(folder.clone())),
            (Some(_), true) => {
                Err(Failure::Argument("keys and insecure contradict each other: omit one of them".into()))
            }
        }
    }

    pub(super) fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::new(&self.scheme)
            .map_err(|error| Failure::Scheme(format!("scheme {:?}: {error}", self.scheme)))?
            .streams(within("streams", self.streams, 1..=i64::from(u16::MAX))? as u16)
            .peer_silence_limit(seconds("peer_silence_s", self.peer_silence_s)?);
        // Python reassembles messages that are delivered in parts.
        within("largest_message_bytes", self.largest_message_bytes, 1..=i64::MAX)?;
        // A requested size is kept.
        if let Some(bytes) = self.send_buffer_bytes {
            let bytes = within("send_buffer_bytes", bytes, BUFFER_BYTES)? as u64;
            config = config.send_buffer_bytes(bytes..=bytes);
        }
        if let Some(bytes) = self.recv_buffer_bytes {
            let bytes = within("recv_buffer_bytes", bytes, BUFFER_BYTES)? as u64;
            config = config.recv_buffer_bytes(bytes..=bytes);
        }
        if let Some(failover_ms) = self.failover_ms {
            config = config.path_silence_limit(seconds("failover_ms", failover_ms / 1e3)?);
        }
        Ok(config)
    }
}

/// Returns the number, if it is in the range.
pub(super) fn within(name: &str, number: i64, range: RangeInclusive<i64>) -> Result<i64, Failure> {
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = range.into_inner();
    Err(Failure::Argument(format!("{name} is {number}; give a number from {least} to {most}")))
}

/// Returns a time. Other values would never pass, or have passed already.
pub(super) fn seconds(name: &str, seconds: f64) -> Result<Duration, Failure> {
    if seconds > 0.0 && seconds <= LONGEST_S {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Failure::Argument(format!(
        "{name} is out of range; give a time that is more than 0 and at most a day"
    )))
}
