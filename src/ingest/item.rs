//! One thing for the log, made ready before the queue: the writer is one task, the senders are
//! many.

use super::Refusal;
use crate::limits;
use crate::outcome::{Closed, Event, Heartbeat, KeyedHash, Refused};
use crate::store::identity::Key;

/// One thing for the log.
#[derive(Debug)]
pub(super) enum Item {
    /// An outcome.
    Event(Box<Ready>),
    /// A sign of life.
    Heartbeat(Box<Heartbeat>),
    /// Something that decoding did not take.
    Refused(Box<Refusal>),
    /// A person's decision.
    Closed(Box<Closed>),
}

/// An outcome with what the log needs of it.
#[derive(Debug)]
pub(super) struct Ready {
    /// The outcome.
    pub(super) event: Event,
    /// Its form in the log.
    pub(super) body: String,
    /// Hash of its content, by which a repeat with other content is seen.
    pub(super) content: i64,
}

/// Why an event that is right in itself is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Its number is lost.
    GivenUp,
    /// Its source names its boots in another way.
    BootSort,
    /// Too many sources or boots.
    TooMany,
    /// Too many ledgers.
    TooManyLedgers,
    /// The database takes everything but this.
    NotWritable,
}

impl Rejection {
    /// For programs.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::GivenUp => "given_up",
            Self::BootSort => "boot_sort",
            Self::TooMany => "too_many_boots",
            Self::TooManyLedgers => "too_many_ledgers",
            Self::NotWritable => "not_writable",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::GivenUp => {
                "seq: was given up, since its boot had too many holes; send in order and without \
                 holes"
            }
            Self::BootSort => {
                "boot: the source's other boots are of another sort (times or integers); use one \
                 sort, or another source name"
            }
            Self::TooMany => {
                "boot: more sources or boots are known than the collector holds; give a process \
                 one source name that it keeps"
            }
            Self::TooManyLedgers => {
                "ledger: more ledgers are known than the collector holds; name a ledger after a \
                 book, not after what is booked in it"
            }
            Self::NotWritable => {
                "the database does not take this request, while it takes others; see the \
                 collector's log"
            }
        }
    }
}

impl Item {
    /// An outcome for the log.
    pub(super) fn of_event(event: Result<Event, Refusal>, hash: KeyedHash) -> Self {
        match event {
            Ok(event) => Ready::new(event, hash).map_or_else(Self::Refused, Self::Event),
            Err(refusal) => Self::Refused(Box::new(refusal)),
        }
    }

    /// A heartbeat for the log.
    pub(super) fn of_heartbeat(heartbeat: Result<Heartbeat, Refusal>) -> Self {
        match heartbeat {
            Ok(heartbeat) => Self::Heartbeat(Box::new(heartbeat)),
            Err(refusal) => Self::Refused(Box::new(refusal)),
        }
    }

    /// The item, not taken for this reason. A person's decision has no sender to refuse it to.
    pub(super) fn rejected(self, rejection: Rejection, hash: KeyedHash) -> Self {
        match self {
            Self::Event(ready) => Self::Refused(Box::new(ready.rejected(rejection, hash))),
            Self::Heartbeat(heartbeat) => {
                Self::Refused(Box::new(reject_heartbeat(&heartbeat, rejection, hash)))
            }
            other => other,
        }
    }
}

impl Ready {
    fn new(event: Event, hash: KeyedHash) -> Result<Box<Self>, Box<Refusal>> {
        let made = serde_json::to_vec(&event.content())
            .and_then(|content| Ok((content, serde_json::to_string(&event)?)));
        match made {
            Ok((content, body)) => {
                Ok(Box::new(Self { content: hash.of(&[&content]), event, body }))
            }
            Err(error) => {
                let ready = Self { event, body: error.to_string(), content: 0 };
                Err(Box::new(ready.rejected(Rejection::NotWritable, hash)))
            }
        }
    }

    /// The refusal of an event that could be read.
    pub(super) fn rejected(&self, rejection: Rejection, hash: KeyedHash) -> Refusal {
        let event = &self.event;
        let refused = Refused {
            from: Some(event.from.clone()),
            sequence: event.sequence().filter(|_| rejection != Rejection::BootSort),
            event_id: event.event_id.clone(),
            ledger: Some(event.ledger()),
            ..plain(&self.body, rejection)
        };
        Refusal { refused, content: hash.wide(&[b"text", self.body.as_bytes()]) }
    }
}

/// The refusal of a heartbeat that could be read.
pub(super) fn reject_heartbeat(
    heartbeat: &Heartbeat,
    rejection: Rejection,
    hash: KeyedHash,
) -> Refusal {
    let text = serde_json::to_string(heartbeat).unwrap_or_default();
    let refused = Refused { from: Some(heartbeat.from.clone()), ..plain(&text, rejection) };
    Refusal { refused, content: hash.wide(&[b"text", text.as_bytes()]) }
}

fn plain(text: &str, rejection: Rejection) -> Refused {
    let end = text.floor_char_boundary(limits::REFUSED_TEXT_BYTES_MAX);
    Refused {
        from: None,
        sequence: None,
        event_id: None,
        ledger: None,
        code: rejection.code().into(),
        message: rejection.message().into(),
        text: text.get(..end).unwrap_or_default().into(),
    }
}

/// What an event without a sequence is known by.
pub(super) fn event_key(event: &Event, hash: KeyedHash) -> Option<Key> {
    let id = event.event_id.as_ref()?;
    let [service, env, id] =
        [&event.from.service, &event.from.env, id].map(|id| id.as_str().as_bytes());
    Some(hash.wide(&[b"event", service, env, id]))
}

/// What a refusal is noted by: its identity as far as it goes, else its text.
pub(super) fn refusal_key(refusal: &Refusal, hash: KeyedHash) -> Key {
    let Refused { from, sequence, event_id, .. } = &refusal.refused;
    let Some(from) = from else { return refusal.content };
    let [service, env, source] =
        [&from.service, &from.env, &from.source].map(|id| id.as_str().as_bytes());
    match (sequence, event_id) {
        (Some((boot, seq)), _) => {
            let boot = boot.to_string();
            let seq = seq.to_be_bytes();
            hash.wide(&[b"refused", service, env, source, boot.as_bytes(), &seq])
        }
        (None, Some(id)) => hash.wide(&[b"refused id", service, env, id.as_str().as_bytes()]),
        (None, None) => refusal.content,
    }
}

/// What a conflict is noted by: the event's identity and its other content.
pub(super) fn conflict_key(ready: &Ready, hash: KeyedHash) -> Key {
    let event = &ready.event;
    let content = ready.content.to_be_bytes();
    let [service, env, source] =
        [&event.from.service, &event.from.env, &event.from.source].map(|id| id.as_str().as_bytes());
    match (event.sequence(), &event.event_id) {
        (None, Some(id)) => {
            hash.wide(&[b"conflict id", service, env, id.as_str().as_bytes(), &content])
        }
        (sequence, _) => {
            let (boot, seq) = sequence.map_or((String::new(), 0), |(b, s)| (b.to_string(), s));
            let seq = seq.to_be_bytes();
            hash.wide(&[b"conflict", service, env, source, boot.as_bytes(), &seq, &content])
        }
    }
}

/// A hash of all that a heartbeat says.
pub(super) fn heartbeat_content(heartbeat: &Heartbeat, hash: KeyedHash) -> i64 {
    hash.of(&[&serde_json::to_vec(heartbeat).unwrap_or_default()])
}
