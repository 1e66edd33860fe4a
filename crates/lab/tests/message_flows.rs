//! Flows of messages at intervals.

mod common;

use common::run;

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
    // 8 Mbit/s are offered to 1 Mbit/s.
    let flow = "size = \"10 kB\"\ninterval = \"10 ms\"";
    // Where a message alone fills the buffer, each waits for the acknowledgement of the one before, delayed by 200 ms.
    for (buffer, least) in [("4 KiB", 200.0), ("32 KiB", 500.0)] {
        let result = run(&scenario(&format!("send_buffer = \"{buffer}\""), flow), "sctp", 1);
        assert!(result.goodput_kbps > least, "{buffer}: {} kbit/s", result.goodput_kbps);
    }
}
