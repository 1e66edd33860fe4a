//! Configuration of an association for channels.

use anabranch_core::{AssociationConfig, ErrorDetection, StreamChanges, StreamScheduler};

/// Sets up an association for channels on a transport that is DTLS (RFC 8261): `streams` in each direction, which end by resets (RFC
/// 6525), and share the rate by their priorities as weights (RFC 8831 section 6.4). If the peer supports it, messages interleave (RFC
/// 8260), and packets have no checksum (RFC 9653).
///
/// A transport that may deliver corrupted or forged datagrams needs
/// [`error_detection`](AssociationConfig::error_detection) set back to [`ErrorDetection::Crc32c`].
pub fn configure(config: &mut AssociationConfig, streams: u16) {
    config.streams = streams;
    config.stream_changes = Some(StreamChanges { max_streams: streams });
    config.interleaving = true;
    config.stream_scheduler = StreamScheduler::WeightedFairQueueing;
    config.error_detection = ErrorDetection::LowerLayerDtls;
}
