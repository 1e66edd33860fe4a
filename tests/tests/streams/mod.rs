//! Changes of streams (RFC 6525) between two endpoints, and stream schedulers (RFC 8260).

mod additions;
mod hostile;
mod resets;
mod rig;
mod schedulers;
mod schemes;
