//! What happened, in one sentence.

use crate::audit::{Finding, Kind, Subject};
use crate::web::format::{number, several};

/// What a finding says.
pub(super) fn of(finding: &Finding) -> String {
    if let Subject::More { .. } = finding.subject {
        return format!(
            "{} of this kind within one minute, counted together.",
            several(finding.count, "more finding", "more findings")
        );
    }
    if finding.count == 0 {
        return "Nothing of it stands any more.".into();
    }
    of_settlement(finding.kind, finding.count)
        .unwrap_or_else(|| of_guard(finding.kind, finding.count))
}

/// Of rules about a settlement or a ref.
fn of_settlement(kind: Kind, count: u64) -> Option<String> {
    let times = several(count, "time", "times");
    Some(match kind {
        Kind::DuplicateLeak => {
            format!("One settlement was accepted {} times.", number(i128::from(count) + 1))
        }
        Kind::FalseBlock => format!("A settlement was refused {times} and never booked."),
        Kind::UnverifiableBlock => {
            format!("A settlement was refused {times}; whether it was ever booked is not known.")
        }
        Kind::IndeterminateOutcome => "Nobody knows whether this settlement was booked.".into(),
        Kind::AcceptWithoutEffect => {
            "A settlement was accepted, and its money did not move.".into()
        }
        Kind::BlockAfterFailedEffect => {
            format!("A settlement was refused {times} because of an acceptance that failed.")
        }
        Kind::CrossRoomBooking => format!("A settlement was booked to another room {times}."),
        Kind::AmbiguousEqual => {
            format!("A settlement was refused {times}: the same again, or another just like it?")
        }
        Kind::MissedDuplicate => {
            format!("One ref was booked {} times.", number(i128::from(count) + 1))
        }
        Kind::StuckClaim => format!("A settlement was refused {times} and never accepted."),
        Kind::RetryStorm => {
            format!("A settlement that was accepted came again and was refused {times}.")
        }
        Kind::ReplicaDisagreement => "One source refused what another accepted.".into(),
        Kind::OutcomeFlip => "A settlement was refused first and accepted later.".into(),
        Kind::SignatureReused => {
            format!("A signature came again {times}, long after it was used.")
        }
        _ => return None,
    })
}

/// Of rules about windows, sources, clocks and states.
fn of_guard(kind: Kind, count: u64) -> String {
    let times = several(count, "time", "times");
    let outcomes = several(count, "outcome", "outcomes");
    match kind {
        Kind::LiveEviction => {
            let signatures = several(count, "settlement that", "settlements that");
            format!("The window let go of {signatures} can still be replayed.")
        }
        Kind::WindowLost => {
            let signatures = several(count, "settlement", "settlements");
            format!("Windows lost {signatures} that they should still hold.")
        }
        Kind::UndersizedWindow => {
            format!("The window was too small for a player\u{2019}s two newest games {times}.")
        }
        Kind::GuardBypass => {
            let settlements = several(count, "settlement was", "settlements were");
            format!("{settlements} accepted while the guard was off.")
        }
        Kind::CapMismatch => "Sources of the service have windows of different capacity.".into(),
        Kind::TwoWriters => format!("Two sources accepted for one player within a second {times}."),
        Kind::IdCollision => "One message id names different messages.".into(),
        Kind::TelemetryGap => format!("{outcomes} did not arrive."),
        Kind::IdentityConflict => {
            format!("{outcomes} came under a number that was taken by another.")
        }
        Kind::RejectedEvidence => format!("{outcomes} could not be taken."),
        Kind::ClockRollback => format!("The clock of a source was set back {times}."),
        Kind::ClockSkew => "The clock of a source is over a minute off.".into(),
        Kind::VersionRegression => {
            format!("The state of a room went back to an older version {times}.")
        }
        Kind::TornState => {
            format!("One version of a room\u{2019}s state had different contents {times}.")
        }
        Kind::CounterWrap => format!("A version counter went round {times}."),
        Kind::IllegalTransition => format!("A delivery made a move that is not legal {times}."),
        _ => format!("It happened {times}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_sentence_of_its_own() {
        for kind in Kind::ALL {
            let sentence = of_settlement(kind, 2).unwrap_or_else(|| of_guard(kind, 2));
            assert!(!sentence.starts_with("It happened"), "{kind:?}");
        }
    }
}
