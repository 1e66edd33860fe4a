//! Authenticated chunks (RFC 4895): what each side offers, the key that follows from it, and the codes made with that.

use std::cmp::Ordering;
use std::fmt;

use anabranch_wire::{AUTH_HEADER_LEN, AuthRepr, AuthView, ChunkType, InitView, List, Param, ParamType};
use arrayvec::ArrayVec;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::config::SharedKey;

/// Bytes of the random number that each side offers (RFC 4895 section 3.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// The most chunk types in a peer's list: far more than there are worth listing.
const MAX_CHUNKS: usize = 32;

/// The most HMACs in a peer's list; four numbers have ever been given out.
const MAX_HMACS: usize = 8;

/// The chunks that we take only if they are authenticated, and never send otherwise (RFC 5061 section 4.1).
pub(crate) const AUTHENTICATED_CHUNKS: &[ChunkType] = &[ChunkType::ASCONF, ChunkType::ASCONF_ACK];

/// Chunks that cannot be authenticated, whoever lists them (RFC 4895 section 3.2).
const NEVER_AUTHENTICATED: [ChunkType; 4] =
    [ChunkType::INIT, ChunkType::INIT_ACK, ChunkType::SHUTDOWN_COMPLETE, ChunkType::AUTH];

/// The HMACs that we check, the preferred first. RFC 4895 section 6.1 has everyone list SHA-1.
const OUR_HMACS: &[u16] = &[Algorithm::Sha256.id(), Algorithm::Sha1.id()];

/// How codes are made (RFC 4895 section 3.3).
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

/// Why what an INIT or INIT-ACK says about authentication ends the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRandom;

/// What one side says about authentication in its INIT or INIT-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthOffer {
    random: [u8; RANDOM_LEN],
    /// `None` if there was no list, which is not the same as an empty one: the key depends on it.
    chunks: Option<ArrayVec<u8, MAX_CHUNKS>>,
    hmacs: ArrayVec<u16, MAX_HMACS>,
}

impl AuthOffer {
    /// Ours, with this random number.
    pub(crate) fn ours(random: [u8; RANDOM_LEN]) -> Self {
        AuthOffer {
            random,
            chunks: Some(AUTHENTICATED_CHUNKS.iter().map(|kind| kind.0).collect()),
            hmacs: OUR_HMACS.iter().copied().collect(),
        }
    }

    /// Our offer as parameters, in the order in which the key takes them.
    pub(crate) fn our_params(random: &[u8; RANDOM_LEN]) -> [Param<'_>; 3] {
        [
            Param::Random(random),
            Param::ChunkList(List::new(AUTHENTICATED_CHUNKS)),
            Param::HmacAlgorithms(List::new(OUR_HMACS)),
        ]
    }

    /// The peer's. `None` if it offers nothing that we can use: no random number, no HMAC that we know, lists longer than any
    /// reason for them, or chunks to be authenticated that we do not authenticate.
    ///
    /// # Errors
    /// A random number of another length than 32 bytes ends the handshake (RFC 4895 section 6.1).
    pub(crate) fn read(init: &InitView<'_>) -> Result<Option<Self>, BadRandom> {
        let (mut random, mut chunks, mut hmacs) = (None, None, None);
        for param in init.params().take_while(|param| !crate::association::stops(param)).flatten() {
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
        let can = |kind| AUTHENTICATED_CHUNKS.contains(&kind) || NEVER_AUTHENTICATED.contains(&kind);
        self.algorithm().is_some() && asked.into_iter().all(can)
    }

    /// The first that it lists and we know (RFC 4895 section 6.1).
    fn algorithm(&self) -> Option<Algorithm> {
        self.hmacs.iter().copied().find_map(Algorithm::of)
    }

    /// Its parameters as they stood in the INIT or INIT-ACK, without padding (RFC 4895 section 6.1).
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

    /// Appends it as a cookie keeps it.
    pub(crate) fn seal(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.random);
        // One more than there are; zero is no list.
        out.push(self.chunks.as_ref().map_or(0, |chunks| chunks.len() as u8 + 1));
        out.extend(self.chunks.iter().flatten());
        out.push(self.hmacs.len() as u8);
        out.extend(self.hmacs.iter().flat_map(|id| id.to_be_bytes()));
    }

    /// Reads back what [`seal`](Self::seal) wrote, and leaves what follows.
    pub(crate) fn open(bytes: &mut &[u8]) -> Option<Self> {
        let random = *take_array::<RANDOM_LEN>(bytes)?;
        let chunks = match take_array::<1>(bytes)?[0] {
            0 => None,
            count => Some(take(bytes, usize::from(count) - 1)?.iter().copied().collect()),
        };
        let count = usize::from(take_array::<1>(bytes)?[0]);
        let hmacs = take(bytes, count * 2)?.as_chunks().0.iter().map(|id| u16::from_be_bytes(*id));
        let hmacs = bounded(hmacs)?;
        let chunks = match chunks.map(|list: Vec<u8>| bounded(list.into_iter())) {
            Some(None) => return None,
            Some(some) => some,
            None => None,
        };
        Some(AuthOffer { random, chunks, hmacs })
    }
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

/// The association shared key: the pair's own, then the numerically smaller key vector, then the larger
/// (RFC 4895 section 6.1).
fn association_key(pair: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let (first, second) = match compare_as_numbers(ours, theirs) {
        Ordering::Greater => (theirs, ours),
        _ => (ours, theirs),
    };
    [pair, first, second].concat()
}

/// As numbers in network byte order; of two that are equal as numbers the shorter comes first.
fn compare_as_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let digits = |bytes: &[u8]| bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let (x, y) = (a.get(digits(a)..).unwrap_or_default(), b.get(digits(b)..).unwrap_or_default());
    x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.len().cmp(&b.len()))
}

/// Why an AUTH and everything behind it is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailure {
    /// We have not offered this HMAC, and say so (RFC 4895 section 6.3).
    UnsupportedHmac(u16),
    /// Another key, or a wrong code; nothing is said.
    Wrong,
}

/// What two sides have agreed on. It holds keys, and prints none.
#[derive(Clone)]
pub(crate) struct Keys {
    key_id: u16,
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
    algorithm: Algorithm,
}

impl Keys {
    /// What follows from both offers and the key that both sides were given beforehand, if any; `None` if the peer offers no HMAC
    /// that we know.
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

    /// What our AUTH chunks say, and how long their codes are.
    pub(crate) fn repr(&self) -> (AuthRepr, usize) {
        let repr = AuthRepr { key_id: self.key_id, hmac_id: self.algorithm.id() };
        (repr, self.algorithm.code_len())
    }

    /// The code over these bytes, in which zeros stand in its place.
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

    /// Checks the code of an AUTH that stands at the beginning of `covered`, which reaches to the end of the packet.
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
        // `verify_slice` takes the same time wherever the difference is.
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
