//! Figures of an explanation as sentences, the largest first.

use crate::explain::{Abandonments, FlowExplanation, PathExplanation, ReasonTime};

/// Smallest share of the time that gets a sentence.
const LEAST_SHARE: f64 = 0.0005;

/// Returns sentences on the use of time.
pub(super) fn time(flow: &FlowExplanation) -> Vec<String> {
    let mut all = Vec::new();
    let closed = &flow.peer_window;
    let holes: Vec<String> = closed
        .by_hole
        .iter()
        .map(|hole| match &hole.path {
            Some(path) => format!("{} of it by holes on {path}", in_seconds(hole.seconds)),
            None => format!("{} of it with nothing outstanding", in_seconds(hole.seconds)),
        })
        .collect();
    all.push((closed.closed_s, format!("the peer's window was closed; {}", holes.join(", "))));
    for path in &flow.paths {
        of_path(path, &mut all);
    }
    all.retain(|(seconds, _)| *seconds > 0.0 && *seconds >= LEAST_SHARE * flow.duration_s());
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sentence = |(seconds, what): (f64, String)| {
        format!("{} of the time ({}) {what}.", per_cent(seconds / flow.duration_s()), in_seconds(seconds))
    };
    all.into_iter().map(sentence).collect()
}

fn of_path(path: &PathExplanation, all: &mut Vec<(f64, String)>) {
    let (name, time) = (&path.name, &path.time);
    let trip = path.mean_srtt_ms.map_or_else(String::new, |ms| format!(" and a round trip of {ms:.1} ms"));
    let window = format!("{}{trip}", in_kib(path.mean_cwnd_bytes));
    all.push((time.full_s, format!("{name}'s window was full, with a mean of {window}")));
    all.push((time.no_data_s, format!("{name}'s window had room and no data waited")));
    let lost = format!("{name}'s window had room while lost chunks waited to be retransmitted");
    all.push((time.lost_wait_s, lost));
    all.push((time.paced_s, format!("{name}'s window had room and its pacing let no packet leave yet")));
    let over = format!(
        "{name}'s window had room and the scheduler chose otherwise: {}",
        reasons_text(&time.passed_over)
    );
    all.push((time.passed_over_s, over));
    all.push((
        time.out_of_service_s,
        format!("{name} was not in service: {}", reasons_text(&time.out_of_service)),
    ));
    let wait = format!("{name} was silent before {}", counted(path.timeouts, "T3 expiry", "T3 expiries"));
    all.push((path.timeout_wait_s, wait));
}

/// Returns sentences on the use of capacity.
pub(super) fn capacity(flow: &FlowExplanation) -> Vec<String> {
    let mut all: Vec<String> = flow.paths.iter().map(|path| carried(flow, path)).collect();
    let mut cuts: Vec<_> = flow.paths.iter().flat_map(|p| p.cuts.iter().map(move |cut| (p, cut))).collect();
    cuts.sort_by_key(|(_, cut)| std::cmp::Reverse(cut.bytes));
    all.extend(cuts.iter().map(|(path, cut)| {
        let times = counted(cut.times, "time", "times");
        format!(
            "{}'s window was cut {times}, by {} in all: {}.",
            path.name,
            in_kib(cut.bytes as f64),
            cut.rule
        )
    }));
    all.extend(flow.paths.iter().filter(|path| path.drops.total() > 0).map(dropped));
    all.extend(resent(flow));
    all.extend(abandoned(flow));
    all
}

/// Returns a sentence on abandoned messages, their causes, and the FORWARD-TSN chunks.
fn abandoned(flow: &FlowExplanation) -> Option<String> {
    let messages: u64 = flow.abandoned.iter().map(|each| each.messages).sum();
    if messages == 0 {
        return None;
    }
    let cause = |each: &Abandonments| {
        let unsent = match each.unsent {
            0 => String::new(),
            n => format!(" ({n} before anything of them was sent)"),
        };
        format!("{} by {} ({}){unsent}", each.messages, each.cause, each.rule)
    };
    let causes: Vec<String> = flow.abandoned.iter().map(cause).collect();
    let told = match flow.forward_tsns {
        Some(n) => format!("{} told", counted(n, "FORWARD-TSN chunk", "FORWARD-TSN chunks")),
        None => "FORWARD-TSN tells".to_owned(),
    };
    let given_up = counted(messages, "message was abandoned", "messages were abandoned");
    Some(format!("{given_up}: {}; {told} the receiver not to wait for them.", causes.join(", ")))
}

fn carried(flow: &FlowExplanation, path: &PathExplanation) -> String {
    if !flow.arrivals_known {
        let kbps = |bytes: u64| bytes as f64 * 8.0 / 1000.0 / flow.duration_s().max(f64::MIN_POSITIVE);
        return match path.protected_sent_bytes {
            Some(bytes) => format!("{} was given {:.0} kbit/s in protected packets.", path.name, kbps(bytes)),
            None => format!("{} was given {:.0} kbit/s.", path.name, kbps(path.sent_bytes)),
        };
    }
    let duplicates = match path.duplicate_chunks {
        0 => String::new(),
        n => format!(", {} of it more than once", counted(n, "chunk", "chunks")),
    };
    let received = format!("{} delivered {:.0}", path.name, path.received_kbps);
    match (path.capacity_kbps, path.used_share) {
        (Some(capacity), Some(used)) => {
            format!("{received} of {capacity:.0} kbit/s, {}{duplicates}.", per_cent(used))
        }
        _ => format!("{received} kbit/s{duplicates}."),
    }
}

fn dropped(path: &PathExplanation) -> String {
    let drops = path.drops;
    let kinds = [
        (drops.lost, "to loss"),
        (drops.policed, "to policers"),
        (drops.queue_full, "to full queues"),
        (drops.outage, "to outages"),
        (drops.unroutable, "for lack of a route"),
    ];
    let parts: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let share = per_cent(drops.total() as f64 / path.sent_chunks.max(1) as f64);
    format!("{} lost {share} of the chunks sent on it: {}.", path.name, parts.join(", "))
}

fn resent(flow: &FlowExplanation) -> Option<String> {
    let again = &flow.retransmissions;
    if again.chunks == 0 {
        return None;
    }
    let sent: u64 = flow.paths.iter().map(|path| path.sent_chunks).sum();
    let share = per_cent(again.chunks as f64 / sent.max(1) as f64);
    let causes: Vec<String> = flow
        .resent_by_cause()
        .into_iter()
        .map(|(cause, all, spurious)| match spurious {
            0 => format!("{all} {cause}"),
            n => format!("{all} {cause} ({n} spurious)"),
        })
        .collect();
    let spurious = match flow.arrivals_known {
        true => format!(", {} of them spurious", again.spurious),
        false => String::new(),
    };
    Some(format!(
        "{share} of all transmissions ({}) were repeats{spurious}: {}.",
        again.chunks,
        causes.join(", ")
    ))
}

fn reasons_text(times: &[ReasonTime]) -> String {
    let parts: Vec<String> =
        times.iter().map(|time| format!("{} {}", time.reason, in_seconds(time.seconds))).collect();
    parts.join(", ")
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats seconds with the digits that their size requires.
fn in_seconds(seconds: f64) -> String {
    match seconds {
        long if long >= 10.0 => format!("{long:.1} s"),
        short => format!("{short:.2} s"),
    }
}

fn in_kib(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}
