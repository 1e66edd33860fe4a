//! Fuzz targets: functions that accept any bytes and panic if an invariant is violated.
//!
//! They are ordinary functions, so that tests can run them over the seeds without a fuzzer.

#[cfg(test)]
mod seeds;

use crate::{
    AuthRepr, Cause, Chunk, NoSpace, PacketView, PacketWriter, Param, ParseError, RawCauses, RawChunk,
    RawParam,
};

/// Decodes a packet completely and checks that the views are consistent.
pub fn parse_packet(bytes: &[u8]) {
    let Ok(packet) = PacketView::parse(bytes) else { return };
    assert_eq!(packet.checksum_is_valid(), packet.checksum_field() == crate::checksum(bytes));
    let mut chunks = packet.chunks();
    let mut chunk_bytes = 0;
    for chunk in chunks.by_ref() {
        match chunk {
            Ok(chunk) => {
                chunk_bytes += chunk.bytes().len();
                assert_eq!(RawChunk::parse(chunk.bytes()), Ok(chunk));
                walk(&chunk);
            }
            Err(error) => assert!(error.offset < bytes.len()),
        }
    }
    assert!(chunks.next().is_none());
    assert!(crate::COMMON_HEADER_LEN + chunk_bytes <= bytes.len());
}

/// Decodes a chunk and every list in it.
fn walk(raw: &RawChunk<'_>) {
    let chunk = match raw.decode() {
        Ok(chunk) => chunk,
        Err(error) => return assert!(error.offset <= raw.bytes().len()),
    };
    assert_eq!(chunk.kind(), raw.kind());
    match chunk {
        Chunk::Data(data) => assert!(data.payload().len() < raw.bytes().len()),
        Chunk::Init(init) | Chunk::InitAck(init) => {
            walk_params(init.raw_params().map(|param| param.and_then(|raw| raw.decode())));
            walk_params(init.params());
        }
        Chunk::Sack(sack) => {
            assert_eq!((sack.gaps().count(), sack.dups().count()), (sack.gap_count(), sack.dup_count()));
        }
        Chunk::NrSack(sack) => {
            assert_eq!(
                (sack.gaps().count(), sack.nr_gaps().count()),
                (sack.gap_count(), sack.nr_gap_count())
            );
            assert_eq!(sack.dups().count(), sack.dup_count());
        }
        Chunk::Abort(abort) => walk_causes(abort.causes()),
        Chunk::Error(error) => walk_causes(error.causes()),
        Chunk::ForwardTsn(forward) => assert_eq!(forward.streams().count(), forward.streams().len()),
        Chunk::IData(data) => {
            assert!(data.payload().len() < raw.bytes().len());
            assert_eq!(data.repr().ppid().is_none(), !data.repr().flags.beginning);
        }
        Chunk::IForwardTsn(forward) => assert_eq!(forward.skipped().count(), forward.skipped().len()),
        Chunk::Auth(auth) => {
            assert_eq!(auth.code().len() + crate::AUTH_HEADER_LEN, raw.bytes().len());
        }
        Chunk::Asconf(asconf) => {
            walk_params(asconf.raw_params().map(|param| param.and_then(|raw| raw.decode())));
            walk_params(asconf.params());
        }
        Chunk::AsconfAck(ack) => walk_params(ack.params()),
        Chunk::ReConfig(config) => walk_params(config.params()),
        Chunk::Dtls(dtls) => {
            if let Ok((header, encrypted)) = dtls.record() {
                assert_eq!(header.epoch_bits() & !3, 0);
                assert_eq!(encrypted.len() + crate::DTLS_HEADER_LEN, raw.bytes().len());
                assert!(crate::dtls_content(encrypted).is_none_or(|chunks| chunks.len() < encrypted.len()));
            }
        }
        other => drop(format!("{other:?}")),
    }
}

fn walk_params<'a>(params: impl Iterator<Item = Result<Param<'a>, ParseError>>) {
    for param in params.flatten() {
        drop(format!("{param:?}"));
        match param {
            Param::UnrecognizedParameter(quoted) => walk_quoted(quoted),
            // Counts the causes but does not walk them: causes that quote parameters could nest as deep as the packet is long.
            Param::ErrorCause { causes, .. } => {
                assert!(RawCauses::parse(causes).decoded().count() <= causes.len() / 4 + 1);
            }
            _ => {}
        }
    }
}

/// Decodes a parameter that another parameter or a cause quotes. Its bytes may be malformed.
fn walk_quoted(quoted: &[u8]) {
    if let Ok(raw) = RawParam::parse(quoted) {
        drop(format!("{:?}", raw.decode()));
    }
}

fn walk_causes<'a>(causes: impl Iterator<Item = Result<Cause<'a>, ParseError>>) {
    for cause in causes.flatten() {
        drop(format!("{cause:?}"));
        match cause {
            Cause::UnrecognizedParameters(params) | Cause::RestartWithNewAddresses(params) => {
                walk_params(params.iter());
            }
            Cause::UnresolvableAddress(quoted)
            | Cause::DeleteLastAddress(quoted)
            | Cause::ResourceShortage(quoted)
            | Cause::DeleteSourceAddress(quoted)
            | Cause::NoAuthorization(quoted) => walk_quoted(quoted),
            // Decodes the chunk but does not walk it: chunks that quote chunks could nest as deep as the packet is long.
            Cause::UnrecognizedChunk(quoted) => {
                if let Ok(raw) = RawChunk::parse(quoted) {
                    drop(format!("{:?}", raw.decode()));
                }
            }
            _ => {}
        }
    }
}

/// Writes every decoded chunk into a packet of its own and checks that decoding it again gives the same chunk.
pub fn reemit(bytes: &[u8]) {
    let Ok(packet) = PacketView::parse(bytes) else { return };
    // The writer pads, so a chunk may need three bytes more than in the original packet.
    let mut buf = vec![0xA5; bytes.len() + 3];
    for chunk in packet.chunks().flatten().filter_map(|raw| raw.decode().ok()) {
        let mut writer = PacketWriter::new(&mut buf, packet.header()).expect("room for a header");
        let Some(written) = emit(&mut writer, &chunk) else { continue };
        written.expect("room for what fitted before");
        let len = writer.finish();
        let again = PacketView::parse(&buf[..len]).expect("a header");
        assert!(again.checksum_is_valid());
        assert_eq!(again.header(), packet.header());
        let mut chunks = again.chunks();
        let same =
            chunks.next().expect("a chunk").expect("in order").decode().expect("with the right length");
        assert!(is_same(&chunk, &same), "{chunk:?} became {same:?}");
        assert!(chunks.next().is_none());
    }
}

/// Writes a chunk from its view. Returns `None` if a parameter or cause in it is malformed.
fn emit(packet: &mut PacketWriter<'_>, chunk: &Chunk<'_>) -> Option<Result<(), NoSpace>> {
    Some(match chunk {
        Chunk::Data(data) => packet.data(&data.repr(), data.payload()),
        Chunk::Init(init) => packet.init(&init.repr(), readable(init.params())?),
        Chunk::InitAck(init) => packet.init_ack(&init.repr(), readable(init.params())?),
        Chunk::Sack(sack) => packet.sack(&sack.repr(), sack.gaps(), sack.dups()),
        Chunk::NrSack(sack) => packet.nr_sack(&sack.repr(), sack.gaps(), sack.nr_gaps(), sack.dups()),
        Chunk::Heartbeat(heartbeat) => match heartbeat.path_cost() {
            Some(cost) => packet.heartbeat_with_path_cost(heartbeat.info(), cost),
            None => packet.heartbeat(heartbeat.info()),
        },
        Chunk::HeartbeatAck(heartbeat) => packet.heartbeat_ack(heartbeat.info()),
        Chunk::Abort(abort) => packet.abort(abort.tag_reflected(), readable(abort.causes())?),
        Chunk::Shutdown { cum_tsn } => packet.shutdown(*cum_tsn),
        Chunk::ShutdownAck => packet.shutdown_ack(),
        Chunk::Error(error) => packet.error(readable(error.causes())?),
        Chunk::CookieEcho { cookie } => packet.cookie_echo(cookie),
        Chunk::CookieAck => packet.cookie_ack(),
        Chunk::Ecne { lowest_tsn } => packet.ecne(*lowest_tsn),
        Chunk::Cwr { lowest_tsn } => packet.cwr(*lowest_tsn),
        Chunk::ShutdownComplete { tag_reflected } => packet.shutdown_complete(*tag_reflected),
        Chunk::ForwardTsn(forward) => packet.forward_tsn(forward.new_cum_tsn(), forward.streams()),
        Chunk::IData(data) => packet.i_data(&data.repr(), data.payload()),
        Chunk::IForwardTsn(forward) => packet.i_forward_tsn(forward.new_cum_tsn(), forward.skipped()),
        Chunk::Auth(auth) => emit_auth(packet, auth.repr(), auth.code()),
        Chunk::Asconf(asconf) => packet.asconf(asconf.serial(), asconf.address(), readable(asconf.params())?),
        Chunk::AsconfAck(ack) => packet.asconf_ack(ack.serial(), readable(ack.params())?),
        Chunk::ReConfig(config) => packet.re_config(readable(config.params())?),
        Chunk::Dtls(dtls) => packet.raw(dtls.raw_chunk()),
        Chunk::Confirmation(confirmation) => packet.confirmation(confirmation),
        Chunk::Pad(raw) | Chunk::Unknown(raw) => packet.raw(*raw),
    })
}

fn emit_auth(packet: &mut PacketWriter<'_>, repr: AuthRepr, code: &[u8]) -> Result<(), NoSpace> {
    let pending = packet.auth(repr, code.len())?;
    packet.authenticate(pending, |_| code);
    Ok(())
}

fn readable<T>(items: impl Iterator<Item = Result<T, ParseError>>) -> Option<Vec<T>> {
    items.collect::<Result<_, _>>().ok()
}

/// Compares decoded chunks. Parameters and causes are compared one by one, because the padding between them may differ.
fn is_same(a: &Chunk<'_>, b: &Chunk<'_>) -> bool {
    match (a, b) {
        (Chunk::Init(a), Chunk::Init(b)) | (Chunk::InitAck(a), Chunk::InitAck(b)) => {
            a.repr() == b.repr() && a.params().eq(b.params())
        }
        (Chunk::Abort(a), Chunk::Abort(b)) => {
            a.tag_reflected() == b.tag_reflected() && a.causes().eq(b.causes())
        }
        (Chunk::Error(a), Chunk::Error(b)) => a.causes().eq(b.causes()),
        (Chunk::Asconf(a), Chunk::Asconf(b)) => {
            (a.serial(), a.address()) == (b.serial(), b.address()) && a.params().eq(b.params())
        }
        (Chunk::ReConfig(a), Chunk::ReConfig(b)) => a.params().eq(b.params()),
        (Chunk::AsconfAck(a), Chunk::AsconfAck(b)) => a.serial() == b.serial() && a.params().eq(b.params()),
        _ => a == b,
    }
}
