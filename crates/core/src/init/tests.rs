use anabranch_wire::{Chunk, Header, PacketView, PacketWriter};

use super::*;
use crate::profile::Profile;

/// Returns a packet with an INIT with these parameters.
fn init(params: &[Param<'_>]) -> Vec<u8> {
    let header = Header { source_port: 5000, destination_port: 5000, verification_tag: 0 };
    let repr = InitRepr { initiate_tag: 1, outbound_streams: 1, inbound_streams: 1, ..InitRepr::default() };
    let mut bytes = vec![0; 1_500];
    let mut writer = PacketWriter::new(&mut bytes, header).expect("there is room for a header");
    writer.init(&repr, params.iter().copied()).expect("there is room");
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

/// Returns the result of `read` for an INIT with these parameters.
fn read<T>(params: &[Param<'_>], read: impl FnOnce(&InitView<'_>) -> T) -> T {
    let bytes = init(params);
    let packet = PacketView::parse(&bytes).expect("a packet");
    let chunk = packet.chunks().next().expect("a chunk").expect("a whole chunk");
    let Ok(Chunk::Init(init)) = chunk.decode() else { panic!("{chunk:?} is no INIT") };
    read(&init)
}

/// Returns every combination of extensions.
fn combinations() -> impl Iterator<Item = Announced> {
    (0..512).map(|bits| Announced {
        nr_sack: bits & 1 > 0,
        asconf: bits & 2 > 0,
        sack_flags: bits & 4 > 0,
        forward_tsn: bits & 8 > 0,
        stream_control: bits & 16 > 0,
        re_config: bits & 32 > 0,
        i_data: bits & 64 > 0,
        i_forward_tsn: bits & 128 > 0,
        zero_checksum: bits & 256 > 0,
    })
}

/// Returns a parameter of an unknown type, whose high bits determine its treatment.
fn unknown(bytes: &[u8]) -> Param<'_> {
    Param::Unknown(RawParam::parse(bytes).expect("a parameter"))
}

/// Parameter that stops processing and is reported: the high bits are 01 (RFC 9260 section 3.2.1).
const STOPS: &[u8] = &[0x4F, 0x42, 0, 4];

#[test]
fn extensions_are_read_as_they_were_announced() {
    for wanted in combinations() {
        let profile = if wanted.sack_flags { Profile::net() } else { Profile::rfc9260() };
        let forward_tsn = wanted.forward_tsn.then_some(Param::ForwardTsnSupported);
        let chunks = chunk_types(wanted, AsconfProof::Auth);
        let params = extensions(&chunks)
            .into_iter()
            .chain(sack_flags::param(&profile))
            .chain(stream_control::param(wanted.stream_control))
            .chain(zero_checksum::param(wanted.zero_checksum))
            .chain(forward_tsn);
        assert_eq!(read(&params.collect::<Vec<_>>(), announced), wanted);
    }
}

#[test]
fn a_side_that_uses_no_extension_adds_no_parameter() {
    assert!(extensions(&chunk_types(Announced::default(), AsconfProof::Auth)).is_none());
    assert!(sack_flags::param(&Profile::rfc9260()).is_none());
    assert!(stream_control::param(false).is_none());
    assert!(zero_checksum::param(false).is_none());
}

#[test]
fn asconf_counts_only_together_with_its_answer() {
    for (list, counts) in [
        (&[ChunkType::ASCONF][..], false),
        (&[ChunkType::ASCONF_ACK], false),
        (&[ChunkType::ASCONF, ChunkType::ASCONF_ACK], true),
    ] {
        let found = read(&[Param::SupportedExtensions(List::new(list))], announced);
        assert_eq!(found, Announced { asconf: counts, ..Announced::default() }, "{list:?}");
    }
}

#[test]
fn extensions_in_several_parameters_add_up() {
    let first = Param::SupportedExtensions(List::new(&[ChunkType::NR_SACK]));
    let second = Param::SupportedExtensions(List::new(&[ChunkType::ASCONF, ChunkType::ASCONF_ACK]));
    let both = Announced { nr_sack: true, asconf: true, ..Announced::default() };
    assert_eq!(read(&[first, second], announced), both);
    assert_eq!(read(&[second, first], announced), both);
}

#[test]
fn forward_tsn_is_announced_by_either_parameter() {
    let listed = Param::SupportedExtensions(List::new(&[ChunkType::FORWARD_TSN]));
    for param in [Param::ForwardTsnSupported, listed] {
        assert_eq!(read(&[param], announced), Announced { forward_tsn: true, ..Announced::default() });
    }
}

#[test]
fn a_cookie_keeps_which_extensions_were_announced() {
    for wanted in combinations() {
        assert_eq!(Announced::of_bits(wanted.bits()), wanted);
    }
}

#[test]
fn our_own_parameters_count_byte_for_byte() {
    let sack_flags =
        (sack_flags::param(&Profile::net()), sack_flags::is_announced as fn(&InitView<'_>) -> bool);
    for (param, is_announced) in [sack_flags, (stream_control::param(true), stream_control::is_announced)] {
        let Some(Param::Unknown(ours)) = param else { panic!("it is announced") };
        for at in 4..ours.bytes().len() {
            let mut bytes = ours.bytes().to_vec();
            bytes[at] ^= 1;
            assert!(!read(&[unknown(&bytes)], is_announced), "byte {at} differs");
        }
        // A parameter of another type with the same name and version belongs to another implementation.
        let other_type = [&[0xBA, 0xDB][..], &ours.bytes()[2..]].concat();
        assert!(!read(&[unknown(&other_type)], is_announced));
        // Other parameters before it do not hide it.
        assert!(read(&[Param::ForwardTsnSupported, Param::Unknown(ours)], is_announced));
    }
}

#[test]
fn addresses_are_read_as_they_were_listed() {
    let addresses: Vec<IpAddr> = vec![[10, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 1].into()];
    let params = address_params(&addresses);
    assert_eq!(read(&params, listed_addresses)[..], addresses[..]);
}

#[test]
fn no_more_addresses_are_listed_or_read_than_there_can_be_paths() {
    let addresses: Vec<IpAddr> = (0..2 * MAX_PATHS as u8).map(|host| [10, 0, 0, host].into()).collect();
    assert_eq!(address_params(&addresses).len(), MAX_PATHS);
    let params: Vec<_> =
        addresses.iter().flat_map(|address| address_params(std::slice::from_ref(address))).collect();
    assert_eq!(read(&params, listed_addresses)[..], addresses[..MAX_PATHS]);
}

#[test]
fn parameters_after_an_unknown_one_that_stops_are_ignored() {
    let address: IpAddr = [10, 0, 0, 1].into();
    let behind =
        [address_params(&[address])[0], Param::SupportedExtensions(List::new(&[ChunkType::NR_SACK]))];
    for (before, hidden) in [(unknown(STOPS), true), (unknown(&[0x8F, 0x42, 0, 4]), false)] {
        let params = [before, behind[0], behind[1]];
        assert_eq!(read(&params, listed_addresses).is_empty(), hidden, "{before:?}");
        assert_eq!(read(&params, announced).nr_sack, !hidden, "{before:?}");
    }
}

#[test]
fn unknown_parameters_are_reported_by_type_until_one_stops_processing() {
    let silent: &[u8] = &[0x8F, 0x42, 0, 4];
    let report: &[u8] = &[0xCF, 0x42, 0, 4];
    let reported = |params: &[Param<'_>]| -> Vec<Vec<u8>> {
        read(params, |init| reportable_params(init).map(|raw| raw.bytes().to_vec()).collect())
    };
    // FORWARD-TSN-Supported is known, although the high bits of its type say that unknown parameters of the type are reported.
    assert_eq!(reported(&[Param::ForwardTsnSupported, unknown(silent)]), Vec::<Vec<u8>>::new());
    assert_eq!(reported(&[unknown(report), unknown(STOPS), unknown(report)]), [report, STOPS]);
    let stops_in_silence: &[u8] = &[0x0F, 0x42, 0, 4];
    assert_eq!(reported(&[unknown(report), unknown(stops_in_silence), unknown(report)]), [report]);
}
