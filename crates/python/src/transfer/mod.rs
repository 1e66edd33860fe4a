//! Associations over real sockets for asyncio.
//!
//! Endpoints run on a separate tokio runtime, on threads that never attach to the interpreter: they neither wait for it nor use it
//! during its shutdown. Python drives the futures of `anabranch_net` itself. An [`Operation`] has one future, and is polled in the
//! thread of the event loop. Its waker writes to a [`WakePipe`], which the event loop watches. So a future sends or receives a
//! message in the same step in which the Python task continues. A cancelled task has dropped the future before that, and futures of
//! `anabranch_net` may be dropped at any time.

mod association;
mod failure;
mod handle;
mod limit;
mod listener;
mod opening;
mod operation;
mod paths;
mod protection;
mod runtime;
mod settings;
mod shapes;
mod wake_pipe;

pub use association::{Association, Events};
pub use listener::{Listener, listen};
pub use opening::connect;
pub use operation::Operation;
pub use runtime::{end_associations, forget_runtime};
pub use wake_pipe::WakePipe;
