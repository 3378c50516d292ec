//! Simulated settlement services, and the truth of what they did.
//!
//! ```text
//! world: who is settled when, and which messages come twice
//!   -> stream: what real guards decide of it, with faults
//!     -> run: pushed by real clients, at the pace of game time
//!     -> truth: what an audit of that must find
//!       -> check: the collector's findings, compared in found
//! load: another thing: as fast as it goes
//! ```
//!
//! `world` and `stream` are pure and seeded. `truth` shares no code with `audit`: two mistakes
//! that are the same mistake would agree.

pub mod check;
mod fault;
pub mod found;
mod guards;
pub mod load;
mod mischief;
mod restart;
pub mod run;
mod scrape;
mod source;
mod stream;
pub mod truth;
mod world;

#[cfg(test)]
mod testing;

pub use fault::{Fault, FaultError, FaultKind, parse_span_us};
pub use stream::{Step, Stream, StreamSettings};
pub use world::{Delivery, World, WorldSettings};

/// One simulated service.
#[derive(Clone, Copy, Debug)]
pub struct ServicePlan {
    /// Its name.
    pub name: &'static str,
    /// What its instances are called.
    pub instance: &'static str,
    /// How many instances it has.
    pub sources: usize,
    /// How it tells evictions.
    pub style: Style,
}

/// How a service tells evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Inside the acceptance that pushed them out.
    Inline,
    /// As events of their own, just before it.
    Apart,
}

/// The simulated services. The first two have two instances, so that copies can go astray.
pub const SERVICES: [ServicePlan; 3] = [
    ServicePlan { name: "settle-poker", instance: "poker", sources: 2, style: Style::Inline },
    ServicePlan { name: "settle-slots", instance: "slots", sources: 2, style: Style::Apart },
    ServicePlan { name: "settle-baccarat", instance: "baccarat", sources: 1, style: Style::Inline },
];
