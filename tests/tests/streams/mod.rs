//! Changes of streams (RFC 6525), stream schedulers and interleaving (RFC 8260) between two endpoints.

mod additions;
mod hostile;
mod interleaving;
mod resets;
mod rig;
mod schedulers;
mod schemes;
