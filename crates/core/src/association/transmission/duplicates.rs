//! Copies of chunks on several paths at once.

use crate::association::transmission::{Outlet, Source, Transmission};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::SendKind;

/// Copies that the scheduler or the retransmission policy requested.
pub(super) struct Duplicates;

impl Source for Duplicates {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        let mut copies = t.copies?;
        while let Some(path) = copies.others.first() {
            copies.others.remove(path);
            t.copies = Some(copies);
            if out.has_room(path) && out.copy_packet(path, copies.first..copies.after, SendKind::Copy, buf) {
                t.new_packet_left(out, path);
                return Some(path);
            }
        }
        t.copies = None;
        None
    }
}
