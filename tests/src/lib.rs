//! Tests across crates. This library contains the common parts of the tests.

pub mod capricious;
pub mod credentials;
pub mod dice;
pub mod duo;
pub mod flow;
pub mod hostile;
pub mod managed;
pub mod meddler;
pub mod middle;
pub mod namespace;
pub mod network;
pub mod node;
pub mod rewriting;
pub mod seeded_tls;
pub mod seen_keys;
pub mod sight;
pub mod steered;
pub mod witness;
