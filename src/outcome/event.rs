//! One outcome of a guard. The serde form is the wire form of `POST /api/v1/outcomes`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Boot, Id, Signature, SourceName};

/// What a guard did with one delivery, or with one signature of its memory.
///
/// Has an identity: (`boot`, `seq`), or `event_id`, or both (then the sequence decides).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Who says it.
    #[serde(flatten)]
    pub from: SourceName,
    /// The run of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// Counts the events of the boot from 1, without holes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Identity of senders that can't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// When the guard decided, by its own clock.
    #[serde(rename = "occurred_at", with = "super::time::rfc3339")]
    pub occurred_us: i64,
    /// The book; by default the service's own (see [`Event::ledger`]).
    #[serde(default, rename = "ledger", skip_serializing_if = "Option::is_none")]
    pub ledger_named: Option<Id>,
    /// Whose money.
    pub player: Id,
    /// Which settlement.
    pub signature: Signature,
    /// What the guard did.
    pub outcome: Outcome,
    /// The window *after* this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// On acceptances: the signatures that fell out by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evicted: Vec<Signature>,
    /// The guard's strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Id>,
    /// Whose memory it decided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard_mode: Option<GuardMode>,
    /// Why it blocked, evicted or could not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Names one intended booking and survives retries.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Id>,
    /// The `ref` that this booking undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversal_of: Option<Id>,
    /// How often this delivery was tried before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// Whether the money moved: of an acceptance, with it or later
    /// ([`Outcome::EffectReported`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The room whose book the money went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_room: Option<Id>,
    /// The request that carried the delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Id>,
    /// Version of the room's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u64>,
    /// Hash of the room's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_hash: Option<Id>,
    /// The message that carried the delivery, a Snowflake id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Id>,
    /// Version of the service's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_version: Option<Id>,
    /// The trace that the delivery belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Id>,
    /// How long the guard took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_us: Option<u64>,
    /// How long the whole answer took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_us: Option<u64>,
}

impl Event {
    /// An outcome that says nothing but what it must; without an identity yet.
    pub fn new(from: SourceName, player: Id, signature: Signature, outcome: Outcome) -> Self {
        Self {
            from,
            boot: None,
            seq: None,
            event_id: None,
            occurred_us: 0,
            ledger_named: None,
            player,
            signature,
            outcome,
            window: None,
            evicted: Vec::new(),
            guard: None,
            guard_mode: None,
            reason: None,
            reference: None,
            reversal_of: None,
            attempt: None,
            effect: None,
            booked_room: None,
            request_id: None,
            state_version: None,
            state_hash: None,
            message_id: None,
            service_version: None,
            trace_id: None,
            check_us: None,
            response_us: None,
        }
    }

    /// The run and the number in it, where the source counts.
    pub fn sequence(&self) -> Option<(Boot, u64)> {
        self.boot.zip(self.seq)
    }

    /// The book in which the signature may be accepted once: as named, else the service; outside
    /// `prod` with its env, so that a test never looks like a double payment.
    pub fn ledger(&self) -> String {
        match &self.ledger_named {
            Some(ledger) => ledger.as_str().to_owned(),
            None => ledger_of(&self.from),
        }
    }

    /// Whether money moved by it.
    pub fn is_acceptance(&self) -> bool {
        matches!(self.outcome, Outcome::Processed | Outcome::LateAccepted)
    }

    /// A copy without the fields that may differ between two tellings of one event: content is
    /// all but these.
    pub fn content(&self) -> Self {
        Self {
            occurred_us: 0,
            attempt: None,
            trace_id: None,
            check_us: None,
            response_us: None,
            ..self.clone()
        }
    }
}

/// The book of a source that names none: its service; outside `prod` with the env.
pub fn ledger_of(from: &SourceName) -> String {
    if from.env.as_str() == "prod" {
        return from.service.as_str().to_owned();
    }
    format!("{}@{}", from.service, from.env)
}

/// What the guard did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// New, in turn: accepted.
    Processed,
    /// New, of an older game than the player's newest: accepted.
    LateAccepted,
    /// Seen before: refused.
    ReplayBlocked,
    /// Fell out of the window.
    Evicted,
    /// Could not decide, or holds it back.
    Unknown,
    /// Nothing: it tells later whether the money of an acceptance moved.
    EffectReported,
}

impl Outcome {
    /// All of them, in the order of `design.md`.
    pub const ALL: [Self; 6] = [
        Self::Processed,
        Self::LateAccepted,
        Self::ReplayBlocked,
        Self::Evicted,
        Self::Unknown,
        Self::EffectReported,
    ];

    /// Its name on the wire and as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::LateAccepted => "late_accepted",
            Self::ReplayBlocked => "replay_blocked",
            Self::Evicted => "evicted",
            Self::Unknown => "unknown",
            Self::EffectReported => "effect_reported",
        }
    }
}

/// A guard's memory of one scope. `len` above `cap` is a guard's mistake, not the sender's: it is
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Signatures remembered.
    pub len: u64,
    /// Most it can remember.
    pub cap: u64,
    /// What one window is for.
    pub scope: WindowScope,
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            WindowFields::serialize(self, serializer)
        } else {
            WindowPacked::serialize(self, serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            WindowFields::deserialize(deserializer)
        } else {
            WindowPacked::deserialize(deserializer)
        }
    }
}

/// The wire form.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Window")]
struct WindowFields {
    len: u64,
    cap: u64,
    #[serde(default, skip_serializing_if = "WindowScope::is_player")]
    scope: WindowScope,
}

/// For programs.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Window")]
struct WindowPacked {
    len: u64,
    cap: u64,
    scope: WindowScope,
}

/// What one window is for. Only equal scopes are compared.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum WindowScope {
    /// One for each player.
    #[default]
    Player,
    /// One for each player and room.
    Room,
    /// One for the whole instance.
    Source,
}

impl WindowScope {
    fn is_player(&self) -> bool {
        *self == Self::Player
    }
}

/// Whose memory the guard decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardMode {
    /// One memory for all instances.
    Shared,
    /// The instance's own.
    Local,
    /// None: all is accepted.
    Off,
}

/// Why a delivery was blocked, a signature evicted or an outcome unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Block: the signature is in the window.
    Replay,
    /// Block: older than an order mark.
    Stale,
    /// Block: older than the guard looks back.
    TooOld,
    /// Block or unknown: another delivery of it is being worked on.
    InProgress,
    /// Block: the guard's store did not answer.
    GuardDown,
    /// Unknown: held back for its turn.
    Held,
    /// Eviction: first in, first out.
    Fifo,
    /// Eviction: by age.
    Ttl,
    /// Eviction: the process began anew.
    Restart,
    /// Eviction: a clean-up job.
    Reaper,
    /// Eviction: acknowledged by its consumer.
    Ack,
    /// Eviction: memory was short.
    Memory,
}

impl Reason {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Stale => "stale",
            Self::TooOld => "too_old",
            Self::InProgress => "in_progress",
            Self::GuardDown => "guard_down",
            Self::Held => "held",
            Self::Fifo => "fifo",
            Self::Ttl => "ttl",
            Self::Restart => "restart",
            Self::Reaper => "reaper",
            Self::Ack => "ack",
            Self::Memory => "memory",
        }
    }

    /// Whether the reason goes with the outcome.
    pub fn fits(self, outcome: Outcome) -> bool {
        match self {
            Self::Replay | Self::Stale | Self::TooOld | Self::GuardDown => {
                outcome == Outcome::ReplayBlocked
            }
            Self::InProgress => matches!(outcome, Outcome::ReplayBlocked | Outcome::Unknown),
            Self::Held => outcome == Outcome::Unknown,
            _ => outcome == Outcome::Evicted,
        }
    }
}

/// Whether the money moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It did.
    Applied,
    /// It did not.
    Failed,
    /// Nobody knows.
    Unknown,
}

impl Effect {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
