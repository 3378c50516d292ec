//! Time is handed in: the only place that asks the system for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A source of the present moment, in microseconds UTC.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// One that stands still until a test moves it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that a test moves.
    pub fn manual(now_us: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(now_us)))
    }

    /// The present moment.
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask")]
    pub fn now_us(&self) -> i64 {
        match self {
            Self::System => chrono::Utc::now().timestamp_micros(),
            Self::Manual(now_us) => now_us.load(Ordering::SeqCst),
        }
    }

    /// Moves a manual clock on; the machine's clock can't be moved.
    pub fn advance(&self, by_us: i64) {
        if let Self::Manual(now_us) = self {
            now_us.fetch_add(by_us, Ordering::SeqCst);
        }
    }
}
