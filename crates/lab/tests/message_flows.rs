//! Flows of messages at intervals.

use crate::common::run;

fn scenario(association: &str, flow: &str) -> String {
    format!(
        r#"
[run]
duration = "20 s"
[association]
{association}
[[path]]
rate = "1 Mbit/s"
delay = "20 ms"
[[flow]]
kind = "messages"
{flow}
"#
    )
}

#[test]
fn a_flow_of_messages_has_the_streams_that_it_asks_for() {
    let flow = "size = \"1000 B\"\ninterval = \"20 ms\"\nstreams = 3\nstart = \"0 s\"";
    for streams in [1, 3, 10] {
        let result = run(&scenario(&format!("streams = {streams}"), flow), "sctp", 1);
        // 50 messages of 8 kbit each second.
        assert!((380.0..=400.0).contains(&result.goodput_kbps), "{streams}: {} kbit/s", result.goodput_kbps);
    }
}

#[test]
fn messages_that_find_the_send_buffer_full_go_when_there_is_room() {
    // The flow offers 8 Mbit/s to a path of 1 Mbit/s.
    let flow = "size = \"10 kB\"\ninterval = \"10 ms\"";
    // A message that fills the buffer waits for the acknowledgement of the previous one, which is delayed by 200 ms.
    for (buffer, least) in [("4 KiB", 200.0), ("32 KiB", 500.0)] {
        let result = run(&scenario(&format!("send_buffer = \"{buffer}\""), flow), "sctp", 1);
        assert!(result.goodput_kbps > least, "{buffer}: {} kbit/s", result.goodput_kbps);
    }
}

#[test]
fn small_messages_beside_the_bulk_are_timed_and_neither_is_lost() {
    let beside = "messages = { size = \"200 B\", interval = \"20 ms\" }";
    let text = scenario("", "").replace("kind = \"messages\"", beside);
    let flow = &run(&text, "sctp", 1).flows[0];
    let delays = flow.message_delays.as_ref().expect("there are messages beside the bulk");
    assert!((990..=1000).contains(&delays.sent), "{delays:?}");
    // Messages on their way at the end have not arrived.
    assert!(delays.sent - delays.delivered < 100, "{delays:?}");
    let (median, p99) = (delays.median_ms.expect("a median"), delays.p99_ms.expect("a quantile"));
    // 20 ms of propagation and 13.6 ms to send a full packet of bulk and message.
    assert!(21.6 < median && median <= p99, "{delays:?}");
    assert!(delays.queue_p99_ms.expect("a wait") < p99, "{delays:?}");
    assert!(flow.goodput_kbps > 900.0, "{}", flow.goodput_kbps);
}

#[test]
fn a_flow_without_small_messages_has_no_delays_of_them() {
    let text = scenario("", "").replace("kind = \"messages\"", "kind = \"bulk\"");
    assert_eq!(run(&text, "sctp", 1).flows[0].message_delays, None);
}

#[test]
fn the_delay_of_a_path_is_measured_if_that_is_asked_for() {
    let text = scenario("", "size = \"1000 B\"\ninterval = \"100 ms\"");
    assert_eq!(run(&text, "sctp", 1).paths[0].delay_ms, None);
    let result = run(&text.replace("duration", "delays = true\nduration"), "sctp", 1);
    // 1048 wire bytes at 1 Mbit/s, and the propagation. There is no queue.
    let delay = result.paths[0].delay_ms.expect("packets arrived");
    assert!((delay - (8.384 + 20.0)).abs() < 0.01, "{delay}");
}
