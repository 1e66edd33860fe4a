//! Authenticated chunks (RFC 4895): the offers of both sides, their key, and the codes made with it.

use std::cmp::Ordering;
use std::fmt;

use anabranch_wire::{AUTH_HEADER_LEN, AuthRepr, AuthView, ChunkType, InitView, List, Param, ParamType};
use arrayvec::ArrayVec;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::config::SharedKey;

/// Length in bytes of the random number that each side offers (RFC 4895 section 3.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// Maximum number of chunk types in a peer's list, far more than are useful.
const MAX_CHUNKS: usize = 32;

/// Maximum number of HMACs in a peer's list; only four identifiers were ever assigned.
const MAX_HMACS: usize = 8;

/// Chunks that are accepted and sent only with authentication (RFC 5061 section 4.1).
pub(crate) const AUTHENTICATED_CHUNKS: &[ChunkType] = &[ChunkType::ASCONF, ChunkType::ASCONF_ACK];

/// Chunks that are never authenticated, even if they are listed (RFC 4895 section 3.2).
const NEVER_AUTHENTICATED: [ChunkType; 4] =
    [ChunkType::INIT, ChunkType::INIT_ACK, ChunkType::SHUTDOWN_COMPLETE, ChunkType::AUTH];

/// Supported HMACs, the preferred one first. RFC 4895 section 6.1 requires SHA-1.
const OUR_HMACS: &[u16] = &[Algorithm::Sha256.id(), Algorithm::Sha1.id()];

/// HMAC algorithm of codes (RFC 4895 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    const fn id(self) -> u16 {
        match self {
            Algorithm::Sha1 => 1,
            Algorithm::Sha256 => 3,
        }
    }

    const fn code_len(self) -> usize {
        match self {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }

    fn of(id: u16) -> Option<Self> {
        [Algorithm::Sha1, Algorithm::Sha256].into_iter().find(|algorithm| algorithm.id() == id)
    }
}

/// Error of a random number of the wrong length, which ends the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRandom;

/// Offer of one side for authentication, in its INIT or INIT-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthOffer {
    random: [u8; RANDOM_LEN],
    /// Listed chunk types; `None` if there was no list, which differs from an empty one in the key.
    chunks: Option<ArrayVec<u8, MAX_CHUNKS>>,
    hmacs: ArrayVec<u16, MAX_HMACS>,
}

impl AuthOffer {
    /// Returns the own offer, with this random number.
    pub(crate) fn ours(random: [u8; RANDOM_LEN]) -> Self {
        AuthOffer {
            random,
            chunks: Some(AUTHENTICATED_CHUNKS.iter().map(|kind| kind.0).collect()),
            hmacs: OUR_HMACS.iter().copied().collect(),
        }
    }

    /// Returns the offer of this side as parameters, in the order in which the key uses them.
    pub(crate) fn our_params(random: &[u8; RANDOM_LEN]) -> [Param<'_>; 3] {
        [
            Param::Random(random),
            Param::ChunkList(List::new(AUTHENTICATED_CHUNKS)),
            Param::HmacAlgorithms(List::new(OUR_HMACS)),
        ]
    }

    /// Reads the peer's offer. `None` if it is not usable: no random number, no known HMAC, lists that are too long, or chunks to
    /// be authenticated that this side does not authenticate.
    ///
    /// # Errors
    /// A random number of another length than 32 bytes, which ends the handshake (RFC 4895 section 6.1).
    pub(crate) fn read(init: &InitView<'_>) -> Result<Option<Self>, BadRandom> {
        let (mut random, mut chunks, mut hmacs) = (None, None, None);
        for param in init.params().take_while(|param| !crate::init::stops(param)).flatten() {
            match param {
                Param::Random(bytes) => random = random.or(Some(bytes)),
                Param::ChunkList(list) => chunks = chunks.or(Some(list)),
                Param::HmacAlgorithms(list) => hmacs = hmacs.or(Some(list)),
                _ => {}
            }
        }
        let Some(random) = random else { return Ok(None) };
        let random = random.try_into().map_err(|_| BadRandom)?;
        let Some(hmacs) = hmacs.and_then(|list| bounded(list.iter())) else { return Ok(None) };
        let chunks = match chunks.map(|list| bounded(list.iter().map(|kind| kind.0))) {
            Some(None) => return Ok(None),
            Some(Some(chunks)) => Some(chunks),
            None => None,
        };
        let offer = AuthOffer { random, chunks, hmacs };
        Ok(Some(offer).filter(AuthOffer::is_usable))
    }

    fn is_usable(&self) -> bool {
        let asked = self.chunks.iter().flatten().map(|&kind| ChunkType(kind));
        self.algorithm().is_some() && asked.into_iter().all(is_ours_to_authenticate)
    }

    /// Returns `true` if the sender of an INIT-ACK requires authentication for chunks that this side sends without it, although the
    /// sender knows that this side uses AUTH (RFC 4895 section 6.3). The sender would never accept these chunks.
    pub(crate) fn requires_more_authentication(init_ack: &InitView<'_>) -> bool {
        let params = init_ack.params().take_while(|param| !crate::init::stops(param)).flatten();
        let lists = params.filter_map(|param| match param {
            Param::ChunkList(list) => Some(list),
            _ => None,
        });
        lists.flat_map(List::iter).any(|kind| !is_ours_to_authenticate(kind))
    }

    /// Returns the first supported algorithm in the list of the offer (RFC 4895 section 6.1).
    fn algorithm(&self) -> Option<Algorithm> {
        self.hmacs.iter().copied().find_map(Algorithm::of)
    }

    /// Returns the parameters of the offer as in the INIT or INIT-ACK, without padding (RFC 4895 section 6.1).
    fn key_vector(&self) -> Vec<u8> {
        let mut vector = Vec::with_capacity(64);
        let mut param = |kind: ParamType, value: &[u8]| {
            vector.extend_from_slice(&kind.0.to_be_bytes());
            vector.extend_from_slice(&(value.len() as u16 + 4).to_be_bytes());
            vector.extend_from_slice(value);
        };
        param(ParamType::RANDOM, &self.random);
        if let Some(chunks) = &self.chunks {
            param(ParamType::CHUNK_LIST, chunks);
        }
        let hmacs: Vec<u8> = self.hmacs.iter().flat_map(|id| id.to_be_bytes()).collect();
        param(ParamType::HMAC_ALGORITHMS, &hmacs);
        vector
    }

    /// Appends the offer in the form in which a cookie stores it.
    pub(crate) fn seal(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.random);
        // The count plus one; zero means no list.
        out.push(self.chunks.as_ref().map_or(0, |chunks| chunks.len() as u8 + 1));
        out.extend(self.chunks.iter().flatten());
        out.push(self.hmacs.len() as u8);
        out.extend(self.hmacs.iter().flat_map(|id| id.to_be_bytes()));
    }

    /// Reads the offer that [`seal`](Self::seal) wrote, and advances `bytes` behind it.
    pub(crate) fn open(bytes: &mut &[u8]) -> Option<Self> {
        let random = *take_array::<RANDOM_LEN>(bytes)?;
        let chunks = match take_array::<1>(bytes)?[0] {
            0 => None,
            count => Some(take(bytes, usize::from(count) - 1)?),
        };
        let count = usize::from(take_array::<1>(bytes)?[0]);
        let hmacs = take(bytes, count * 2)?.as_chunks().0.iter().map(|id| u16::from_be_bytes(*id));
        let hmacs = bounded(hmacs)?;
        let chunks = match chunks.map(|list| bounded(list.iter().copied())) {
            Some(None) => return None,
            Some(some) => some,
            None => None,
        };
        Some(AuthOffer { random, chunks, hmacs })
    }
}

fn is_ours_to_authenticate(kind: ChunkType) -> bool {
    AUTHENTICATED_CHUNKS.contains(&kind) || NEVER_AUTHENTICATED.contains(&kind)
}

fn bounded<T, const N: usize>(items: impl Iterator<Item = T>) -> Option<ArrayVec<T, N>> {
    let mut list = ArrayVec::new();
    for item in items {
        list.try_push(item).ok()?;
    }
    Some(list)
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn take_array<'b, const N: usize>(bytes: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

/// Returns the association shared key: the endpoint pair shared key, then the numerically smaller key vector, then the larger one
/// (RFC 4895 section 6.1).
fn association_key(pair: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let (first, second) = match compare_as_numbers(ours, theirs) {
        Ordering::Greater => (theirs, ours),
        _ => (ours, theirs),
    };
    [pair, first, second].concat()
}

/// Compares as numbers in network byte order; of two equal numbers the shorter comes first.
fn compare_as_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let digits = |bytes: &[u8]| bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let (x, y) = (a.get(digits(a)..).unwrap_or_default(), b.get(digits(b)..).unwrap_or_default());
    x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.len().cmp(&b.len()))
}

/// Reason for which an AUTH and all chunks behind it are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailure {
    /// The HMAC was not offered, which is reported to the peer (RFC 4895 section 6.3).
    UnsupportedHmac(u16),
    /// The key or the code is wrong. The discard is not reported to the peer.
    Wrong,
}

/// Keys that two sides have agreed on. `Debug` does not print them.
#[derive(Clone)]
pub(crate) struct Keys {
    key_id: u16,
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
    algorithm: Algorithm,
}

impl Keys {
    /// Returns the keys that follow from both offers and the endpoint pair shared key, if any; `None` if the peer offers no
    /// supported HMAC.
    pub(crate) fn agree(ours: &AuthOffer, theirs: &AuthOffer, pair: Option<&SharedKey>) -> Option<Self> {
        let algorithm = theirs.algorithm()?;
        let secret = pair.map_or(&[][..], |key| &key.secret);
        let key = association_key(secret, &ours.key_vector(), &theirs.key_vector());
        Some(Keys {
            key_id: pair.map_or(0, |key| key.id),
            sha1: Hmac::new_from_slice(&key).ok()?,
            sha256: Hmac::new_from_slice(&key).ok()?,
            algorithm,
        })
    }

    /// Returns the fields of the AUTH chunks that this side sends, and the length of their codes.
    pub(crate) fn repr(&self) -> (AuthRepr, usize) {
        let repr = AuthRepr { key_id: self.key_id, hmac_id: self.algorithm.id() };
        (repr, self.algorithm.code_len())
    }

    /// Returns the code over these bytes, which contain zeros in place of the code.
    pub(crate) fn code(&self, covered: &[u8]) -> ArrayVec<u8, 32> {
        match self.algorithm {
            Algorithm::Sha1 => {
                self.sha1.clone().chain_update(covered).finalize().into_bytes().into_iter().collect()
            }
            Algorithm::Sha256 => {
                self.sha256.clone().chain_update(covered).finalize().into_bytes().into_iter().collect()
            }
        }
    }

    /// Checks the code of the AUTH at the beginning of `covered`, which extends to the end of the packet.
    pub(crate) fn verify(&self, auth: &AuthView<'_>, covered: &[u8]) -> Result<(), AuthFailure> {
        let AuthRepr { key_id, hmac_id } = auth.repr();
        let algorithm = Algorithm::of(hmac_id).ok_or(AuthFailure::UnsupportedHmac(hmac_id))?;
        let length = algorithm.code_len();
        let head = covered.get(..AUTH_HEADER_LEN);
        let tail = covered.get(AUTH_HEADER_LEN + length..);
        let (Some(head), Some(tail)) = (head, tail) else { return Err(AuthFailure::Wrong) };
        if key_id != self.key_id || auth.code().len() != length {
            return Err(AuthFailure::Wrong);
        }
        let zeros = &[0; 32][..length];
        // `verify_slice` takes the same time independent of the position of the difference.
        let good = match algorithm {
            Algorithm::Sha1 => {
                let mac = self.sha1.clone().chain_update(head).chain_update(zeros).chain_update(tail);
                mac.verify_slice(auth.code())
            }
            Algorithm::Sha256 => {
                let mac = self.sha256.clone().chain_update(head).chain_update(zeros).chain_update(tail);
                mac.verify_slice(auth.code())
            }
        };
        good.map_err(|_| AuthFailure::Wrong)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("key_id", &self.key_id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{Header, InitRepr, NoSpace, PacketView, PacketWriter, RawChunk};
    use proptest::prelude::*;

    const ASCONF: [u8; 32] = [
        0xC1, 0, 0, 32, 0, 0, 0, 1, 0, 5, 0, 8, 0, 0, 0, 0, 0xC0, 1, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 0, 0, 0,
        0,
    ];

    fn ours() -> AuthOffer {
        AuthOffer::ours(std::array::from_fn(|at| at as u8))
    }

    fn theirs() -> AuthOffer {
        AuthOffer::ours([0xFF; 32])
    }

    /// Returns an AUTH with an empty code, and an ASCONF behind it.
    fn covered(keys: &Keys) -> Vec<u8> {
        let (repr, code_len) = keys.repr();
        let head = [15, 0, 0, 8 + code_len as u8, 0, repr.key_id as u8, 0, repr.hmac_id as u8];
        [&head[..], &vec![0; code_len], &ASCONF].concat()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn check(keys: &Keys, bytes: &[u8]) -> Result<(), AuthFailure> {
        let raw = RawChunk::parse(bytes).expect("a chunk");
        match raw.decode() {
            Ok(anabranch_wire::Chunk::Auth(auth)) => keys.verify(&auth, bytes),
            other => panic!("no AUTH: {other:?}"),
        }
    }

    /// Returns the same chunks with the code.
    fn sealed(keys: &Keys) -> Vec<u8> {
        let mut bytes = covered(keys);
        let code = keys.code(&bytes);
        bytes[8..8 + code.len()].copy_from_slice(&code);
        bytes
    }

    #[test]
    fn codes_equal_those_of_an_independent_implementation() {
        // Computed with Python's hmac module from the key vectors written out by hand.
        let keys = Keys::agree(&ours(), &theirs(), None).expect("SHA-256");
        let expected = "8481932a3ee05d45c5d109aba638c5d9e90bfbac7ea27b05f7e8191cd1ffb2a6";
        assert_eq!(hex(&keys.code(&covered(&keys))), expected);

        let pair = SharedKey { id: 7, secret: b"secret".to_vec() };
        let keys = Keys::agree(&ours(), &theirs(), Some(&pair)).expect("SHA-256");
        let expected = "2b685d619e6cee97db10aa06c5dd843831af9fa98f8b64581506eee929d5e70f";
        assert_eq!(hex(&keys.code(&covered(&keys))), expected);

        // A peer without a list of chunks that supports SHA-1 only: its key vector is the shorter one.
        let old = AuthOffer { chunks: None, hmacs: [1].into_iter().collect(), ..theirs() };
        let keys = Keys::agree(&ours(), &old, None).expect("SHA-1");
        assert_eq!(hex(&keys.code(&covered(&keys))), "d65cfb646a32a5fd004e74d5d13e445046985ede");
    }

    #[test]
    fn both_sides_find_the_same_key() {
        let (a, b) = (ours(), theirs());
        let (at_a, at_b) = (Keys::agree(&a, &b, None).unwrap(), Keys::agree(&b, &a, None).unwrap());
        assert_eq!(check(&at_b, &sealed(&at_a)), Ok(()));
        assert_eq!(check(&at_a, &sealed(&at_b)), Ok(()));
    }

    #[test]
    fn another_key_number_or_secret_or_random_number_is_refused() {
        let key = |id, secret: &[u8]| SharedKey { id, secret: secret.to_vec() };
        let good = Keys::agree(&ours(), &theirs(), Some(&key(1, b"secret"))).unwrap();
        let others = [
            Keys::agree(&ours(), &theirs(), None),
            Keys::agree(&ours(), &theirs(), Some(&key(2, b"secret"))),
            Keys::agree(&ours(), &theirs(), Some(&key(1, b"another"))),
            Keys::agree(&ours(), &AuthOffer::ours([1; 32]), Some(&key(1, b"secret"))),
        ];
        assert_eq!(check(&good, &sealed(&good)), Ok(()));
        for other in others.into_iter().flatten() {
            assert_eq!(check(&good, &sealed(&other)), Err(AuthFailure::Wrong));
        }
    }

    #[test]
    fn an_hmac_that_was_not_offered_is_named() {
        let keys = Keys::agree(&ours(), &theirs(), None).unwrap();
        for id in [0_u8, 2, 4] {
            let mut bytes = sealed(&keys);
            bytes[7] = id;
            assert_eq!(check(&keys, &bytes), Err(AuthFailure::UnsupportedHmac(u16::from(id))));
        }
    }

    #[test]
    fn vectors_compare_as_numbers() {
        let ascending: [&[u8]; 6] = [&[0, 1], &[0, 0, 2], &[9], &[1, 0], &[0, 1, 1], &[2, 0]];
        for pair in ascending.windows(2) {
            assert_eq!(compare_as_numbers(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare_as_numbers(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(compare_as_numbers(&[1], &[0, 1]), Ordering::Less, "equal as numbers: the shorter first");
        assert_eq!(compare_as_numbers(&[], &[]), Ordering::Equal);
    }

    /// Returns the offer in an INIT with these parameters.
    fn read(params: &[Param<'_>]) -> Result<Option<AuthOffer>, BadRandom> {
        let mut bytes = vec![0; 70_000];
        let mut writer = PacketWriter::new(&mut bytes, Header::default()).unwrap();
        let written: Result<(), NoSpace> = writer.init(&InitRepr::default(), params.iter().copied());
        written.unwrap();
        let length = writer.finish();
        let raw = PacketView::parse(&bytes[..length]).unwrap().chunks().next().unwrap().unwrap();
        match raw.decode() {
            Ok(anabranch_wire::Chunk::Init(init)) => AuthOffer::read(&init),
            other => panic!("no INIT: {other:?}"),
        }
    }

    #[test]
    fn an_offer_is_read_as_it_was_made() {
        let random = [3; 32];
        let ours = AuthOffer::our_params(&random);
        assert_eq!(read(&ours), Ok(Some(AuthOffer::ours(random))));
        let listed_in_another_order = [ours[2], Param::ForwardTsnSupported, ours[1], ours[0]];
        assert_eq!(read(&listed_in_another_order), Ok(Some(AuthOffer::ours(random))));
        let without_chunks = read(&[ours[0], ours[2]]).unwrap().unwrap();
        let with_none = read(&[ours[0], Param::ChunkList(List::new(&[])), ours[2]]).unwrap().unwrap();
        assert_ne!(without_chunks.key_vector(), with_none.key_vector());
    }

    #[test]
    fn an_offer_of_no_use_is_none() {
        let random = [3; 32];
        let [number, chunks, hmacs] = AuthOffer::our_params(&random);
        assert_eq!(read(&[chunks, hmacs]), Ok(None), "no random number");
        assert_eq!(read(&[number, chunks]), Ok(None), "no HMAC");
        let unknown = Param::HmacAlgorithms(List::new(&[2, 4]));
        assert_eq!(read(&[number, chunks, unknown]), Ok(None), "none that we know");
        let data = Param::ChunkList(List::new(&[ChunkType::ASCONF, ChunkType::DATA]));
        assert_eq!(read(&[number, data, hmacs]), Ok(None), "DATA is not authenticated here");
        let long = vec![ChunkType::ASCONF; MAX_CHUNKS + 1];
        assert_eq!(read(&[number, Param::ChunkList(List::new(&long)), hmacs]), Ok(None));
        let many = vec![3; MAX_HMACS + 1];
        assert_eq!(read(&[number, chunks, Param::HmacAlgorithms(List::new(&many))]), Ok(None));
    }

    #[test]
    fn a_random_number_of_another_length_is_an_error() {
        let [_, chunks, hmacs] = AuthOffer::our_params(&[0; 32]);
        for length in [0, 1, 31, 33, 64, 60_000] {
            let random = vec![7; length];
            assert_eq!(read(&[Param::Random(&random), chunks, hmacs]), Err(BadRandom), "{length} bytes");
        }
    }

    prop_compose! {
        fn offers()(
            random: [u8; 32],
            chunks in prop::option::of(prop::collection::vec(any::<u8>(), 0..=MAX_CHUNKS)),
            hmacs in prop::collection::vec(any::<u16>(), 0..=MAX_HMACS),
        ) -> AuthOffer {
            AuthOffer {
                random,
                chunks: chunks.map(|list| list.into_iter().collect()),
                hmacs: hmacs.into_iter().collect(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_cookie_keeps_an_offer_and_what_follows_it(offer in offers(), behind: Vec<u8>) {
            let mut bytes = Vec::new();
            offer.seal(&mut bytes);
            bytes.extend_from_slice(&behind);
            let mut rest = &bytes[..];
            prop_assert_eq!(AuthOffer::open(&mut rest), Some(offer));
            prop_assert_eq!(rest, &behind[..]);
        }

        #[test]
        fn opening_random_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = AuthOffer::open(&mut &bytes[..]);
        }

        #[test]
        fn reading_random_parameters_does_not_panic(
            random in prop::collection::vec(any::<u8>(), 0..300),
            chunks in prop::collection::vec(any::<u8>(), 0..300),
            hmacs in prop::collection::vec(any::<u16>(), 0..300),
        ) {
            let chunks: Vec<_> = chunks.into_iter().map(ChunkType).collect();
            let params = [
                Param::Random(&random),
                Param::ChunkList(List::new(&chunks)),
                Param::HmacAlgorithms(List::new(&hmacs)),
            ];
            let offer = read(&params);
            prop_assert_eq!(offer.is_err(), random.len() != RANDOM_LEN);
        }

        #[test]
        fn any_change_of_covered_bytes_is_refused(at in 0_usize..72, mask in 1_u8..) {
            let keys = Keys::agree(&ours(), &theirs(), None).unwrap();
            let mut bytes = sealed(&keys);
            bytes[at] ^= mask;
            // The first four bytes identify the chunk as an AUTH of this length.
            prop_assume!(at >= 4);
            prop_assert!(check(&keys, &bytes).is_err());
        }

        #[test]
        fn checking_random_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let keys = Keys::agree(&ours(), &theirs(), None).unwrap();
            let mut bytes = [&[15, 0, 0, 8 + (bytes.len() % 60) as u8, 0, 0, 0, 3][..], &bytes].concat();
            bytes.resize(bytes.len().max(68), 0);
            prop_assert!(check(&keys, &bytes).is_err());
        }
    }
}
