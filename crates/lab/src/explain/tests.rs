//! Traces written by hand with known figures.

use std::fmt::Write as _;
use std::fs;

use tempfile::TempDir;

use super::*;

const RUN: &str = r#"
format = 2
version = "0.1.0"
scheme = "cmt"
seed = 1
profile = "rfc9260"
[[sender]]
name = "f"
flow = "f"
direction = "forward"
scheme = "cmt"
paths = ["a", "b"]
start_s = 0.0
lost_counts_until_resent = false
"#;

const SCENARIO: &str = r#"
run.duration = "10 s"
[[path]]
name = "a"
rate = "8 kbit/s"
delay = "1 ms"
[[path]]
name = "b"
rate = "80 kbit/s"
delay = "1 ms"
"#;

/// Builder of a trace. Rows are given without the flow.
struct Trace {
    folder: TempDir,
    paths: String,
    decisions: String,
    packets: String,
    counted: [u64; 3],
}

impl Trace {
    fn new() -> Self {
        let columns = "time_s,flow,path,state,cwnd_bytes,ssthresh_bytes,outstanding_bytes,lost_unsent_bytes,srtt_ms,queued_bytes";
        let decisions =
            "time_s,flow,decision,path,tsn,detail,reason,figure,value,refused,cwnd_before_bytes,cwnd_bytes";
        Trace {
            folder: tempfile::tempdir().expect("a folder"),
            paths: format!("{columns}\n"),
            decisions: format!("{decisions}\n"),
            packets: "time_s,flow,direction,path,event,tsn,chunk_bytes\n".to_owned(),
            counted: [0; 3],
        }
    }

    /// Adds a row: state, cwnd, outstanding, lost and unsent, srtt, queued.
    fn path(mut self, at: f64, path: &str, row: (&str, u64, u64, u64, &str, u64)) -> Self {
        let (state, cwnd, outstanding, lost, srtt, queued) = row;
        let rest = format!("{state},{cwnd},0,{outstanding},{lost},{srtt},{queued}");
        writeln!(self.paths, "{at:.9},f,{path},{rest}").expect("a string");
        self
    }

    /// Adds a decision: kind, path, and the rest (tsn, detail, reason, figure, value, refused, cwnd before and after).
    fn decides(mut self, at: f64, decision: &str, path: &str, rest: &str) -> Self {
        let missing = 7 - rest.matches(',').count();
        writeln!(self.decisions, "{at:.9},f,{decision},{path},{rest}{}", ",".repeat(missing))
            .expect("a string");
        self
    }

    fn packet(mut self, at: f64, event: &str, path: &str, tsn: u32) -> Self {
        writeln!(self.packets, "{at:.9},f,forward,{path},{event},{tsn},1000").expect("a string");
        self
    }

    /// Sets the run's counters: retransmissions, spurious ones and time-outs.
    fn counted(self, counted: [u64; 3]) -> Self {
        Trace { counted, ..self }
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.folder.path().join(name), text).expect("written");
        self
    }

    fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.folder.path().join(name)).expect("it was there");
        self
    }

    /// Writes all files of a run of ten seconds.
    fn finish(&self) -> &Self {
        let [again, spurious, timeouts] = self.counted;
        let sizes = [self.paths.len(), self.decisions.len(), self.packets.len()];
        let result = format!(
            r#"{{"ended_s": 10.0, "file_bytes": {{"f-paths.csv": {}, "f-decisions.csv": {}, "packets.csv": {}}},
            "result": {{"goodput_kbps": 5.0, "retransmissions": {again}, "spurious_retransmissions": {spurious},
            "timeouts": {timeouts}, "rwnd_blocked_s": 0.0}}}}"#,
            sizes[0], sizes[1], sizes[2]
        );
        self.write("run.toml", RUN).write("scenario.toml", SCENARIO).write("result.json", &result);
        self.write("f-paths.csv", &self.paths).write("f-decisions.csv", &self.decisions);
        self.write("packets.csv", &self.packets)
    }

    fn explain(&self) -> Explanation {
        explain(self.folder.path()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the error, without the folder's name.
    fn error(&self) -> String {
        let error = explain(self.folder.path()).expect_err("it is broken").to_string();
        error.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn flow(&self) -> FlowExplanation {
        self.finish().explain().flows.remove(0)
    }
}

/// Returns a trace with both paths in service and full windows.
fn busy() -> Trace {
    Trace::new().path(0.0, "a", ("Active", 2000, 2000, 0, "100.000", 9)).path(
        0.0,
        "b",
        ("Active", 4000, 4000, 0, "", 9),
    )
}

fn reason(reason: &str, seconds: f64) -> ReasonTime {
    ReasonTime { reason: reason.to_owned(), seconds }
}

#[test]
fn each_moment_of_a_path_counts_once_for_the_first_obstacle() {
    let trace = Trace::new()
        .path(0.0, "a", ("Unconfirmed", 2000, 0, 0, "", 9))
        .path(1.0, "a", ("Active", 2000, 2000, 0, "", 9))
        .path(3.0, "a", ("Active", 2000, 1000, 0, "", 9))
        .decides(3.0, "blocked", "b", "")
        .decides(4.0, "unblocked", "", "")
        .path(4.0, "a", ("Active", 2000, 1000, 0, "", 0))
        .path(6.0, "a", ("Active", 2000, 1000, 500, "", 0))
        .path(7.0, "a", ("Active", 2000, 1000, 0, "", 9))
        .decides(7.5, "schedule", "b", ",,rule,,,a:Preference")
        .decides(8.5, "schedule", "wait", ",,rule,,,a:Burst b:WindowFull")
        .path(9.0, "a", ("PotentiallyFailed", 2000, 1000, 0, "", 9))
        .path(9.75, "a", ("Inactive", 2000, 1000, 0, "", 9));
    let flow = trace.flow();
    let expected = PathTime {
        full_s: 2.0,
        peer_window_s: 1.0,
        no_data_s: 2.0,
        lost_wait_s: 1.0,
        paced_s: 0.0,
        passed_over_s: 2.0,
        passed_over: vec![reason("Preference", 1.0), reason("Burst", 0.5), reason("not considered", 0.5)],
        out_of_service_s: 2.0,
        out_of_service: vec![
            reason("Unconfirmed", 1.0),
            reason("PotentiallyFailed", 0.75),
            reason("Inactive", 0.25),
        ],
    };
    assert_eq!(flow.paths[0].time, expected);
    assert_eq!(flow.duration_s(), 10.0);
    assert_eq!(flow.paths[0].room_s(), 6.0);
    assert_eq!(flow.paths[1].time.out_of_service_s, 10.0, "it never had a row");
}

#[test]
fn abandoned_messages_are_counted_and_reported_by_cause() {
    let rule = "lost once too often";
    let flow = busy()
        .decides(1.0, "abandoned", "", &format!("7,retransmissions,{rule}"))
        .decides(2.0, "abandoned", "", &format!("9,retransmissions,{rule}"))
        .decides(3.0, "abandoned", "", ",lifetime,its lifetime is over")
        .flow();
    let given_up = |cause: &str, rule: &str, messages, unsent| Abandonments {
        cause: cause.to_owned(),
        rule: rule.to_owned(),
        messages,
        unsent,
    };
    let expected =
        [given_up("retransmissions", rule, 2, 0), given_up("lifetime", "its lifetime is over", 1, 1)];
    assert_eq!(flow.abandoned, expected);
    let sentence = flow.capacity_findings.last().expect("a sentence");
    let expected = "3 messages were abandoned: 2 by retransmissions (lost once too often), \
        1 by lifetime (its lifetime is over) (1 before anything of them was sent); FORWARD-TSN tells the receiver \
        not to wait for them.";
    assert_eq!(sentence, expected);
}

#[test]
fn a_path_that_is_chosen_is_no_longer_refused() {
    let trace = busy()
        .path(1.0, "a", ("Active", 2000, 0, 0, "", 9))
        .decides(1.0, "schedule", "b", ",,rule,,,a:Burst")
        .decides(2.0, "schedule", "a", ",,rule")
        .decides(4.0, "schedule", "b", ",,rule,,,a:WindowFull")
        .path(5.0, "a", ("Active", 2000, 2000, 0, "", 9));
    let over = &trace.flow().paths[0].time.passed_over;
    let expected = [
        reason("not considered", 2.0),
        reason("Burst", 1.0),
        reason("no opportunity since it was full", 1.0),
    ];
    assert_eq!(*over, expected);
}

#[test]
fn paced_path_is_not_counted_as_refused() {
    let trace = busy()
        .path(1.0, "a", ("Active", 2000, 0, 0, "", 9))
        .decides(1.0, "pacing", "a", ",,probes,pacing_rate_kbps,1000,")
        .decides(1.0, "schedule", "wait", ",,rule,,,a:Paced")
        .decides(3.0, "schedule", "wait", ",,rule,,,a:InFlightCap")
        .path(6.0, "a", ("Active", 2000, 2000, 0, "", 9));
    let flow = trace.flow();
    let time = &flow.paths[0].time;
    assert_eq!((time.paced_s, time.full_s, time.passed_over_s), (2.0, 8.0, 0.0));
}

#[test]
fn lost_chunks_occupy_the_window_if_the_profile_counts_them() {
    let trace = busy().path(1.0, "a", ("Active", 2000, 1000, 1000, "", 9));
    trace.finish();
    assert_eq!(trace.explain().flows[0].paths[0].time.lost_wait_s, 9.0);
    trace.write("run.toml", &RUN.replace("until_resent = false", "until_resent = true"));
    assert_eq!(trace.explain().flows[0].paths[0].time.full_s, 10.0);
}

#[test]
fn means_are_weighted_by_time_in_service_and_with_known_rtt() {
    let flow = Trace::new()
        .path(0.0, "a", ("Unconfirmed", 9000, 0, 0, "", 9))
        .path(2.0, "a", ("Active", 2000, 2000, 0, "", 9))
        .path(4.0, "a", ("Active", 4000, 1000, 0, "100.000", 9))
        .path(7.0, "a", ("Active", 4000, 4500, 0, "400.000", 9))
        .path(8.0, "a", ("Inactive", 1000, 0, 0, "400.000", 9))
        .flow();
    let path = &flow.paths[0];
    // (2 s · 2000 + 4 s · 4000) / 6 s, (2 · 2000 + 3 · 1000 + 1 · 4500) / 6, (3 s · 3000) / 6 s.
    assert_eq!(path.mean_cwnd_bytes, 20_000.0 / 6.0);
    assert_eq!(path.mean_outstanding_bytes, 11_500.0 / 6.0);
    assert_eq!(path.mean_unused_bytes, 1_500.0);
    // (3 s · 100 + 3 s · 400) / 6 s.
    assert_eq!(path.mean_srtt_ms, Some(250.0));
    assert_eq!(flow.paths[1].mean_srtt_ms, None);
}

#[test]
fn closed_window_time_counts_for_the_path_of_the_current_hole() {
    let flow = busy()
        .decides(1.0, "blocked", "a", "")
        .decides(3.0, "blocked", "b", "")
        .decides(3.5, "blocked", "", "")
        .decides(3.75, "unblocked", "", "")
        .decides(9.0, "blocked", "b", "")
        .flow();
    let closed = &flow.peer_window;
    let holes: Vec<_> = closed.by_hole.iter().map(|hole| (hole.path.as_deref(), hole.seconds)).collect();
    assert_eq!(holes, [(Some("a"), 2.0), (Some("b"), 1.5), (None, 0.25)]);
    assert_eq!((closed.closed_s, closed.closed_share, closed.times), (3.75, 0.375, 2));
    assert_eq!(
        flow.time_findings[2],
        "37.5 % of the time (3.75 s) the peer's window was closed; 2.00 s of it by holes on a, \
         1.50 s of it by holes on b, 0.25 s of it with nothing outstanding."
    );
}

#[test]
fn cuts_are_the_window_rows_that_make_it_smaller() {
    let flow = busy()
        .decides(1.0, "window", "a", ",,initial window,,,,0,4404")
        .decides(2.0, "window", "a", ",,halved by fast retransmit,half_bytes,2202,,4404,2936")
        .decides(3.0, "window", "a", ",,slow start,,,,2936,4404")
        .decides(4.0, "window", "a", ",,T3 expired,,,,4404,1468")
        .decides(5.0, "window", "a", ",,halved by fast retransmit,half_bytes,2202,,1468,1400")
        .decides(6.0, "window", "b", ",,idle for an RTO,,,,4404,4404")
        .flow();
    let cut = |rule: &str, times, bytes| Cut { rule: rule.to_owned(), times, bytes };
    let expected = [cut("T3 expired", 1, 2936), cut("halved by fast retransmit", 2, 1536)];
    assert_eq!(flow.paths[0].cuts, expected);
    assert_eq!(flow.paths[1].cuts, []);
    let text = "a's window was cut 2 times, by 1.5 KiB in all: halved by fast retransmit.";
    assert!(flow.capacity_findings.iter().any(|finding| finding == text), "{:?}", flow.capacity_findings);
}

/// Adds a chunk with this TSN that was sent on `a` at 1 s.
fn sent(trace: Trace, tsn: u32) -> Trace {
    trace.packet(1.0, "sent", "a", tsn)
}

#[test]
fn retransmission_has_the_latest_loss_cause_of_its_chunk() {
    let first = [1, 2, 3, 4, 5, 6, 7].into_iter().fold(busy(), sent);
    let trace = first
        .packet(1.0, "sent", "b", 7)
        .packet(2.0, "received", "a", 3)
        .decides(3.0, "lost", "a", "1,fast-retransmit,enough missing reports")
        .decides(3.0, "lost", "a", "2,fast-retransmit,enough missing reports")
        .decides(3.0, "lost", "a", "3,timeout,T3 expired")
        .decides(3.0, "retransmit", "b", "1,,largest window,cwnd_bytes,4000,a:Preference")
        .packet(3.0, "sent", "b", 1)
        .packet(3.0, "sent", "b", 2)
        .packet(3.0, "sent", "a", 3)
        .decides(4.0, "head-of-line-copy", "b", "4,,head of line")
        .packet(4.0, "sent", "b", 4)
        .decides(4.0, "head-of-line-move", "b", "5,,head of line")
        .decides(4.0, "lost", "a", "5,rescheduled,held the receive buffer up")
        .packet(4.0, "sent", "b", 5)
        .decides(5.0, "tail-probe", "a", "6,,no acknowledgement")
        .packet(5.0, "sent", "a", 6)
        .packet(6.0, "sent", "a", 6)
        .packet(6.0, "received", "a", 6)
        .packet(6.0, "received", "a", 6)
        .decides(7.0, "lost", "b", "1,timeout,T3 expired")
        .packet(7.0, "sent", "a", 1)
        .counted([9, 1, 0]);
    let flow = trace.flow();
    let again = flow.retransmissions.by_cause.iter();
    let again: Vec<_> =
        again.map(|r| (r.cause.as_str(), r.from.as_str(), r.to.as_str(), r.chunks, r.spurious)).collect();
    let expected = [
        ("fast-retransmit", "a", "b", 2, 0),
        ("copies", "a", "b", 1, 0),
        ("head-of-line-copy", "a", "b", 1, 0),
        ("other", "a", "a", 1, 0),
        ("rescheduled", "a", "b", 1, 0),
        ("tail-probe", "a", "a", 1, 0),
        ("timeout", "a", "a", 1, 1),
        ("timeout", "b", "a", 1, 0),
    ];
    assert_eq!(again, expected);
    assert_eq!((flow.retransmissions.chunks, flow.retransmissions.spurious), (9, 1));
    assert_eq!(flow.resent_by_cause()[0], ("fast-retransmit", 2, 0));
    assert_eq!(flow.paths[0].duplicate_chunks, 1);
    assert_eq!(trace.explain().notes, [""; 0], "it agrees with what the run counted");
    let losses: Vec<_> = flow.losses.iter().map(|l| (l.path.as_str(), l.cause.as_str(), l.chunks)).collect();
    let expected =
        [("a", "fast-retransmit", 2), ("a", "rescheduled", 1), ("a", "timeout", 1), ("b", "timeout", 1)];
    assert_eq!(losses, expected);
}

#[test]
fn sums_that_differ_from_the_runs_own_are_noted() {
    let trace = sent(sent(busy(), 1), 1).decides(2.0, "timeout", "a", "").counted([2, 0, 0]);
    let expected = [
        "the traces have 1 retransmissions, the run counted 2",
        "the traces have 1 time-outs, the run counted 0",
    ];
    assert_eq!(trace.finish().explain().notes, expected);
}

#[test]
fn silence_before_a_time_out_starts_at_the_last_send_or_ack() {
    let flow = busy()
        .packet(1.0, "sent", "a", 1)
        .path(1.5, "a", ("Active", 2000, 1500, 0, "", 9))
        .packet(2.0, "sent", "b", 2)
        .path(2.5, "a", ("Active", 2000, 1500, 0, "90.000", 9))
        // The row of the time-out itself has the same time, and does not end the silence.
        .path(4.0, "a", ("Active", 1468, 0, 1500, "", 9))
        .decides(4.0, "timeout", "a", "")
        .decides(5.0, "timeout", "a", "")
        .decides(6.0, "timeout", "", "")
        .flow();
    assert_eq!((flow.paths[0].timeouts, flow.paths[0].timeout_wait_s), (2, 2.5 + 1.0));
    assert_eq!((flow.paths[1].timeouts, flow.timeouts), (0, 3));
    let text = "35.0 % of the time (3.50 s) a was silent before 2 T3 expiries.";
    assert!(flow.time_findings.iter().any(|finding| finding == text), "{:?}", flow.time_findings);
}

#[test]
fn choices_waits_and_refusals_are_counted_with_the_figure_that_decided() {
    let flow = busy()
        .decides(1.0, "schedule", "a", "1,,in turn,free_bytes,1000,b:State")
        .decides(1.0, "schedule", "a", "2,,in turn,free_bytes,4000")
        .decides(1.0, "schedule", "wait", "3,,every window is full,,,a:WindowFull b:State")
        .decides(2.0, "bind", "b", "3,,soonest,delay_ms,20")
        .decides(2.0, "copies", "a b", "4,,redundant")
        .decides(3.0, "retransmit", "b", "1,,largest window,cwnd_bytes,9,a:Preference")
        .decides(3.0, "retransmit", "wait", "2,,no path is active")
        .flow();
    let chosen = |placement: &Placement| -> Vec<(String, String, u64, Option<f64>)> {
        let all = placement.chosen.iter().chain(&placement.waits);
        all.map(|c| (c.decision.clone(), c.path.clone().unwrap_or_default(), c.times, c.mean)).collect()
    };
    let row = |decision: &str, path: &str, times, mean| (decision.to_owned(), path.to_owned(), times, mean);
    let expected = [
        row("schedule", "a", 2, Some(2500.0)),
        row("bind", "b", 1, Some(20.0)),
        row("copies", "a", 1, None),
        row("copies", "b", 1, None),
        row("schedule", "", 1, None),
    ];
    let mut found = chosen(&flow.scheduling);
    found[1..4].sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert_eq!(found, expected);
    assert_eq!(flow.scheduling.decisions, 5);
    let first = &flow.scheduling.chosen[0];
    assert_eq!((first.figure.as_str(), first.min, first.max), ("free_bytes", Some(1000.0), Some(4000.0)));
    let refused = flow.scheduling.refused.iter().map(|r| (r.path.as_str(), r.reason.as_str(), r.times));
    assert_eq!(refused.collect::<Vec<_>>(), [("b", "State", 2), ("a", "WindowFull", 1)]);
    let expected = [row("retransmit", "b", 1, Some(9.0)), row("retransmit", "", 1, None)];
    assert_eq!(chosen(&flow.rerouting), expected);
    assert_eq!(flow.rerouting.refused.len(), 1);
}

#[test]
fn protected_packets_of_a_host_count_where_its_chunks_cannot_be_read() {
    let mut flow = busy().packet(1.0, "sent", "a", 1).flow();
    flow.arrivals_known = false;
    // A host reads only the first chunks, before keys exist.
    assert_eq!(super::findings::capacity(&flow)[0], "a was given 1 kbit/s.");
    flow.paths[0].protected_sent_bytes = Some(70_000_000);
    assert_eq!(super::findings::capacity(&flow)[0], "a was given 56000 kbit/s in protected packets.");
}

#[test]
fn delivered_bytes_are_compared_with_link_capacity() {
    let flow = busy()
        .packet(1.0, "sent", "a", 1)
        .packet(1.0, "sent", "a", 2)
        .packet(1.0, "sent", "a", 3)
        .packet(2.0, "received", "a", 1)
        .packet(2.0, "lost", "a", 2)
        .packet(2.0, "queue-full", "a", 3)
        .decides(3.0, "state", "b", ",PotentiallyFailed,consecutive errors,errors,1")
        .flow();
    let path = &flow.paths[0];
    assert_eq!((path.sent_chunks, path.sent_bytes), (3, 3000));
    assert_eq!((path.received_chunks, path.received_bytes), (1, 1000));
    assert_eq!(path.drops, Drops { lost: 1, policed: 0, queue_full: 1, outage: 0, unroutable: 0 });
    // 8 kbit in 10 s, over a link of 8 kbit/s.
    assert_eq!((path.received_kbps, path.capacity_kbps, path.used_share), (0.8, Some(8.0), Some(0.1)));
    assert_eq!(flow.capacity_findings[0], "a delivered 1 of 8 kbit/s, 10.0 %.");
    assert_eq!(
        flow.capacity_findings[2],
        "a lost 66.7 % of the chunks sent on it: 1 to loss, 1 to full queues."
    );
    let state = StateChange {
        at_s: 3.0,
        state: "PotentiallyFailed".to_owned(),
        rule: "consecutive errors".to_owned(),
    };
    assert_eq!(flow.paths[1].states, [state]);
}

#[test]
fn shares_of_time_are_sorted_and_negligible_ones_omitted() {
    let flow = busy().path(9.999, "a", ("Active", 2000, 0, 0, "100.000", 0)).flow();
    let expected = [
        "100.0 % of the time (10.0 s) b's window was full, with a mean of 3.9 KiB.",
        "100.0 % of the time (10.00 s) a's window was full, with a mean of 2.0 KiB and a round trip of 100.0 ms.",
    ];
    assert_eq!(flow.time_findings, expected);
}

#[test]
fn unfinished_run_is_explained_up_to_its_shortest_file() {
    let trace = busy()
        .path(4.0, "a", ("Active", 2000, 0, 0, "", 0))
        .path(8.0, "a", ("Active", 2000, 2000, 0, "", 9))
        .decides(6.0, "schedule", "wait", ",,rule")
        .packet(7.0, "sent", "a", 1);
    trace.finish().remove("result.json");
    let explained = trace.explain();
    assert_eq!(explained.goodput_kbps, None);
    let time = &explained.flows[0].paths[0].time;
    assert_eq!((time.full_s, time.no_data_s, explained.flows[0].until_s), (4.0, 2.0, 6.0));
    let expected = [
        "the run did not end: result.json is missing",
        "each flow is summed up as far as all of its files go",
    ];
    assert_eq!(explained.notes, expected);
}

#[test]
fn a_file_that_is_cut_short_is_used_up_to_its_last_whole_row() {
    let trace = busy()
        .path(4.0, "a", ("Active", 2000, 0, 0, "", 0))
        .path(8.0, "a", ("Active", 1111, 2222, 0, "", 9))
        .counted([1, 1, 1]);
    trace.finish().write("f-paths.csv", &trace.paths[..trace.paths.len() - 2]);
    let explained = trace.explain();
    assert_eq!(explained.flows[0].paths[0].time.full_s, 4.0);
    assert_eq!(explained.flows[0].until_s, 4.0);
    let expected = [
        "not as the run wrote it, being cut short or changed: f-paths.csv",
        "each flow is summed up as far as all of its files go",
    ];
    assert_eq!(explained.notes, expected);
    for length in 0..trace.paths.len() {
        trace.write("f-paths.csv", &trace.paths[..length]);
        let header = trace.paths.find('\n').expect("a header") + 1;
        match explain(trace.folder.path()) {
            Ok(explained) => assert!(length >= header && !explained.notes.is_empty()),
            Err(ExplainError::Column { .. }) => assert!(length < header),
            Err(error) => panic!("{length}: {error}"),
        }
    }
}

#[test]
fn decisions_of_a_later_version_are_skipped_with_a_note() {
    let trace = busy().decides(1.0, "divine", "a", "").decides(2.0, "divine", "", "");
    let expected = ["f: 2 decisions `divine`, which this version does not know, are skipped"];
    assert_eq!(trace.finish().explain().notes, expected);
}

#[test]
fn without_its_scenario_a_run_is_explained_without_rates() {
    let trace = busy();
    trace.finish().remove("scenario.toml");
    let explained = trace.explain();
    assert_eq!(explained.flows[0].paths[0].used_share, None);
    assert_eq!(explained.notes, ["scenario.toml is missing, so the rates of the paths are unknown"]);
    assert_eq!(explained.flows[0].capacity_findings[0], "a delivered 0 kbit/s.");
}

#[test]
fn packets_of_other_flows_and_directions_are_not_counted() {
    let mut trace = sent(busy(), 1);
    trace.packets += "2.0,f,reverse,a,sent,9,1000\n2.0,g,forward,c,sent,1,1000\n";
    assert_eq!(trace.flow().paths[0].sent_chunks, 1);
}

#[test]
fn errors_name_the_file_the_place_and_the_remedy() {
    let again = "trace the run again";
    let trace = busy();
    trace.finish();
    trace.write("f-paths.csv", &trace.paths.replace("cwnd_bytes", "window"));
    let expected = "f-paths.csv: no column `cwnd_bytes`, so the file was written by another version (0.1.0)";
    assert!(trace.error().starts_with(expected), "{}", trace.error());

    trace.finish().write("f-paths.csv", &trace.paths.replace(",2000,", ",much,"));
    let error = trace.error();
    assert!(
        error.starts_with("f-paths.csv, line 2, column `cwnd_bytes`: expected a whole number, found `much`")
    );
    assert!(error.ends_with(again), "{error}");

    trace.finish().write("f-paths.csv", &trace.paths.replace(",b,", ",c,"));
    assert!(
        trace.error().contains("line 3, column `path`: expected a path of the flow"),
        "{}",
        trace.error()
    );

    trace.finish().write("f-paths.csv", &trace.paths.replace("f,b,Active", "f,b,Active,1"));
    assert!(trace.error().contains("found record with 11 fields"), "{}", trace.error());

    trace.finish().write("run.toml", &RUN.replace("format = 2", "format = 3"));
    assert!(trace.error().starts_with("run.toml: traces of format 3, written by version 0.1.0, which this"));
    trace.write("run.toml", "scheme = 1");
    assert!(
        trace.error().starts_with("run.toml: traces of no format, written by version unknown, which this")
    );
    trace.write("run.toml", "format = 2");
    assert!(trace.error().starts_with("run.toml: "), "{}", trace.error());

    trace.finish().remove("packets.csv");
    assert!(trace.error().starts_with("packets.csv: ") && trace.error().contains("all of its files"));

    let late = busy().path(2.0, "a", ("Active", 1, 1, 0, "", 9)).path(1.0, "a", ("Active", 1, 1, 0, "", 9));
    assert!(late.finish().error().contains("line 5, column `time_s`: expected a time that is not before"));
}

#[test]
fn runs_are_found_in_their_folder_and_in_the_one_above() {
    let parent = tempfile::tempdir().expect("a folder");
    let at = |name: &str| parent.path().join(name);
    for name in ["cmt-seed2", "cmt-seed1", "notes"] {
        fs::create_dir(at(name)).expect("a new folder");
    }
    assert!(matches!(find_runs(parent.path()), Err(ExplainError::NotATrace { .. })));
    for name in ["cmt-seed2", "cmt-seed1"] {
        fs::write(at(name).join("run.toml"), RUN).expect("written");
    }
    assert_eq!(find_runs(parent.path()).expect("two runs"), [at("cmt-seed1"), at("cmt-seed2")]);
    assert_eq!(find_runs(&at("cmt-seed2")).expect("a run"), [at("cmt-seed2")]);
    fs::write(at("notes").join("packets.csv"), "").expect("written");
    assert!(matches!(find_runs(&at("notes")), Err(ExplainError::Version { .. })));
    assert!(matches!(find_runs(&at("nowhere")), Err(ExplainError::NotATrace { .. })));
}
