//! Tests of transfers on loopback addresses. Those that count memory of their process are in `memory.rs`.

mod loopback;
