//! What things are known by where numbers do not tell: 128 bits of a keyed hash. The forms are
//! part of the file format: another one would take a repeat for something new.

use super::Refusal;
use super::item::Ready;
use super::said::Said;
use crate::outcome::{Heartbeat, KeyedHash, Refused};
use crate::store::identity::Key;

/// A key of transitions: apart from the outcomes' of the same form.
fn apart<T: Said>(key: Key, hash: KeyedHash) -> Key {
    if T::IS_TRANSITION { of_transition(key, hash) } else { key }
}

fn of_transition(key: Key, hash: KeyedHash) -> Key {
    hash.wide(&[b"transition", &key])
}

/// What something without a sequence is known by.
pub(super) fn event_key<T: Said>(said: &T, hash: KeyedHash) -> Option<Key> {
    let (id, from) = (said.event_id()?, said.from());
    let [service, env, id] = [&from.service, &from.env, id].map(|id| id.as_str().as_bytes());
    Some(apart::<T>(hash.wide(&[b"event", service, env, id]), hash))
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

impl Refusal {
    /// That of a transition. The record names no number: the audit would be blind to an outcome
    /// that there is not.
    pub(super) fn into_transition(self, hash: KeyedHash) -> Self {
        let content = of_transition(refusal_key(&self, hash), hash);
        let refused = Refused { sequence: None, event_id: None, ledger: None, ..self.refused };
        Self { refused, is_transition: true, content }
    }
}

/// What a conflict is noted by: the identity and the other content.
pub(super) fn conflict_key<T: Said>(ready: &Ready<T>, hash: KeyedHash) -> Key {
    let (said, from) = (&ready.said, ready.said.from());
    let content = ready.content.to_be_bytes();
    let [service, env, source] =
        [&from.service, &from.env, &from.source].map(|id| id.as_str().as_bytes());
    let key = match (said.sequence(), said.event_id()) {
        (None, Some(id)) => {
            hash.wide(&[b"conflict id", service, env, id.as_str().as_bytes(), &content])
        }
        (sequence, _) => {
            let (boot, seq) = sequence.map_or((String::new(), 0), |(b, s)| (b.to_string(), s));
            let seq = seq.to_be_bytes();
            hash.wide(&[b"conflict", service, env, source, boot.as_bytes(), &seq, &content])
        }
    };
    apart::<T>(key, hash)
}

/// A hash of all that a heartbeat says.
pub(super) fn heartbeat_content(heartbeat: &Heartbeat, hash: KeyedHash) -> i64 {
    hash.of(&[&serde_json::to_vec(heartbeat).unwrap_or_default()])
}
