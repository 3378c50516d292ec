//! The audit: is every settlement booked exactly once; if not, who, how much, why?

mod finding;
mod settings;

pub use finding::{Coverage, Finding, Kind, OrderKnown, Severity, State, Subject, Witness};
pub use settings::Settings;
