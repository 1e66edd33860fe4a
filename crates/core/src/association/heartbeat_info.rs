//! Information that HEARTBEATs carry and their answers return (RFC 9260 section 3.3.5).

use crate::path_id::PathId;

/// Length of the information in bytes: a nonce, the path's index, padding.
pub(crate) const INFO_BYTES: usize = 16;

pub(crate) fn write_info(nonce: u64, id: PathId) -> [u8; INFO_BYTES] {
    let mut info = [0; INFO_BYTES];
    info[..8].copy_from_slice(&nonce.to_be_bytes());
    info[8] = id.index() as u8;
    info
}

pub(crate) fn read_info(info: &[u8]) -> Option<(u64, usize)> {
    let bytes: &[u8; INFO_BYTES] = info.try_into().ok()?;
    let nonce = u64::from_be_bytes(bytes[..8].try_into().ok()?);
    Some((nonce, usize::from(bytes[8])))
}
