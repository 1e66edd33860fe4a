//! Tail probes (RFC 8985 section 7).

use crate::association::transmission::{Outlet, Source, Transmission};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{Reason, Refused, SendKind};
use crate::trace::DecisionRecord;

/// Retransmissions of the latest chunk in flight on a path (RFC 8985 section 7.3), beyond its window if necessary. In recovery,
/// later chunks may have been acknowledged already.
pub(super) struct TailProbes;

impl Source for TailProbes {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        while let Some(path) = t.tail_probes.first() {
            t.tail_probes.remove(path);
            if out.d.paths.facts(path).paced_until.is_some() {
                t.paced.probes.insert(path);
                continue;
            }
            let Some(tsn) = out
                .d
                .sender
                .outstanding()
                .highest_in_flight_on(path)
                .filter(|_| out.d.paths.is_in_service(path))
            else {
                continue;
            };
            if out.copy_packet(path, tsn..tsn + 1, SendKind::TailProbe, buf) {
                tail_probe_left(out, path, tsn);
                return Some(path);
            }
        }
        None
    }
}

fn tail_probe_left(out: &mut Outlet<'_>, path: PathId, tsn: u64) {
    let reason = Reason::rule("nothing acknowledged the tail");
    out.d.record(DecisionRecord::TailProbe(path), tsn, reason, &Refused::new());
    out.d.outputs.statistics.tail_probes += 1;
    out.data_packet_left(path);
    // RFC 8985 section 7.3: T3 counts from the probe. Repeated probes must not postpone it forever.
    if !out.d.paths[path].timers.repeats_tail_probe {
        out.d.paths.start_t3(path, out.d.now);
    }
}
