//! The rules, by name.

use serde::{Deserialize, Serialize};

/// A rule of the audit (`audit.md`, findings).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A settlement stands more often than once.
    DuplicateLeak,
    /// The window let go of a signature that could still be replayed.
    LiveEviction,
    /// A settlement was refused that was never booked.
    FalseBlock,
    /// As [`Kind::FalseBlock`], but part of the evidence is missing.
    UnverifiableBlock,
    /// Nobody knows whether a settlement was booked.
    IndeterminateOutcome,
    /// A settlement was accepted, and its money did not move.
    AcceptWithoutEffect,
    /// A settlement was refused because of an acceptance whose money did not move.
    BlockAfterFailedEffect,
    /// Money went to the book of another room.
    CrossRoomBooking,
    /// Two equal settlements, or one delivered twice: a person decides.
    AmbiguousEqual,
    /// One intended booking was accepted under several signatures.
    MissedDuplicate,
    /// One message id names two messages.
    IdCollision,
    /// A window holds less than it should.
    WindowLost,
    /// A window is smaller than a player's two newest games.
    UndersizedWindow,
    /// Settlements were accepted while the guard was off.
    GuardBypass,
    /// Outcomes are missing.
    TelemetryGap,
    /// One identity, two contents.
    IdentityConflict,
    /// Outcomes that could not be taken.
    RejectedEvidence,
    /// A source's clock was set back.
    ClockRollback,
    /// A source's clock is far from the collector's.
    ClockSkew,
    /// The state of a room went back to an older version.
    VersionRegression,
    /// One version of a room's state, two contents.
    TornState,
    /// A settlement is refused again and again and never accepted.
    StuckClaim,
    /// A settlement that was accepted is delivered again and again.
    RetryStorm,
    /// One source refuses what another accepts.
    ReplicaDisagreement,
    /// A settlement was refused first and accepted later.
    OutcomeFlip,
    /// Sources of a service have windows of different capacity.
    CapMismatch,
    /// A version counter went round.
    CounterWrap,
    /// Two sources with memories of their own accept for one player at once.
    TwoWriters,
    /// A signature came again long after it was used.
    SignatureReused,
    /// A delivery went through its states in an order that can't be.
    IllegalTransition,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::DuplicateLeak,
        Self::LiveEviction,
        Self::FalseBlock,
        Self::UnverifiableBlock,
        Self::IndeterminateOutcome,
        Self::AcceptWithoutEffect,
        Self::BlockAfterFailedEffect,
        Self::CrossRoomBooking,
        Self::AmbiguousEqual,
        Self::MissedDuplicate,
        Self::IdCollision,
        Self::WindowLost,
        Self::UndersizedWindow,
        Self::GuardBypass,
        Self::TelemetryGap,
        Self::IdentityConflict,
        Self::RejectedEvidence,
        Self::ClockRollback,
        Self::ClockSkew,
        Self::VersionRegression,
        Self::TornState,
        Self::StuckClaim,
        Self::RetryStorm,
        Self::ReplicaDisagreement,
        Self::OutcomeFlip,
        Self::CapMismatch,
        Self::CounterWrap,
        Self::TwoWriters,
        Self::SignatureReused,
        Self::IllegalTransition,
    ];

    /// Its name on the wire and as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateLeak => "duplicate_leak",
            Self::LiveEviction => "live_eviction",
            Self::FalseBlock => "false_block",
            Self::UnverifiableBlock => "unverifiable_block",
            Self::IndeterminateOutcome => "indeterminate_outcome",
            Self::AcceptWithoutEffect => "accept_without_effect",
            Self::BlockAfterFailedEffect => "block_after_failed_effect",
            Self::CrossRoomBooking => "cross_room_booking",
            Self::AmbiguousEqual => "ambiguous_equal",
            Self::MissedDuplicate => "missed_duplicate",
            Self::IdCollision => "id_collision",
            Self::WindowLost => "window_lost",
            Self::UndersizedWindow => "undersized_window",
            Self::GuardBypass => "guard_bypass",
            Self::TelemetryGap => "telemetry_gap",
            Self::IdentityConflict => "identity_conflict",
            Self::RejectedEvidence => "rejected_evidence",
            Self::ClockRollback => "clock_rollback",
            Self::ClockSkew => "clock_skew",
            Self::VersionRegression => "version_regression",
            Self::TornState => "torn_state",
            Self::StuckClaim => "stuck_claim",
            Self::RetryStorm => "retry_storm",
            Self::ReplicaDisagreement => "replica_disagreement",
            Self::OutcomeFlip => "outcome_flip",
            Self::CapMismatch => "cap_mismatch",
            Self::CounterWrap => "counter_wrap",
            Self::TwoWriters => "two_writers",
            Self::SignatureReused => "signature_reused",
            Self::IllegalTransition => "illegal_transition",
        }
    }

    /// The kind of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}
