//! Video flows: arrivals of a trace's packets, and outcomes of its frames.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::job;
use anabranch_lab::run::{Job, RunError, RunResult, ScenarioFiles};
use anabranch_lab::video::{FateCounts, VideoResult};

/// Returns groups of nine frames of the structure IBBPBBPBB, 25 per second. An I frame takes three packets, a P frame two.
fn trace(groups: usize) -> String {
    let mut text = "number,type,size_bytes,time_ms\n".to_owned();
    let kinds = "IPBBPBB".chars().chain("IBBPBBPBB".chars().cycle());
    for (number, kind) in kinds.take(groups * 9).enumerate() {
        let size = match kind {
            'I' => 4000,
            'P' => 1500,
            _ => 300,
        };
        writeln!(text, "{number},{kind},{size},{}", number * 40).expect("text");
    }
    text
}

/// Returns a job with a flow of that trace over one path.
fn video(path: &str, flow: &str) -> Job {
    let folder = tempfile::tempdir().expect("a folder").keep();
    fs::write(folder.join("trace.csv"), trace(10)).expect("a trace");
    let text = format!(
        r#"
[run]
duration = "6 s"
[[path]]
{path}
[[flow]]
kind = "video"
trace = "trace.csv"
{flow}
"#
    );
    Job { files: Arc::new(ScenarioFiles::new(folder)), ..job(&text, "sctp", 1) }
}

fn outcome(result: &RunResult) -> &VideoResult {
    result.flows[0].video.as_ref().expect("a video")
}

const GOOD: &str = "rate = \"2 Mbit/s\"\ndelay = \"20 ms\"";
const LOSSY: &str = "rate = \"2 Mbit/s\"\ndelay = \"20 ms\"\nloss = 0.1";

#[test]
fn without_loss_every_frame_is_shown_and_delays_are_those_of_the_path() {
    let result = video(GOOD, "deadline = \"100 ms\"").run().expect("a run");
    let found = outcome(&result);
    assert_eq!((found.frames, found.not_due, found.decodable_frame_ratio), (90, 0, 1.0));
    assert_eq!((found.fates.I.good, found.fates.P.good, found.fates.B.good), (11, 20, 59));
    assert_eq!((found.stalls, found.frame_fates.as_str()), (0, "90g"));
    let delay = found.delay.expect("complete frames");
    // A B frame of 348 bytes takes 1.4 ms on the link, three packets of an I frame 16.7 ms.
    assert!((21.3..21.5).contains(&delay.p50_ms), "{delay:?}");
    assert!((36.0..38.0).contains(&delay.largest_ms), "{delay:?}");
    assert_eq!(result.flows[0].abandoned, None);
}

#[test]
fn frames_that_come_after_their_playout_are_late() {
    let result = video(GOOD, "deadline = \"10 ms\"").run().expect("a run");
    // References have up to three more intervals, and B frames do not. All references have arrived.
    assert_eq!(outcome(&result).fates.B, FateCounts { late: 59, ..FateCounts::default() });
    assert_eq!(outcome(&result).fates.P.good, 20);
}

#[test]
fn lost_frames_are_lost_and_dependents_undecodable() {
    let path = "rate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n[[path.event]]\nat = \"300 ms\"\nup = false";
    let flow = "deadline = \"100 ms\"\nreliability = { max_retransmissions = 0 }";
    let result = video(path, flow).run().expect("a run");
    let total = outcome(&result).fates.total();
    assert_eq!(total.good + total.lost + total.undecodable, 90);
    assert!(total.good >= 4 && total.lost >= 80, "{total:?}");
    assert!(outcome(&result).frame_fates.ends_with('l'));
}

#[test]
fn limits_by_type_decide_which_frames_are_abandoned() {
    let flow = "deadline = \"1500 ms\"\nordered = false\nreliability = { B = { max_retransmissions = 0 } }";
    let result = video(LOSSY, flow).run().expect("a run");
    let found = outcome(&result);
    assert_eq!((found.fates.I.lost, found.fates.P.lost), (0, 0));
    assert!(found.fates.B.lost > 0, "{found:?}");
    let abandoned = result.flows[0].abandoned.expect("a flow with a limit");
    assert_eq!(abandoned.messages, abandoned.by_retransmissions);
    assert!(abandoned.messages >= found.fates.B.lost && abandoned.forward_tsns > 0, "{abandoned:?}");
    let reliable = video(LOSSY, "deadline = \"1500 ms\"").run().expect("a run");
    assert_eq!((outcome(&reliable).fates.B.lost, reliable.flows[0].abandoned), (0, None));
}

#[test]
fn frames_due_after_the_run_are_not_counted() {
    let result = video(GOOD, "deadline = \"3 s\"").run().expect("a run");
    let found = outcome(&result);
    assert!(found.not_due > 10 && found.frames + found.not_due == 90, "{found:?}");
    assert_eq!(found.fates.total().good, found.frames);
}

#[test]
fn packets_of_one_byte_are_distinguished() {
    let result = video(GOOD, "deadline = \"1 s\"\npayload = \"100 B\"\nstreams = 4").run().expect("a run");
    assert_eq!(outcome(&result).frame_fates, "90g");
}

#[test]
fn a_video_can_go_either_way_and_be_traced() {
    let out = tempfile::tempdir().expect("a folder");
    let flow = "deadline = \"200 ms\"\ndirection = \"reverse\"";
    let job = Job { trace: Some(out.path().to_owned()), ..video(GOOD, flow) };
    let result = job.run().expect("a run");
    assert_eq!(outcome(&result).frame_fates, "90g");
    let folder = out.path().join("sctp-seed1");
    let frames = fs::read_to_string(folder.join("flow-1-frames.csv")).expect("a table of frames");
    assert_eq!(frames.lines().count(), 91);
    assert!(frames.lines().nth(1).expect("a row").starts_with("0,0,I,4000,0.000000,"), "{frames}");
    let arrivals = fs::read_to_string(folder.join("flow-1-arrivals.csv")).expect("a table of arrivals");
    assert!(arrivals.starts_with("packet,arrival_ms,frame,size_bytes\n0,"), "{arrivals}");
    assert_eq!(arrivals.lines().count(), 133);
    let ended = fs::read_to_string(folder.join("result.json")).expect("a result");
    assert!(ended.contains("\"flow-1-frames.csv\"") && ended.contains("\"frame_fates\": \"90g\""));
}

#[test]
fn invalid_or_missing_trace_is_refused_with_the_remedy() {
    let job = video(GOOD, "deadline = \"200 ms\"");
    let said = |job: &Job| match job.check() {
        Err(error @ RunError::Video(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    fs::write(job.files.folder().join("trace.csv"), "number,type,size_bytes,time_ms\n0,Z,1,0\n")
        .expect("a trace");
    let error = said(&job);
    assert!(error.ends_with("trace.csv: line 2: `type` is \"Z\"; it has to be I, P or B"), "{error}");
    fs::remove_file(job.files.folder().join("trace.csv")).expect("a trace to remove");
    assert!(
        said(&job).contains("`anabranch video encode CLIP --out FOLDER` makes a trace"),
        "{}",
        said(&job)
    );
    assert!(job.files.folder().exists());
}

#[test]
fn example_shows_most_frames_and_abandons_packets() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/video/two-paths.toml");
    let text = fs::read_to_string(&file).expect("the example");
    let folder = file.parent().expect("its folder").to_owned();
    let result =
        Job { files: Arc::new(ScenarioFiles::new(folder)), ..job(&text, "cmt", 1) }.run().expect("a run");
    let found = outcome(&result);
    assert_eq!((found.frames, found.not_due), (270, 0));
    assert!(found.decodable_frame_ratio > 0.5 && found.decodable_frame_ratio < 1.0, "{found:?}");
    let abandoned = result.flows[0].abandoned.expect("a flow with limits");
    assert!(abandoned.by_retransmissions > 0 && abandoned.forward_tsns > 0, "{abandoned:?}");
}
