//! What outcomes and transitions have in common: somebody said it, once, under an identity. What
//! ingest does with them is written once, over this.

use serde::Serialize;

use crate::outcome::{Boot, Event, Id, SourceName, Transition};
use crate::store::log;

/// An outcome or a transition.
pub(super) trait Said: Serialize {
    /// Whether it is a transition, whose identities are apart from the outcomes'.
    const IS_TRANSITION: bool;
    /// Its kind in the log.
    const KIND: i64;
    /// The kind of the other content of a known identity.
    const CONFLICT: i64;

    /// Who says it.
    fn from(&self) -> &SourceName;
    /// The run and the number in it, where the source counts.
    fn sequence(&self) -> Option<(Boot, u64)>;
    /// Identity of senders that can't count.
    fn event_id(&self) -> Option<&Id>;
    /// The book, if it is about one.
    fn ledger(&self) -> Option<String>;
    /// A copy without what may differ between two tellings.
    #[must_use]
    fn content(&self) -> Self;
}

impl Said for Event {
    const IS_TRANSITION: bool = false;
    const KIND: i64 = log::EVENT;
    const CONFLICT: i64 = log::CONFLICT;

    fn from(&self) -> &SourceName {
        &self.from
    }

    fn sequence(&self) -> Option<(Boot, u64)> {
        self.sequence()
    }

    fn event_id(&self) -> Option<&Id> {
        self.event_id.as_ref()
    }

    fn ledger(&self) -> Option<String> {
        Some(self.ledger())
    }

    fn content(&self) -> Self {
        self.content()
    }
}

impl Said for Transition {
    const IS_TRANSITION: bool = true;
    const KIND: i64 = log::TRANSITION;
    const CONFLICT: i64 = log::TRANSITION_CONFLICT;

    fn from(&self) -> &SourceName {
        &self.from
    }

    fn sequence(&self) -> Option<(Boot, u64)> {
        self.sequence()
    }

    fn event_id(&self) -> Option<&Id> {
        self.event_id.as_ref()
    }

    fn ledger(&self) -> Option<String> {
        None
    }

    fn content(&self) -> Self {
        self.content()
    }
}
