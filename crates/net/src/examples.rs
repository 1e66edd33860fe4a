//! Programs that use this crate, each in one file. The tests of this crate run them.

/// Echo over streams, over every link of both machines, encrypted.
#[doc = concat!("```ignore\n", include_str!("../examples/echo.rs"), "```")]
pub mod echo {}

/// Chat: messages on streams, passed to all other members.
#[doc = concat!("```ignore\n", include_str!("../examples/chat.rs"), "```")]
pub mod chat {}

/// Files of a folder, each on a stream of its own that ends by `finish` or `reset`.
#[doc = concat!("```ignore\n", include_str!("../examples/file.rs"), "```")]
pub mod file {}

/// Unordered messages with a deadline.
#[doc = concat!("```ignore\n", include_str!("../examples/datagrams.rs"), "```")]
pub mod datagrams {}

/// Scheduler of your own.
#[doc = concat!("```ignore\n", include_str!("../examples/scheduler.rs"), "```")]
pub mod scheduler {}

/// Driver of `anabranch-core` without tokio and without this crate.
#[doc = concat!("```ignore\n", include_str!("../examples/driver.rs"), "```")]
pub mod driver {}
