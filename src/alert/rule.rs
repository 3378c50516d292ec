//! The rules that are built in: what each is called, what it means, and for how long it looks
//! back.

use crate::audit::{Kind, Severity};
use crate::limits::{DAY_US, MINUTE_US};

/// How long a new occurrence keeps an alert firing.
pub const RECENT_US: i64 = 15 * MINUTE_US;
/// How long a silent source keeps an alert firing: as long as the audit takes its silence into
/// account (`audit.md`, coverage). A source that is gone for good would fire for ever.
pub const SILENT_US: i64 = DAY_US;

/// A rule. There is one alert for each rule, service and env.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Settlements stand more often than once.
    DuplicateLeak,
    /// Windows let go of what could still be replayed.
    LiveEviction,
    /// Settlements were refused that were never booked.
    FalseBlock,
    /// Settlements were accepted, and their money did not move.
    AcceptWithoutEffect,
    /// Settlements were refused because of acceptances that failed.
    BlockAfterFailedEffect,
    /// Money went to the book of another room.
    CrossRoomBooking,
    /// Message ids name different messages.
    IdCollision,
    /// Two processes report under one name.
    IdentityConflict,
    /// A watched source is not heard.
    SourceSilent,
    /// Outcomes are missing.
    TelemetryGap,
    /// A sender keeps sending what can't be taken.
    RejectedOutcomes,
    /// Windows are shorter than what was measured asks for.
    WindowTooSmall,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::DuplicateLeak,
        Self::LiveEviction,
        Self::FalseBlock,
        Self::AcceptWithoutEffect,
        Self::BlockAfterFailedEffect,
        Self::CrossRoomBooking,
        Self::IdCollision,
        Self::IdentityConflict,
        Self::SourceSilent,
        Self::TelemetryGap,
        Self::RejectedOutcomes,
        Self::WindowTooSmall,
    ];

    /// Its name, the label `alertname`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateLeak => "DuplicateLeak",
            Self::LiveEviction => "LiveEviction",
            Self::FalseBlock => "FalseBlock",
            Self::AcceptWithoutEffect => "AcceptWithoutEffect",
            Self::BlockAfterFailedEffect => "BlockAfterFailedEffect",
            Self::CrossRoomBooking => "CrossRoomBooking",
            Self::IdCollision => "IdCollision",
            Self::IdentityConflict => "IdentityConflict",
            Self::SourceSilent => "SourceSilent",
            Self::TelemetryGap => "TelemetryGap",
            Self::RejectedOutcomes => "RejectedOutcomes",
            Self::WindowTooSmall => "WindowTooSmall",
        }
    }

    /// The rule of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == text)
    }

    /// The findings that it is about; `None` for rules about senders and windows.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::DuplicateLeak => Some(Kind::DuplicateLeak),
            Self::LiveEviction => Some(Kind::LiveEviction),
            Self::FalseBlock => Some(Kind::FalseBlock),
            Self::AcceptWithoutEffect => Some(Kind::AcceptWithoutEffect),
            Self::BlockAfterFailedEffect => Some(Kind::BlockAfterFailedEffect),
            Self::CrossRoomBooking => Some(Kind::CrossRoomBooking),
            Self::IdCollision => Some(Kind::IdCollision),
            Self::IdentityConflict => Some(Kind::IdentityConflict),
            Self::TelemetryGap => Some(Kind::TelemetryGap),
            Self::SourceSilent | Self::RejectedOutcomes | Self::WindowTooSmall => None,
        }
    }

    /// The rule about findings of this kind.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.kind().is_some_and(|of| of.as_str() == kind))
    }

    /// The topic of its help page.
    pub fn topic(self) -> &'static str {
        match self {
            Self::SourceSilent => "source_silent",
            Self::RejectedOutcomes => "rejected_outcomes",
            Self::WindowTooSmall => "window_too_small",
            rule => rule.kind().map_or("", Kind::as_str),
        }
    }

    /// It holds from this severity on. A conflict of identities now and then is a sender's
    /// mistake for the day; many at once are two processes under one name.
    pub(super) fn least(self) -> Severity {
        match self {
            Self::IdentityConflict => Severity::Critical,
            _ => Severity::Info,
        }
    }

    /// In a few words, for the subject of a message.
    pub fn title(self) -> &'static str {
        match self {
            Self::DuplicateLeak => "Settlements booked more often than once",
            Self::LiveEviction => "Windows too short: live settlements pushed out",
            Self::FalseBlock => "Settlements refused and never booked",
            Self::AcceptWithoutEffect => "Settlements accepted without effect",
            Self::BlockAfterFailedEffect => "Settlements refused after a failed effect",
            Self::CrossRoomBooking => "Settlements booked to another room",
            Self::IdCollision => "Message ids given to different messages",
            Self::IdentityConflict => "Two processes report under one name",
            Self::SourceSilent => "A watched source is silent",
            Self::TelemetryGap => "Outcomes are missing",
            Self::RejectedOutcomes => "Outcomes are rejected all the time",
            Self::WindowTooSmall => "Windows are too small",
        }
    }
}

/// The severity of this rank in the store.
pub(super) fn severity_of(rank: i64) -> Severity {
    match rank {
        ..=0 => Severity::Info,
        1 => Severity::Warning,
        2.. => Severity::Critical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for rule in Rule::ALL {
            assert_eq!(Rule::parse(rule.as_str()), Some(rule));
            if let Some(kind) = rule.kind() {
                assert_eq!(Rule::of_kind(kind.as_str()), Some(rule));
            }
        }
        assert_eq!(Rule::of_kind("rejected_evidence"), None);
    }

    #[test]
    fn severities_are_read_in_order() {
        assert_eq!(
            [0, 1, 2].map(severity_of),
            [Severity::Info, Severity::Warning, Severity::Critical]
        );
    }
}
