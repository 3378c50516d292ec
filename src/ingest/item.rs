//! One thing for the log, made ready before the queue: the writer is one task, the senders are
//! many.

use super::Refusal;
use super::said::Said;
use crate::limits;
use crate::outcome::{
    Closed, Event, Heartbeat, KeyedHash, Refused, Settings, SourceName, Transition,
};

/// One thing for the log.
#[derive(Debug)]
pub(super) enum Item {
    /// An outcome.
    Event(Box<Ready<Event>>),
    /// A move of a delivery.
    Transition(Box<Ready<Transition>>),
    /// A sign of life.
    Heartbeat(Box<Heartbeat>),
    /// Something that decoding did not take.
    Refused(Box<Refusal>),
    /// A person's decision.
    Closed(Box<Closed>),
    /// Other settings of the audit.
    Settings(Box<Settings>),
}

/// An outcome or a transition, with what the log needs of it.
#[derive(Debug)]
pub(super) struct Ready<T> {
    /// The outcome or the transition.
    pub(super) said: T,
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
    /// Who says it, if a source does and its name can be read.
    pub(super) fn speaker(&self) -> Option<&SourceName> {
        match self {
            Self::Event(ready) => Some(&ready.said.from),
            Self::Transition(ready) => Some(&ready.said.from),
            Self::Heartbeat(heartbeat) => Some(&heartbeat.from),
            Self::Refused(refusal) => refusal.refused.from.as_ref(),
            Self::Closed(_) | Self::Settings(_) => None,
        }
    }

    /// An outcome for the log.
    pub(super) fn of_event(event: Result<Event, Refusal>, hash: KeyedHash) -> Self {
        match event {
            Ok(event) => Ready::new(event, hash).map_or_else(Self::Refused, Self::Event),
            Err(refusal) => Self::Refused(Box::new(refusal)),
        }
    }

    /// A transition for the log.
    pub(super) fn of_transition(said: Result<Transition, Refusal>, hash: KeyedHash) -> Self {
        match said {
            Ok(said) => Ready::new(said, hash).map_or_else(Self::Refused, Self::Transition),
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
            Self::Transition(ready) => Self::Refused(Box::new(ready.rejected(rejection, hash))),
            Self::Heartbeat(heartbeat) => {
                Self::Refused(Box::new(reject_heartbeat(&heartbeat, rejection, hash)))
            }
            other => other,
        }
    }
}

impl<T: Said> Ready<T> {
    fn new(said: T, hash: KeyedHash) -> Result<Box<Self>, Box<Refusal>> {
        let made = serde_json::to_vec(&said.content())
            .and_then(|content| Ok((content, serde_json::to_string(&said)?)));
        match made {
            Ok((content, body)) => Ok(Box::new(Self { content: hash.of(&[&content]), said, body })),
            Err(error) => {
                let ready = Self { said, body: error.to_string(), content: 0 };
                Err(Box::new(ready.rejected(Rejection::NotWritable, hash)))
            }
        }
    }

    /// The refusal of something that could be read.
    pub(super) fn rejected(&self, rejection: Rejection, hash: KeyedHash) -> Refusal {
        let said = &self.said;
        let refused = Refused {
            from: Some(said.from().clone()),
            sequence: said.sequence().filter(|_| rejection != Rejection::BootSort),
            event_id: said.event_id().cloned(),
            ledger: said.ledger(),
            ..plain(&self.body, rejection)
        };
        let refusal = of_text(refused, &self.body, hash);
        if T::IS_TRANSITION { refusal.into_transition(hash) } else { refusal }
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
    of_text(refused, &text, hash)
}

fn of_text(refused: Refused, text: &str, hash: KeyedHash) -> Refusal {
    let content = hash.wide(&[b"text", text.as_bytes()]);
    Refusal { refused, is_transition: false, content }
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
