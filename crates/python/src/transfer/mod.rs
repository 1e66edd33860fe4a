//! Associations over real sockets for asyncio.
//!
//! Hosts run on a tokio runtime of their own, on threads that never attach to the interpreter: they neither wait for it nor touch
//! it while it comes to its end. Python drives the futures of `anabranch_net` itself. An [`Operation`] holds one, and is polled in
//! the thread of the event loop; its waker writes to a [`WakePipe`], which the event loop watches. So a future takes a message,
//! or gives one, in the same step in which the Python task goes on. A task that is cancelled has dropped the future before that,
//! and futures of `anabranch_net` may be dropped at any time.

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
