//! What the audit says: one row for each kind and subject, that grows.
//!
//! A closed row is never opened again: a new occurrence opens a new row (the next `ordinal`) that
//! counts from where the closed one ended, so the rows of a subject add up to the rule's total.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use crate::outcome::{
    Amounts, Boot, Effect, GuardMode, Id, KeyedHash, Outcome, Position, Reason, Signature,
    SourceName, Window,
};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// To be looked at in the day.
    Warning,
    /// Wakes people.
    Critical,
}

impl Severity {
    /// Its name on the wire and as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// How sure it is that it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Something may still come that disproves it.
    Suspected,
    /// It stands.
    Confirmed,
    /// Over; see [`Finding::closed_because`].
    Closed,
}

impl State {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspected => "suspected",
            Self::Confirmed => "confirmed",
            Self::Closed => "closed",
        }
    }
}

/// How the order of the witnesses is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderKnown {
    /// By their numbers.
    Proven,
    /// By their clocks.
    Assumed,
    /// It is not, and the verdict does not need it.
    Unproven,
}

impl OrderKnown {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Assumed => "assumed",
            Self::Unproven => "unproven",
        }
    }
}

/// Whether all guards of the ledger were heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All, for as long as it matters.
    Full,
    /// As far as anybody can tell: some source proves nothing by its silence.
    Assumed,
    /// Not all: evidence is missing.
    Blind,
}

impl Coverage {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Assumed => "assumed",
            Self::Blind => "blind",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// (ledger, player, signature).
    AuditKey {
        /// The book.
        ledger: String,
        /// Whose money.
        player: Id,
        /// Which settlement.
        signature: Signature,
    },
    /// (service, env, source, ledger, cause or reason).
    Source {
        /// Which source; `None` where not even that could be read.
        from: Option<SourceName>,
        /// The book, where it comes to an amount: amounts of two books are never added.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<String>,
        /// The cause or reason that the rows of a source are told apart by.
        cause: String,
    },
    /// (ledger, player, ref).
    Ref {
        /// The book.
        ledger: String,
        /// Whose money.
        player: Id,
        /// Which intended booking.
        reference: Id,
    },
    /// (ledger, player).
    Player {
        /// The book.
        ledger: String,
        /// Whose money.
        player: Id,
    },
    /// (ledger, player, session, room).
    Room {
        /// The book.
        ledger: String,
        /// Whose state.
        player: Id,
        /// Set where rooms are used again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Id>,
        /// Which room.
        room: Id,
    },
    /// (ledger, message id).
    Message {
        /// The book.
        ledger: String,
        /// Which message.
        message: Id,
    },
    /// (service, env, cause).
    Service {
        /// Which service.
        service: String,
        /// Where it runs.
        env: String,
        /// The cause that its rows are told apart by.
        cause: String,
    },
    /// (source, boot).
    Boot {
        /// Which source.
        from: SourceName,
        /// Which run.
        boot: Boot,
    },
    /// Everything of a kind and service beyond what one minute may open.
    More {
        /// Which service.
        service: String,
        /// Where it runs.
        env: String,
        /// The book; empty where the rule is about none.
        ledger: String,
        /// The minute of receipt, in minutes since 1970.
        minute: i64,
    },
}

/// One piece of evidence, copied so that it outlives the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// What it shows: `accepted`, `accepted_again`, `blocked`, `evicted`, `pushed_out_by`, ...
    pub role: String,
    /// Its place in the log.
    pub position: Position,
    /// When, by the source's clock.
    #[serde(rename = "occurred_at", with = "crate::outcome::rfc3339")]
    pub occurred_us: i64,
    /// Who said it.
    #[serde(flatten)]
    pub from: SourceName,
    /// The run of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// The number in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What the guard did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Whose money, where the subject does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<Id>,
    /// Which settlement, where the subject does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// The intended booking.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Id>,
    /// The trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Id>,
    /// The window after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The reason given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether the money moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whose memory the guard decided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard_mode: Option<GuardMode>,
    /// In words, where the fields don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A verdict of the audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Keyed hash of (kind, subject, ordinal), in hexadecimal.
    pub id: String,
    /// Which rule.
    pub kind: Kind,
    /// What it is about.
    pub subject: Subject,
    /// Which row of the subject, from 1.
    pub ordinal: u32,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub state: State,
    /// Why a closed row is closed: `disproved`, `made_good`, `quiet`, or what a person said.
    pub closed_because: Option<String>,
    /// How it came about.
    pub cause: String,
    /// How the order of the witnesses is known.
    pub order: OrderKnown,
    /// Whether all guards were heard.
    pub coverage: Coverage,
    /// The service of the newest witness; empty where it could not be read.
    pub service: String,
    /// Its env; empty where it could not be read.
    pub env: String,
    /// The book, where it is about one.
    pub ledger: Option<String>,
    /// The source, where it is about one.
    pub source: Option<Id>,
    /// The player, where it is about one.
    pub player: Option<Id>,
    /// The settlement, where it is about one.
    pub signature: Option<Signature>,
    /// Occurrences: surplus acceptances, evictions, blocks, missing numbers, records.
    pub count: u64,
    /// Distinct players, where it is about several.
    pub players: u64,
    /// Time of the first witness, by the source's clock.
    pub first_us: i64,
    /// Time of the newest witness.
    pub last_us: i64,
    /// What it comes to.
    pub amounts: Amounts,
    /// What it came to before it was closed, where that is no more.
    pub amounts_before_closing: Option<Amounts>,
    /// The proof: both sides of a leak, up to ten examples elsewhere.
    pub witnesses: Vec<Witness>,
}

impl Finding {
    /// The id of a row: the same after a rebuild.
    pub fn id_of(hash: &KeyedHash, kind: Kind, subject: &Subject, ordinal: u32) -> String {
        let parts = subject.parts();
        let mut all: Vec<&[u8]> = vec![b"finding", kind.as_str().as_bytes()];
        all.extend(parts.iter().map(Vec::as_slice));
        let ordinal = ordinal.to_be_bytes();
        all.push(&ordinal);
        hash.wide(&all).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Subject {
    /// Its parts for hashing, the first telling the sorts apart.
    fn parts(&self) -> Vec<Vec<u8>> {
        let text = |text: &str| text.as_bytes().to_vec();
        let source = |from: &SourceName| {
            [&from.service, &from.env, &from.source].map(|id| text(id.as_str()))
        };
        match self {
            Self::AuditKey { ledger, player, signature } => {
                let mut parts = vec![text("key"), text(ledger), text(player.as_str())];
                match signature {
                    Signature::Opaque { key, .. } => parts.push(text(key.as_str())),
                    Signature::Settlement { game, net, last } => parts.extend([
                        text(game.session.as_ref().map_or("", Id::as_str)),
                        vec![u8::from(game.session.is_some())],
                        text(game.room.as_str()),
                        text(game.round.as_str()),
                        net.0.to_be_bytes().to_vec(),
                        vec![u8::from(*last)],
                    ]),
                }
                parts
            }
            Self::Source { from, ledger, cause } => {
                let ledger = ledger.as_deref().unwrap_or_default();
                let mut parts = vec![text("source"), text(cause), text(ledger)];
                parts.extend(from.iter().flat_map(source));
                parts
            }
            Self::Ref { ledger, player, reference } => {
                let parts = ["ref", ledger, player.as_str(), reference.as_str()];
                parts.map(text).into()
            }
            Self::Player { ledger, player } => ["player", ledger, player.as_str()].map(text).into(),
            Self::Room { ledger, player, session, room } => {
                let session = session.as_ref().map_or("", Id::as_str);
                ["room", ledger, player.as_str(), session, room.as_str()].map(text).into()
            }
            Self::Message { ledger, message } => {
                ["message", ledger, message.as_str()].map(text).into()
            }
            Self::Service { service, env, cause } => {
                ["service", service, env, cause].map(text).into()
            }
            Self::Boot { from, boot } => {
                let mut parts = vec![text("boot"), text(&boot.to_string())];
                parts.extend(source(from));
                parts
            }
            Self::More { service, env, ledger, minute } => {
                let minute = minute.to_be_bytes().to_vec();
                vec![text("more"), text(service), text(env), text(ledger), minute]
            }
        }
    }
}
