//! Names and values of the metrics.

use std::fmt;

use anabranch_core::{Discard, PathState, Statistics};
use anabranch_net::{AssociationReport, EndpointReport, EndpointStatistics, PathSnapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::link_cost::{LinkCost, LinkLimit, Usage};

/// Prefix of all names.
const PREFIX: &str = "anabranch";

const STATES: [(PathState, &str); 4] = [
    (PathState::Unconfirmed, "unconfirmed"),
    (PathState::Active, "active"),
    (PathState::PotentiallyFailed, "potentially_failed"),
    (PathState::Inactive, "inactive"),
];

/// Returns the label value of a discard reason.
pub(crate) fn discard_word(reason: Discard) -> &'static str {
    match reason {
        Discard::Malformed => "malformed",
        Discard::Checksum => "checksum",
        Discard::VerificationTag => "verification_tag",
        Discard::OutOfTheBlue => "out_of_the_blue",
        Discard::CookieForged => "cookie_forged",
        Discard::CookieStale => "cookie_stale",
        Discard::CookieUnexpected => "cookie_unexpected",
        Discard::BadInit => "bad_init",
        Discard::Unexpected => "unexpected",
        Discard::BadSack => "bad_sack",
        Discard::Full => "full",
        Discard::Unauthenticated => "unauthenticated",
        Discard::Flood => "flood",
        Discard::ShortQuestion => "short_question",
        Discard::NotAdmitted => "not_admitted",
        Discard::Unprotected => "unprotected",
        Discard::NoKey => "no_key",
        Discard::Replayed => "replayed",
        Discard::NotAuthentic => "not_authentic",
        Discard::KeySpent => "key_spent",
    }
}

/// Writes the page of endpoints and of links with a cost or limit. Each report comes with the SCTP port of its endpoint.
pub(crate) fn write(reports: Vec<(u16, EndpointReport)>, links: Vec<LinkCost>) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Page { reports, links }));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut text, &registry);
    text
}

type Labels = Vec<(&'static str, String)>;

/// Metric family: its name without unit and suffix, and its description.
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, help, unit: None, kind: MetricType::Counter }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, help, unit: None, kind: MetricType::Gauge }
}

impl Family {
    fn bytes(self) -> Self {
        Family { unit: Some(Unit::Bytes), ..self }
    }

    fn seconds(self) -> Self {
        Family { unit: Some(Unit::Seconds), ..self }
    }
}

#[derive(Debug)]
struct Page {
    reports: Vec<(u16, EndpointReport)>,
    links: Vec<LinkCost>,
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.endpoints(&mut encoder)?;
        self.associations(&mut encoder)?;
        self.paths(&mut encoder)?;
        self.links(&mut encoder)
    }
}

impl Page {
    fn endpoints(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Read = fn(&EndpointStatistics) -> u64;
        let families: [(Family, Read); 13] = [
            (counter("host_received", "Bytes of UDP datagrams received").bytes(), |s| s.bytes_received),
            (counter("host_sent", "Bytes of UDP datagrams that the system took").bytes(), |s| s.bytes_sent),
            (counter("host_datagrams_received", "UDP datagrams received"), |s| s.datagrams_received),
            (counter("host_datagrams_sent", "UDP datagrams that the system took"), |s| s.datagrams_sent),
            (counter("host_send_calls", "Calls of the system that sent them"), |s| s.send_calls),
            (counter("host_send_failures", "UDP datagrams that the system refused"), |s| s.send_failures),
            (
                counter(
                    "host_send_overflows",
                    "UDP datagrams dropped since a socket was blocked for too long",
                ),
                |s| s.send_overflows,
            ),
            (gauge("host_associations", "Associations that are open, opening or closing"), |s| {
                s.associations as u64
            }),
            (gauge("host_handshakes", "Associations opened by peers that have no keys yet"), |s| {
                s.keying.pending
            }),
            (counter("host_protected", "Associations that came to their first keys"), |s| {
                s.keying.established
            }),
            (counter("host_protection_failures", "Associations that ended before they had keys"), |s| {
                s.keying.failed
            }),
            (counter("host_rekeys", "Times that an association came to newer keys"), |s| s.keying.rekeys),
            (
                counter(
                    "host_rekey_failures",
                    "Number of times that an association kept its keys because no newer ones were available",
                ),
                |s| s.keying.failed_rekeys,
            ),
        ];
        for (family, read) in &families {
            let series = self.reports.iter().map(|(port, report)| {
                (vec![("sctp_port", port.to_string())], read(&report.statistics) as f64)
            });
            encode(encoder, family, series)?;
        }
        let discards = self.reports.iter().flat_map(|(port, report)| {
            Discard::ALL.into_iter().map(move |reason| {
                let labels =
                    vec![("sctp_port", port.to_string()), ("reason", discard_word(reason).to_owned())];
                (labels, report.statistics.discards.of(reason) as f64)
            })
        });
        encode(encoder, &counter("host_discards", "Packets and chunks that the endpoint dropped"), discards)
    }

    /// Iterates over the associations with their labels.
    fn each(&self) -> impl Iterator<Item = (Labels, &AssociationReport)> {
        self.reports.iter().flat_map(|(port, report)| {
            report.associations.iter().map(move |association| {
                let name = format!("association-{}", association.number);
                (vec![("sctp_port", port.to_string()), ("association", name)], association)
            })
        })
    }

    fn associations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, read) in &counters() {
            let series = self.each().map(|(labels, found)| (labels, read(&found.snapshot.statistics)));
            encode(encoder, family, series)?;
        }
        type Read = fn(&AssociationReport) -> u64;
        let gauges: [(Family, Read); 3] = [
            (gauge("association_established", "1 if messages may be sent and received, else 0"), |found| {
                u64::from(found.established)
            }),
            (
                gauge("association_send_buffered", "User bytes accepted and not acknowledged").bytes(),
                |found| found.snapshot.send_buffered_bytes,
            ),
            (
                gauge("association_recv_buffered", "User bytes received and not handed over").bytes(),
                |found| found.snapshot.recv_buffered_bytes,
            ),
        ];
        for (family, read) in &gauges {
            encode(encoder, family, self.each().map(|(labels, found)| (labels, read(found) as f64)))?;
        }
        Ok(())
    }

    fn each_path(&self) -> impl Iterator<Item = (Labels, &PathSnapshot)> {
        self.each().flat_map(|(labels, association)| {
            association.snapshot.paths.iter().map(move |path| {
                let mut labels = labels.clone();
                labels.push(("path", format!("path-{}", path.id.index() + 1)));
                labels.push(("local", path.local.to_string()));
                labels.push(("remote", path.remote.to_string()));
                (labels, path)
            })
        })
    }

    fn paths(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Read = fn(&PathSnapshot) -> Option<f64>;
        let families: [(Family, Read); 10] = [
            (counter("path_sent", "Chunk bytes of DATA sent, every transmission counted").bytes(), |path| {
                Some(path.sent_bytes as f64)
            }),
            (counter("path_delivered", "Chunk bytes of DATA acknowledged").bytes(), |path| {
                Some(path.delivered_bytes as f64)
            }),
            (counter("path_lost", "Chunk bytes of DATA declared lost").bytes(), |path| {
                Some(path.lost_bytes as f64)
            }),
            (counter("path_received", "Bytes of SCTP packets received").bytes(), |path| {
                Some(path.received_bytes as f64)
            }),
            (gauge("path_cwnd", "Congestion window in chunk bytes").bytes(), |path| {
                Some(path.cwnd_bytes as f64)
            }),
            (
                gauge("path_outstanding", "Chunk bytes sent, not acknowledged and not declared lost").bytes(),
                |path| Some(path.in_flight_bytes as f64),
            ),
            (gauge("path_srtt", "Smoothed round-trip time").seconds(), |path| {
                path.srtt.map(|srtt| srtt.as_secs_f64())
            }),
            (gauge("path_rto", "Retransmission time-out with its back-off").seconds(), |path| {
                Some(path.rto.as_secs_f64())
            }),
            (gauge("path_consecutive_errors", "Errors since the path was last known to work"), |path| {
                Some(f64::from(path.errors))
            }),
            (gauge("path_primary", "1 for the primary path, else 0"), |path| {
                Some(f64::from(u8::from(path.primary)))
            }),
        ];
        for (family, read) in &families {
            let series = self.each_path().filter_map(|(labels, path)| Some((labels, read(path)?)));
            encode(encoder, family, series)?;
        }
        let states = self.each_path().flat_map(|(labels, path)| {
            STATES.into_iter().map(move |(state, word)| {
                let mut labels = labels.clone();
                labels.push(("state", word.to_owned()));
                (labels, f64::from(u8::from(path.state == state)))
            })
        });
        encode(encoder, &gauge("path_state", "1 for the state that the path is in, else 0"), states)
    }

    fn links(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.links.is_empty() {
            return Ok(());
        }
        let labels = |link: &LinkCost| vec![("link", link.name.clone())];
        let carried = self.links.iter().map(|link| (labels(link), link.bytes as f64));
        let help =
            "Bytes of IP packets that the command has sent and received on a link with a cost or limit";
        encode(encoder, &counter("link_carried", help).bytes(), carried)?;
        type Read = fn(&LinkLimit) -> f64;
        let limits: [(Family, Read); 2] = [
            (
                gauge("link_used", "Bytes of all commands on the link in the period of its limit").bytes(),
                |limit| limit.used_bytes as f64,
            ),
            (gauge("link_limit", "Maximum number of bytes on the link in a period").bytes(), |limit| {
                limit.limit_bytes as f64
            }),
        ];
        for (family, read) in &limits {
            let series =
                self.links.iter().filter_map(|link| Some((labels(link), read(link.limit.as_ref()?))));
            encode(encoder, family, series)?;
        }
        let uses = self.links.iter().flat_map(|link| {
            Usage::ALL.into_iter().map(move |usage| {
                let labels = vec![("link", link.name.clone()), ("use", usage.name().to_owned())];
                (labels, f64::from(u8::from(link.usage == usage)))
            })
        });
        encode(encoder, &gauge("link_use", "1 for the use of the link, else 0"), uses)
    }
}

type ReadStatistics = fn(&Statistics) -> f64;

fn counters() -> [(Family, ReadStatistics); 16] {
    [
        (counter("association_data_packets_sent", "Packets with DATA sent"), |s| s.data_packets_sent as f64),
        (counter("association_chunks_sent", "DATA chunks sent for the first time"), |s| s.chunks_sent as f64),
        (counter("association_chunks_received", "DATA chunks received, duplicates included"), |s| {
            s.chunks_received as f64
        }),
        (counter("association_duplicates_received", "DATA chunks received that were duplicates"), |s| {
            s.duplicates_received as f64
        }),
        (
            counter("association_retransmissions", "Transmissions of a chunk after its first, of any kind"),
            |s| s.retransmissions as f64,
        ),
        (counter("association_fast_retransmitted_chunks", "Chunks marked for fast retransmission"), |s| {
            s.fast_retransmitted_chunks as f64
        }),
        (counter("association_timeouts", "T3 expiries"), |s| s.timeouts as f64),
        (counter("association_copies", "Copies that the scheme sent on a second path"), |s| {
            s.copies_sent as f64
        }),
        (counter("association_tail_probes", "Chunks sent again to draw out an acknowledgement"), |s| {
            s.tail_probes as f64
        }),
        (
            counter(
                "association_opportunistic_retransmissions",
                "Transmissions of the head of line ahead of its loss",
            ),
            |s| s.opportunistic_retransmissions as f64,
        ),
        (counter("association_heartbeat_timeouts", "HEARTBEATs that went unanswered"), |s| {
            s.heartbeat_timeouts as f64
        }),
        (counter("association_chunks_dropped", "DATA chunks dropped for lack of receive buffer"), |s| {
            s.chunks_dropped as f64
        }),
        (counter("association_abandoned_messages", "Messages abandoned within their limits"), |s| {
            s.abandoned.messages() as f64
        }),
        (counter("association_forward_tsns_sent", "FORWARD-TSNs sent, those sent again included"), |s| {
            s.forward_tsns_sent as f64
        }),
        (counter("association_delivered", "User bytes handed to the application").bytes(), |s| {
            s.bytes_delivered as f64
        }),
        (
            counter(
                "association_blocked_by_peer_window",
                "Time in which only the peer's window kept data back",
            )
            .seconds(),
            |s| s.blocked_by_peer_window_ns as f64 / 1e9,
        ),
    ]
}

fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    series: impl Iterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let Family { name, help, unit, kind } = family;
    let mut metric = encoder.encode_descriptor(name, help, unit.as_ref(), *kind)?;
    for (labels, value) in series {
        let mut one: MetricEncoder<'_> = metric.encode_family(&labels)?;
        match kind {
            MetricType::Counter => one.encode_counter::<NoLabelSet, f64, f64>(&value, None)?,
            _ => one.encode_gauge(&value)?,
        }
    }
    Ok(())
}
