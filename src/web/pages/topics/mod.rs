//! The rules in words, one topic for each: what it means, how it comes about, what to do, and what
//! it never means. Findings and alerts link here as their runbook; readers are on call, often at
//! night and often for the first time.

mod bookings;
mod claims;
mod state;
mod telemetry;
mod windows;

use crate::audit::Kind;

/// A rule, or an alert about senders or the collector, for people.
pub(super) struct Topic {
    /// The last part of its address.
    pub(super) slug: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// What it means.
    pub(super) rule: &'static str,
    /// How it comes about.
    pub(super) origins: &'static [&'static str],
    /// What to do, step by step.
    pub(super) steps: &'static [&'static str],
    /// What it never means.
    pub(super) never: &'static [&'static str],
}

/// Topics that alerts are about and findings are not.
pub(super) const OF_ALERTS: [&Topic; 4] = [
    &telemetry::SOURCE_SILENT,
    &telemetry::REJECTED_OUTCOMES,
    &windows::WINDOW_TOO_SMALL,
    &telemetry::COLLECTOR_UNHEALTHY,
];

/// The topic of a rule.
pub(super) fn of_kind(kind: Kind) -> &'static Topic {
    match kind {
        Kind::DuplicateLeak => &bookings::DUPLICATE_LEAK,
        Kind::FalseBlock => &bookings::FALSE_BLOCK,
        Kind::UnverifiableBlock => &bookings::UNVERIFIABLE_BLOCK,
        Kind::IndeterminateOutcome => &bookings::INDETERMINATE_OUTCOME,
        Kind::AcceptWithoutEffect => &bookings::ACCEPT_WITHOUT_EFFECT,
        Kind::BlockAfterFailedEffect => &bookings::BLOCK_AFTER_FAILED_EFFECT,
        Kind::CrossRoomBooking => &bookings::CROSS_ROOM_BOOKING,
        Kind::MissedDuplicate => &bookings::MISSED_DUPLICATE,
        Kind::AmbiguousEqual => &claims::AMBIGUOUS_EQUAL,
        Kind::IdCollision => &claims::ID_COLLISION,
        Kind::StuckClaim => &claims::STUCK_CLAIM,
        Kind::RetryStorm => &claims::RETRY_STORM,
        Kind::ReplicaDisagreement => &claims::REPLICA_DISAGREEMENT,
        Kind::OutcomeFlip => &claims::OUTCOME_FLIP,
        Kind::SignatureReused => &claims::SIGNATURE_REUSED,
        Kind::LiveEviction => &windows::LIVE_EVICTION,
        Kind::WindowLost => &windows::WINDOW_LOST,
        Kind::UndersizedWindow => &windows::UNDERSIZED_WINDOW,
        Kind::CapMismatch => &windows::CAP_MISMATCH,
        Kind::GuardBypass => &windows::GUARD_BYPASS,
        Kind::TwoWriters => &windows::TWO_WRITERS,
        Kind::TelemetryGap => &telemetry::TELEMETRY_GAP,
        Kind::IdentityConflict => &telemetry::IDENTITY_CONFLICT,
        Kind::RejectedEvidence => &telemetry::REJECTED_EVIDENCE,
        Kind::ClockRollback => &state::CLOCK_ROLLBACK,
        Kind::ClockSkew => &state::CLOCK_SKEW,
        Kind::VersionRegression => &state::VERSION_REGRESSION,
        Kind::TornState => &state::TORN_STATE,
        Kind::CounterWrap => &state::COUNTER_WRAP,
        Kind::IllegalTransition => &state::ILLEGAL_TRANSITION,
    }
}

/// All topics: the rules, then the alerts.
pub(super) fn all() -> impl Iterator<Item = &'static Topic> {
    Kind::ALL.into_iter().map(of_kind).chain(OF_ALERTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_topic() {
        for kind in Kind::ALL {
            let topic = of_kind(kind);
            assert_eq!(topic.slug, kind.as_str());
        }
    }

    #[test]
    fn every_topic_says_all_four_things_about_itself_alone() {
        let mut rules = std::collections::BTreeSet::new();
        for topic in all() {
            assert!(topic.rule.len() > 80, "{}", topic.slug);
            assert!(!topic.origins.is_empty(), "{}", topic.slug);
            assert!(!topic.steps.is_empty(), "{}", topic.slug);
            assert!(!topic.never.is_empty(), "{}", topic.slug);
            assert!(rules.insert(topic.rule), "{} says what another says", topic.slug);
        }
    }
}
