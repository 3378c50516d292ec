//! What a store keeps of an audit. Each world goes on from it as from a restart, so no verdict
//! hangs on memory that a restart loses, and whatever changes is said to have changed.

use std::collections::BTreeMap;

use crate::audit::{
    Advice, Audit, Group, Ledger, MessageFacts, MessageKey, Opened, PlayerFacts, PlayerKey,
    RefFacts, RefKey, RoomFacts, RoomKey, Row, Service, Settings, SignatureFacts, SignatureKey,
    Source, SumKey, Sums, Wait, Waiting,
};

/// The tables.
#[derive(Default)]
pub(super) struct Stored {
    settings: Option<Settings>,
    sources: BTreeMap<String, Source>,
    ledgers: BTreeMap<String, Ledger>,
    services: BTreeMap<String, Service>,
    advices: BTreeMap<(String, String), Advice>,
    groups: BTreeMap<String, Group>,
    more: BTreeMap<String, Row>,
    opened: BTreeMap<String, Opened>,
    waits: BTreeMap<Wait, Waiting>,
    sums: BTreeMap<SumKey, Sums>,
    players: BTreeMap<PlayerKey, PlayerFacts>,
    signatures: BTreeMap<SignatureKey, SignatureFacts>,
    refs: BTreeMap<RefKey, RefFacts>,
    rooms: BTreeMap<RoomKey, RoomFacts>,
    messages: BTreeMap<MessageKey, MessageFacts>,
}

impl Stored {
    /// Stores what changed.
    pub(super) fn take(&mut self, audit: &mut Audit) {
        self.settings = audit.take_settings().cloned().or(self.settings.take());
        let sources = audit.sources.take_changed().into_iter();
        self.sources.extend(sources.map(|it| (format!("{:?}", it.name), it.clone())));
        let ledgers = audit.ledgers.take_changed().into_iter();
        self.ledgers.extend(ledgers.map(|it| (it.name.clone(), it.clone())));
        let services = audit.take_services().into_iter();
        self.services.extend(services.map(|it| (it.name.clone(), it.clone())));
        let advices = audit.take_advices().into_iter();
        let of = |it: &Advice| (it.service.clone(), it.env.clone());
        self.advices.extend(advices.map(|it| (of(it), it.clone())));
        let groups = audit.take_groups().into_iter();
        self.groups.extend(groups.map(|it| (format!("{:?}{:?}", it.kind, it.subject), it.clone())));
        let more = audit.book.take_more().into_iter();
        self.more.extend(more.map(|it| (it.id().to_owned(), it.clone())));
        let opened = audit.book.take_opened().into_iter();
        self.opened.extend(opened.map(|it| (format!("{:?}{:?}", it.kind, it.service), it.clone())));
        for (wait, waiting) in audit.waits.take_changed() {
            match waiting {
                Some(waiting) => drop(self.waits.insert(wait, waiting.clone())),
                None => drop(self.waits.remove(&wait)),
            }
        }
        self.sums.extend(audit.book.take_sums());
        let facts = &mut audit.facts;
        let owned = |(key, value): (_, &PlayerFacts)| (key, value.clone());
        self.players.extend(facts.players.take_changed().into_iter().map(owned));
        let owned = |(key, value): (_, &SignatureFacts)| (key, value.clone());
        self.signatures.extend(facts.signatures.take_changed().into_iter().map(owned));
        let owned = |(key, value): (_, &RefFacts)| (key, value.clone());
        self.refs.extend(facts.refs.take_changed().into_iter().map(owned));
        let owned = |(key, value): (_, &RoomFacts)| (key, value.clone());
        self.rooms.extend(facts.rooms.take_changed().into_iter().map(owned));
        let owned = |(key, value): (_, &MessageFacts)| (key, value.clone());
        self.messages.extend(facts.messages.take_changed().into_iter().map(owned));
    }

    /// The audit as it is read back; what was measured and skipped is told, not stored.
    pub(super) fn read_back(&self, was: &mut Audit) -> Audit {
        let settings = self.settings.clone().unwrap_or_else(|| was.settings.clone());
        let mut audit = Audit::in_memory(settings, was.hash);
        let mut sources: Vec<Source> = self.sources.values().cloned().collect();
        sources.sort_by_key(|source| source.id);
        sources.into_iter().for_each(|it| audit.sources.restore(it));
        let ledgers = self.ledgers.values().cloned();
        ledgers.for_each(|it| audit.ledgers.restore(it, &audit.sources));
        self.services.values().cloned().for_each(|it| audit.restore_service(it));
        self.advices.values().cloned().for_each(|it| audit.restore_advice(it));
        self.groups.values().cloned().for_each(|it| audit.restore_group(it));
        self.more.values().cloned().for_each(|it| audit.book.restore_more(it));
        self.opened.values().cloned().for_each(|it| audit.book.restore_opened(it));
        self.waits.values().cloned().for_each(|it| audit.waits.restore(it));
        self.sums.iter().for_each(|(key, sums)| audit.book.restore_sums(key.clone(), *sums));
        audit.restore_received(was.received_us());
        let facts = &mut audit.facts;
        self.players.iter().for_each(|(key, it)| facts.players.load(*key, Some(it.clone())));
        self.signatures.iter().for_each(|(key, it)| facts.signatures.load(*key, Some(it.clone())));
        self.refs.iter().for_each(|(key, it)| facts.refs.load(*key, Some(it.clone())));
        self.rooms.iter().for_each(|(key, it)| facts.rooms.load(*key, Some(it.clone())));
        self.messages.iter().for_each(|(key, it)| facts.messages.load(*key, Some(it.clone())));
        audit.measured = was.take_measured();
        audit.skipped = was.take_skipped();
        audit
    }
}
