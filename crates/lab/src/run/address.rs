//! Addresses of a run, which identify flow, path and side.

use anabranch_sim::Address;

/// Returns the flow, path and side of an address that [`address`] made.
pub(crate) fn place_of(address: Address) -> Option<(usize, usize, usize)> {
    let Address::V4(v4) = address else { return None };
    let [10, flow, path, side @ 1..=2] = v4.octets() else { return None };
    Some((usize::from(flow), usize::from(path), usize::from(side) - 1))
}

/// Returns the address of a flow's end on a path. `side` 0 is the left end, which sends forward data.
pub(crate) fn address(flow: usize, path: usize, side: usize) -> Address {
    Address::from([10, flow as u8, path as u8, side as u8 + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_identify_host_and_path() {
        assert_eq!(place_of(address(3, 7, 1)), Some((3, 7, 1)));
        assert_eq!(place_of(Address::from([10, 0, 0, 9])), None);
    }
}
