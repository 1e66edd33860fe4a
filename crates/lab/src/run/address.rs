//! Addresses of a run, which identify flow, path and side.

use anabranch_sim::Address;

/// Returns the flow, path and side of an address that [`address`] made.
pub(crate) fn place_of(address: Address) -> Option<(usize, usize, usize)> {
    let Address::V4(v4) = address else { return None };
    let [10, flow, path, end @ 1..=LAST_END] = v4.octets() else { return None };
    Some((usize::from(flow), usize::from(path), usize::from(end - 1) % 2))
}

/// Number of addresses that an end has on a path in turn, one after each handover.
pub(crate) const GENERATIONS: usize = 100;
/// Last number of the address of an end's last generation.
const LAST_END: u8 = 2 * GENERATIONS as u8;

/// Returns the address of a flow's end on a path after a number of handovers.
pub(crate) fn address_after(handovers: usize, flow: usize, path: usize, side: usize) -> Address {
    let end = 2 * (handovers % GENERATIONS) + side + 1;
    Address::from([10, flow as u8, path as u8, end as u8])
}

/// Returns the address of a flow's end on a path. `side` 0 is the left end, which sends forward data.
pub(crate) fn address(flow: usize, path: usize, side: usize) -> Address {
    address_after(0, flow, path, side)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_identify_host_and_path() {
        for handovers in [0, 1, GENERATIONS - 1, GENERATIONS] {
            assert_eq!(place_of(address_after(handovers, 3, 7, 1)), Some((3, 7, 1)));
            assert_eq!(place_of(address_after(handovers, 3, 7, 0)), Some((3, 7, 0)));
        }
        assert_eq!(place_of(Address::from([10, 0, 0, 0])), None);
        assert_eq!(place_of(Address::from([10, 0, 0, 201])), None);
    }
}
