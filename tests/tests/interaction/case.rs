//! A whole case: the configuration of the endpoints, and all steps.

use std::fmt;

use anabranch_core::protection::{KeyManagementRoles, Protection, ProtectionMode};
use anabranch_core::time::Span;
use anabranch_core::{ErrorDetection, StreamChanges, StreamScheduler};
use anabranch_schemes::registry::{COMPONENTS, Kind, PRESETS, Parameter};
use anabranch_tests::capricious;
use anabranch_tests::duo::{Setup, config};
use anabranch_tests::network::{Link, Side};
use proptest::prelude::*;

use crate::interaction::attack::{self, OnHandshake};
use crate::interaction::op::{self, Op};

/// One side's configuration.
#[derive(Clone, Debug)]
pub(crate) struct SideCase {
    pub(crate) scheme: String,
    pub(crate) profile: &'static str,
    pub(crate) recv_buffer: u64,
    pub(crate) send_buffer: Option<u64>,
    /// Distance of the first TSN from its wrap.
    pub(crate) tsns_to_wrap: Option<u32>,
    pub(crate) silence_ms: Option<u64>,
    pub(crate) streams: u16,
}

/// End of a case after the network is good again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// One side shuts down.
    One(Side),
    /// Both sides shut down at once.
    Both,
    /// A side loses its state, with all keys except stored restart keys if both sides keep those. The action applies to protected
    /// associations only.
    Lost(Side),
}

/// A protected association with an attacker on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guarded {
    /// `true` if the attacker starts before there are keys.
    pub(crate) early: bool,
    pub(crate) on_handshake: OnHandshake,
    /// Side whose key is not the one that the other accepts.
    pub(crate) impostor: Option<Side>,
    /// Number of records after which keys are replaced.
    pub(crate) rekey_records: u64,
    /// `true` if addresses may be added and removed.
    pub(crate) asconf: bool,
}

/// A whole case.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) pairs: usize,
    pub(crate) ipv6: u8,
    pub(crate) sides: [SideCase; 2],
    pub(crate) mtu: usize,
    pub(crate) first_ssn: u16,
    pub(crate) delay_ms: u64,
    pub(crate) seed: u64,
    pub(crate) collide: bool,
    /// `true` if packets are not fetched after every call.
    pub(crate) lazy: bool,
    pub(crate) ops: Vec<Op>,
    pub(crate) ending: Ending,
    pub(crate) guarded: Option<Guarded>,
}

impl fmt::Debug for Case {
    /// Formats the case so that it can be copied into a test.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { pairs, ipv6, mtu, first_ssn, delay_ms, seed, collide, lazy, ending, guarded, .. } = self;
        writeln!(
            f,
            "Case {{ pairs: {pairs}, ipv6: {ipv6}, mtu: {mtu}, first_ssn: {first_ssn}, delay_ms: {delay_ms}, seed: {seed},"
        )?;
        writeln!(
            f,
            "  collide: {collide}, lazy: {lazy}, ending: {ending:?}, guarded: {guarded:?}, sides: {:?}, ops: vec![",
            self.sides
        )?;
        for op in &self.ops {
            writeln!(f, "    {op:?},")?;
        }
        write!(f, "] }}")
    }
}

impl Case {
    /// Returns the minimum receive buffer. ns-2's receiver accepts nothing beyond its buffer, so the buffer must hold a few
    /// packets, or all data if another window calculation of the sender may overrun it.
    fn least_buffer(&self, side: usize) -> u64 {
        match (self.sides[side].profile, self.sides[1 - side].profile) {
            ("ns2", "ns2") => 3 * self.mtu as u64,
            ("ns2", _) => 1 << 24,
            _ => 0,
        }
    }

    fn protection(&self, side: usize) -> Protection {
        let roles = match side {
            _ if self.collide => KeyManagementRoles::Either,
            0 => KeyManagementRoles::Client,
            _ => KeyManagementRoles::Server,
        };
        let methods = Protection::tls_methods();
        let restart = self.seed.is_multiple_of(2);
        Protection { mode: ProtectionMode::Strict, roles, methods, restart }
    }

    /// Returns `true` if a side may delay its data for any time.
    pub(crate) fn is_capricious(&self) -> bool {
        self.sides.iter().any(|side| side.scheme == capricious::NAME)
    }

    /// Returns `true` if the attacker does more than observe.
    pub(crate) fn is_attacked(&self) -> bool {
        let meddles =
            |guarded: &Guarded| guarded.on_handshake != OnHandshake::Watch || guarded.impostor.is_some();
        self.guarded.as_ref().is_some_and(meddles) || self.ops.iter().any(|op| matches!(op, Op::Attack(_)))
    }

    /// Returns `true` if the only interference is a changed offer.
    pub(crate) fn is_changed_offer_all_that_happens(&self) -> bool {
        let changed = |guarded: &Guarded| {
            matches!(guarded.on_handshake, OnHandshake::Strip { .. } | OnHandshake::ChangeOffer)
        };
        self.guarded.as_ref().is_some_and(changed) && self.ops.iter().all(Op::is_calm)
    }

    /// Returns the changes of streams that both sides support. Cases without such a step keep their packets.
    fn stream_changes(&self) -> Option<StreamChanges> {
        self.ops.iter().any(Op::changes_streams).then_some(StreamChanges { max_streams: 8 })
    }

    /// Returns the stream scheduler of both sides, and `true` for I-DATA. Cases without such a step keep their packets.
    fn stream_scheduler(&self) -> (StreamScheduler, bool) {
        let selected = self.ops.iter().find_map(|op| match op {
            Op::Prioritise { scheduler, interleaving, .. } => Some((*scheduler, *interleaving)),
            _ => None,
        });
        selected.unwrap_or_default()
    }

    /// Returns the error detection of a side, selected by bits of the seed. DTLS would discard corrupted packets, so cases with them
    /// use checksums.
    fn error_detection(&self, side: usize) -> ErrorDetection {
        let corrupts = |op: &Op| matches!(op, Op::Impair { corrupt, .. } if *corrupt > 0);
        if self.seed >> (1 + side) & 1 == 0 || self.guarded.is_some() || self.ops.iter().any(corrupts) {
            return ErrorDetection::default();
        }
        ErrorDetection::LowerLayerDtls
    }

    /// Returns `true` if both sides send packets without checksums.
    pub(crate) fn omits_checksums(&self) -> bool {
        [0, 1].map(|side| self.error_detection(side)) == [ErrorDetection::LowerLayerDtls; 2]
    }

    /// Returns the setup for the harness.
    pub(crate) fn setup(&self) -> Setup {
        let sides = [0, 1].map(|side| {
            let SideCase { scheme, profile, recv_buffer, send_buffer, tsns_to_wrap, silence_ms, streams } =
                &self.sides[side];
            let mut config = config(scheme, profile);
            config.recv_buffer_bytes = (*recv_buffer).max(self.least_buffer(side));
            config.send_buffer_bytes = *send_buffer;
            config.mtu_bytes = self.mtu;
            config.first_ssn = self.first_ssn;
            config.initial_tsn = tsns_to_wrap.map(|n| 0_u32.wrapping_sub(n));
            config.path_silence_limit = silence_ms.map(Span::from_millis);
            config.streams = *streams;
            config.stream_changes = self.stream_changes();
            config.error_detection = self.error_detection(side);
            (config.stream_scheduler, config.interleaving) = self.stream_scheduler();
            if let Some(guarded) = &self.guarded {
                config.protection = Some(self.protection(side));
                config.address_changes.asconf = guarded.asconf;
            }
            config
        });
        // A sender without a receive window needs a receiver without one.
        let shared = sides.iter().all(|side| side.profile.shared_receive_window);
        let sides = sides.map(|mut side| {
            side.profile.shared_receive_window = shared;
            side
        });
        Setup {
            pairs: self.pairs,
            ipv6: self.ipv6,
            sides,
            link: Link::good(Span::from_millis(self.delay_ms)),
            seed: self.seed,
            collide: self.collide,
            carries_contents: true,
        }
    }
}

/// Returns a name with some of its parameters set.
fn part(name: &str, parameters: &[Parameter], set: &[(u8, u32)]) -> String {
    let mut arguments = Vec::new();
    for (parameter, &(wanted, value)) in parameters.iter().zip(set.iter().cycle()) {
        if wanted == 0 {
            arguments.push(format!("{}={}", parameter.name, written(parameter, value)));
        }
    }
    format!("{name}({})", arguments.join(","))
}

fn written(parameter: &Parameter, value: u32) -> String {
    match parameter.kind {
        Kind::Switch => (value % 2 == 1).to_string(),
        // Small counts make a difference.
        Kind::Count { min, max } => (min + value % (max - min + 1).min(6)).to_string(),
        Kind::Choice(choice) => {
            let names = choice.names();
            names[value as usize % names.len()].to_owned()
        }
        Kind::Milliseconds { min, max } => (min + value % (max - min + 1)).to_string(),
        Kind::Decimal { min, max } => (min + (max - min) * f64::from(value) / 1000.0).to_string(),
        Kind::Length => format!("{}MTU", f64::from(value) / 100.0),
        Kind::Weights => format!("{}:1", 1 + value % 9),
    }
}

/// Returns a preset with up to two components that fit it and each other, and some parameters set.
fn scheme() -> impl Strategy<Value = String> {
    let set = || prop::collection::vec((0..3_u8, 0..1000_u32), 1..8);
    let added = prop::collection::vec((0..COMPONENTS.len(), set()), 0..3);
    let composed = (0..PRESETS.len(), set(), added).prop_map(|(preset, values, added)| {
        let preset = &PRESETS[preset];
        let mut text = part(preset.name, preset.parameters, &values);
        let mut roles = Vec::new();
        for (component, values) in added {
            let component = &COMPONENTS[component];
            if component.fits(preset) && !roles.contains(&component.role) {
                roles.push(component.role);
                text += &format!("+{}", part(component.name, component.parameters, &values));
            }
        }
        text
    });
    prop_oneof![4 => composed, 1 => Just(capricious::NAME.to_owned())]
}

fn buffer() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(65_536), 2 => 2_000..10_000_u64, 2 => 2_000..262_144_u64]
}

fn side(profile: impl Strategy<Value = &'static str>) -> impl Strategy<Value = SideCase> {
    let send_buffer = prop::option::weighted(0.3, 1_000..100_000_u64);
    let tsns_to_wrap = prop::option::of(0..200_u32);
    let silence_ms = prop::option::weighted(0.2, 500..10_000_u64);
    // Data before the end of the handshake may use a stream that the other side does not accept.
    let streams = prop_oneof![4 => Just(4_u16), 1 => 1..4_u16];
    (scheme(), profile, buffer(), send_buffer, tsns_to_wrap, silence_ms, streams).prop_map(
        |(scheme, profile, recv_buffer, send_buffer, tsns_to_wrap, silence_ms, streams)| SideCase {
            scheme,
            profile,
            recv_buffer,
            send_buffer,
            tsns_to_wrap,
            silence_ms,
            streams,
        },
    )
}

fn sides() -> impl Strategy<Value = [SideCase; 2]> {
    let profile = || prop_oneof![Just("rfc9260"), Just("ns2")];
    prop_oneof![
        2 => [side(Just("rfc9260")), side(Just("rfc9260"))],
        1 => [side(Just("ns2")), side(Just("ns2"))],
        1 => [side(profile()), side(profile())],
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![Just(Ending::One(Side::A)), Just(Ending::One(Side::B)), Just(Ending::Both)]
}

/// Returns any case.
pub(crate) fn any() -> impl Strategy<Value = Case> {
    let pairs = prop_oneof![8 => 1..5_usize, 1 => Just(8)];
    let mtu = prop_oneof![4 => Just(1500_usize), 1 => Just(576), 1 => Just(9000)];
    let ipv6 = prop_oneof![3 => Just(0_u8), 1 => 0..=255_u8];
    let ssn = prop_oneof![Just(0_u16), 65_500..=u16::MAX];
    let network = (0..200_u64, 0..u64::MAX, prop::bool::weighted(0.15), prop::bool::weighted(0.3));
    let ops = prop::collection::vec(op::any(), 0..60);
    ((pairs, ipv6, sides(), mtu, ssn), network, ops, ending()).prop_map(
        |((pairs, ipv6, sides, mtu, first_ssn), (delay_ms, seed, collide, lazy), ops, ending)| Case {
            pairs,
            ipv6,
            sides,
            mtu,
            first_ssn,
            delay_ms,
            seed,
            collide,
            lazy,
            ops,
            ending,
            guarded: None,
        },
    )
}

fn guarded() -> impl Strategy<Value = Guarded> {
    let impostor = prop_oneof![16 => Just(None), 1 => Just(Some(Side::A)), 1 => Just(Some(Side::B))];
    let rekey_records = prop_oneof![1 => Just(u64::MAX), 2 => 30..300_u64];
    (prop::bool::weighted(0.3), attack::on_handshake(), impostor, rekey_records, prop::bool::ANY).prop_map(
        |(early, on_handshake, impostor, rekey_records, asconf)| Guarded {
            early: early || on_handshake != OnHandshake::Watch || impostor.is_some(),
            on_handshake,
            impostor,
            rekey_records,
            asconf,
        },
    )
}

/// Returns any case of a protected association with an attacker.
pub(crate) fn attacked() -> impl Strategy<Value = Case> {
    let lost = prop::option::weighted(0.15, op::side());
    let sides = [side(Just("rfc9260")), side(Just("rfc9260"))];
    let ops = prop::collection::vec(op::with_attacks(), 0..60);
    (any(), sides, ops, guarded(), lost).prop_map(|(case, sides, ops, guarded, lost)| Case {
        sides: sides.map(|side| SideCase { streams: side.streams.max(2), ..side }),
        ops: match guarded.on_handshake {
            // The result must be the only event.
            OnHandshake::Strip { .. } | OnHandshake::ChangeOffer => {
                ops.into_iter().filter(Op::is_calm).take(5).collect()
            }
            OnHandshake::Watch | OnHandshake::AnswerFaster { .. } => ops,
        },
        ending: lost.map_or(case.ending, Ending::Lost),
        guarded: Some(guarded),
        ..case
    })
}
