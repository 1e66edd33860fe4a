//! Scenarios that separate schemes. If one does not separate two schemes, the next one may.

/// Two paths that differ in all properties and lose packets.
const LOSSY: &str = r#"
[run]
duration = "15 s"
[association]
recv_buffer = "128 KiB"
[[path]]
rate = "5 Mbit/s"
delay = "30 ms"
loss = 0.02
[[path]]
rate = "2 Mbit/s"
delay = "80 ms"
loss = 0.05
"#;

/// The same with the rules of ns-2.
const LOSSY_NS2: &str = r#"
[run]
duration = "15 s"
profile = "ns2"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "5 Mbit/s"
delay = "30 ms"
loss = 0.02
[[path]]
rate = "2 Mbit/s"
delay = "80 ms"
loss = 0.05
"#;

/// A slow path blocks a small receive buffer, and with it a small send buffer; several streams.
const BLOCKED: &str = r#"
[run]
duration = "15 s"
[association]
recv_buffer = "32 KiB"
send_buffer = "64 KiB"
streams = 4
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
loss = 0.002
[[path]]
rate = "1 Mbit/s"
delay = "200 ms"
loss = 0.01
"#;

/// Short bursts with pauses: often both paths have room and there is no data to send.
const BURSTS: &str = r#"
[run]
duration = "15 s"
[association]
recv_buffer = "1 MiB"
[[path]]
rate = "8 Mbit/s"
delay = "10 ms"
[[path]]
rate = "4 Mbit/s"
delay = "70 ms"
[[flow]]
kind = "messages"
size = "60 kB"
interval = "400 ms"
streams = 2
"#;

/// A path that fails and recovers twice, among three paths.
const FAILING: &str = r#"
[run]
duration = "40 s"
[association]
recv_buffer = "256 KiB"
[[path]]
rate = "4 Mbit/s"
delay = "20 ms"
loss = 0.01
[[path.event]]
at = "4 s"
up = false
[[path.event]]
at = "12 s"
up = true
[[path]]
rate = "2 Mbit/s"
delay = "60 ms"
loss = 0.03
[[path.event]]
at = "8 s"
up = false
[[path.event]]
at = "25 s"
up = true
[[path]]
rate = "1 Mbit/s"
delay = "40 ms"
loss = 0.01
"#;

/// A small send buffer, and the slow path as the primary path.
const SMALL_SEND_BUFFER: &str = r#"
[run]
duration = "15 s"
[association]
recv_buffer = "256 KiB"
send_buffer = "24 KiB"
[[path]]
rate = "1 Mbit/s"
delay = "200 ms"
loss = 0.01
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
loss = 0.01
[[flow]]
kind = "messages"
size = "1200 B"
interval = "4 ms"
"#;

/// Losses in bursts.
const BURSTY_LOSSES: &str = r#"
[run]
duration = "30 s"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "5 Mbit/s"
delay = "40 ms"
loss = { model = "gilbert-elliott", p = 0.003, r = 0.3 }
[[path]]
rate = "5 Mbit/s"
delay = "60 ms"
loss = { model = "gilbert-elliott", p = 0.003, r = 0.3 }
"#;

/// Three paths of which one is mostly out of service, and a small buffer.
const SMALL_AND_FAILING: &str = r#"
[run]
duration = "40 s"
[association]
recv_buffer = "40 KiB"
send_buffer = "40 KiB"
[[path]]
rate = "4 Mbit/s"
delay = "20 ms"
loss = 0.01
[[path]]
rate = "2 Mbit/s"
delay = "150 ms"
loss = 0.02
[[path]]
rate = "1 Mbit/s"
delay = "40 ms"
[[path.event]]
at = "2 s"
up = false
"#;

/// Few messages: the slow path is the primary one, and has an open window when the fast one is measured before it.
const THIN: &str = r#"
[run]
duration = "10 s"
[[path]]
rate = "1 Mbit/s"
delay = "200 ms"
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "messages"
size = "500 B"
interval = "25 ms"
"#;

/// Two paths through one bottleneck, beside another flow.
const SHARED: &str = r#"
[run]
duration = "40 s"
[association]
recv_buffer = "1 MiB"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "20 ms"
queue = "42 packets"
[[path]]
name = "left"
via = ["bottleneck"]
rate = "100 Mbit/s"
delay = "5 ms"
[[path]]
name = "right"
via = ["bottleneck"]
rate = "100 Mbit/s"
delay = "5 ms"
[[path]]
name = "other"
via = ["bottleneck"]
rate = "100 Mbit/s"
delay = "5 ms"
[[flow]]
paths = ["left", "right"]
[[flow]]
paths = ["other"]
scheme = "sctp+cubic"
"#;

/// All scenarios in the order of their use.
pub(crate) const SCENARIOS: &[&str] = &[
    LOSSY,
    BLOCKED,
    BURSTS,
    LOSSY_NS2,
    FAILING,
    SMALL_SEND_BUFFER,
    BURSTY_LOSSES,
    SMALL_AND_FAILING,
    THIN,
    SHARED,
];
