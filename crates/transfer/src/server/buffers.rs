//! Limits of a server's associations, besides the memory of its transfers.

use anabranch_net::Config;

use super::ServerOptions;

/// Number of associations that may be ending, refused or without a first message, in addition to twice the number of transfers.
const SPARE_ASSOCIATIONS: usize = 16;

impl ServerOptions {
    /// Returns the maximum number of associations that an endpoint for this server needs at the same time: those that transfer, as
    /// many without a first message, and some that are being refused or replaced. Each has its own buffers, so an endpoint should
    /// accept no more.
    pub fn most_associations(&self) -> usize {
        self.most_transfers.saturating_mul(2).saturating_add(SPARE_ASSOCIATIONS)
    }

    /// Bounds the buffers of associations. The receive buffers of all transfers together have at most the memory of the transfers,
    /// and so have the send buffers. No buffer is smaller than its initial size.
    pub fn share_buffers(&self, config: Config) -> Config {
        config.limit_buffers_bytes(self.memory_bytes / (self.most_transfers as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn options(memory_mib: u64, most_transfers: usize) -> ServerOptions {
        ServerOptions { memory_bytes: memory_mib * MIB, most_transfers, ..ServerOptions::default() }
    }

    #[test]
    fn associations_share_memory_between_initial_and_useful_size() {
        for (memory_mib, transfers, largest_mib) in [
            (512, 64, 8),
            (512, 32, 16),
            (512, 256, 2),
            (512, 100_000, 2),
            (3, 1, 3),
            (0, 0, 2),
            (1 << 30, 1, 16),
        ] {
            let config = options(memory_mib, transfers).share_buffers(Config::default());
            let growth = config.core().buffer_growth.expect("buffers grow");
            assert_eq!(
                (growth.largest_recv_bytes, growth.largest_send_bytes),
                (largest_mib * MIB, largest_mib * MIB),
                "{memory_mib} MiB for {transfers}"
            );
        }
    }

    #[test]
    fn association_limit_is_the_transfer_limit_plus_room_to_refuse() {
        for (transfers, most) in [(0, 16), (1, 18), (64, 144), (usize::MAX, usize::MAX)] {
            assert_eq!(options(512, transfers).most_associations(), most);
        }
    }
}
