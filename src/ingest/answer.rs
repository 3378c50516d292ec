//! What a sender is told about a request.

use serde::Serialize;

use crate::limits;

/// What became of the events of one request, after their commit is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Answer {
    /// New, and on disk.
    pub written: usize,
    /// Known before.
    pub repeated: usize,
    /// Not taken.
    pub rejected: usize,
    /// Why: the first [`limits::ERRORS_TOLD_MAX`].
    pub errors: Vec<EventError>,
}

/// Why one event was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EventError {
    /// Its place in the request, from 0.
    pub index: usize,
    /// For programs.
    pub code: String,
    /// For people: field, problem, what to do.
    pub message: String,
}

impl Answer {
    /// Counts one event that was not taken, and tells why while there is room.
    pub(super) fn reject(&mut self, index: usize, code: &str, message: &str) {
        self.rejected += 1;
        if self.errors.len() < limits::ERRORS_TOLD_MAX {
            self.errors.push(EventError { index, code: code.into(), message: message.into() });
        }
    }
}

/// Why a request can't be taken now. Nothing of it was kept; the same request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// Too many events or bytes wait for the writer, or to be read and decoded.
    #[error("too many events or bytes wait to be written")]
    QueueFull,
    /// The judge is too far behind.
    #[error("the audit is too far behind")]
    AuditBehind,
    /// The database does not take writes.
    #[error("the database does not take writes")]
    DatabaseAway,
    /// The collector is shutting down.
    #[error("the collector is shutting down")]
    Closing,
}

impl Busy {
    /// For programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::AuditBehind => "audit_behind",
            Self::DatabaseAway => "database_away",
            Self::Closing => "closing",
        }
    }

    /// Whether the sender is too fast (429), rather than the collector away (503).
    pub fn is_overload(self) -> bool {
        matches!(self, Self::QueueFull | Self::AuditBehind)
    }

    /// After how many seconds another try may do better: a queue empties within two, a restart
    /// takes a few.
    pub fn retry_after_s(self) -> u64 {
        match self {
            Self::QueueFull => 1,
            Self::AuditBehind | Self::DatabaseAway => 2,
            Self::Closing => 5,
        }
    }
}
