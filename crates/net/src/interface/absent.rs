//! A build without the feature `interfaces`: the application names the addresses.

use super::LocalAddress;

/// Returns no address: a build without the feature `interfaces` does not ask the system.
pub fn local_addresses() -> Vec<LocalAddress> {
    Vec::new()
}

/// Returns no name: a build without the feature `interfaces` does not ask the system.
pub fn interface_name(_index: u32) -> Option<String> {
    None
}

pub(crate) fn interface_index(_name: &str) -> Option<u32> {
    None
}
