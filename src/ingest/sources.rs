//! Who has spoken, and about what: all sources with all their boots, and the ledgers that they
//! named, as the writer holds them.

mod copy;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::boot::Run;
use super::ledgers::Ledgers;
use super::transitions::Transitions;
use crate::limits;
use crate::outcome::{Boot, SourceName};
use crate::store::identity::{StoredBoot, StoredSource};
use crate::store::{Store, StoreError};

/// Whether a source is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is, as far as is known.
    Open,
    /// It is watched and was not heard for too long.
    Silent,
    /// It said goodbye.
    Closed,
}

impl Presence {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Silent => "silent",
            Self::Closed => "closed",
        }
    }

    fn parse(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Open, Self::Silent, Self::Closed];
        all.into_iter().find(|presence| presence.as_str() == text).ok_or_else(|| {
            StoreError::Unreadable { table: "sources", detail: format!("state {text}") }
        })
    }
}

/// A source, as the writer holds it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    id: i64,
    last_push_us: i64,
    last_heartbeat_us: Option<i64>,
    presence: Presence,
    /// Since when it has said nothing while the collector was ready.
    heard_us: i64,
    /// Its boots, in order.
    pub(super) boots: BTreeMap<Boot, Run>,
    changed: BTreeSet<Boot>,
}

/// Why a boot can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BootRefused {
    /// Its source names its boots in another way.
    OtherSort,
    /// Too many sources or boots.
    TooMany,
}

/// All sources.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// What they write to.
    pub(super) ledgers: Ledgers,
    /// Whose transitions have come.
    pub(super) transitions: Transitions,
    by_name: HashMap<SourceName, Source>,
    /// Of a copy: sources that are known beside those in it.
    elsewhere: usize,
    changed: HashSet<SourceName>,
    last_source_id: i64,
    last_boot_id: i64,
    boots: usize,
}

impl Sources {
    /// Reads all that is stored; `now_us` is when all waiting begins anew.
    pub(super) async fn load(store: &Store, now_us: i64) -> Result<Self, StoreError> {
        let ledgers = Ledgers::load(store).await?;
        let transitions = Transitions::load(store).await?;
        let mut sources = Self { ledgers, transitions, ..Self::default() };
        let mut by_id = HashMap::new();
        for stored in store.load_sources().await? {
            sources.last_source_id = sources.last_source_id.max(stored.id);
            let source = Source {
                id: stored.id,
                last_push_us: stored.last_push_us,
                last_heartbeat_us: stored.last_heartbeat_us,
                presence: Presence::parse(&stored.state)?,
                heard_us: now_us,
                boots: BTreeMap::new(),
                changed: BTreeSet::new(),
            };
            by_id.insert(stored.id, stored.from.clone());
            sources.by_name.insert(stored.from, source);
        }
        for stored in store.load_boots().await? {
            sources.last_boot_id = sources.last_boot_id.max(stored.id);
            let source =
                by_id.get(&stored.source_id).and_then(|name| sources.by_name.get_mut(name));
            if let Some(source) = source {
                source.boots.insert(stored.boot, Run::load(&stored, now_us)?);
                sources.boots += 1;
            }
        }
        Ok(sources)
    }

    /// A source said something. One that is not known becomes known, while there is room.
    pub(super) fn hear(&mut self, from: &SourceName, received_us: i64) -> Option<&mut Source> {
        if !self.by_name.contains_key(from) {
            if self.by_name.len() + self.elsewhere >= limits::SOURCES_MAX {
                return None;
            }
            self.last_source_id += 1;
            self.by_name.insert(from.clone(), Source::new(self.last_source_id, received_us));
        }
        let source = self.by_name.get_mut(from)?;
        if !self.changed.contains(from) {
            self.changed.insert(from.clone());
        }
        source.last_push_us = source.last_push_us.max(received_us);
        source.heard_us = source.heard_us.max(received_us);
        Some(source)
    }

    /// As [`Sources::hear`], but who is not known stays so.
    pub(super) fn hear_known(
        &mut self,
        from: &SourceName,
        received_us: i64,
    ) -> Option<&mut Source> {
        if self.by_name.contains_key(from) { self.hear(from, received_us) } else { None }
    }

    /// As [`Sources::hear`], of a boot and one of its numbers.
    pub(super) fn hear_boot(
        &mut self,
        from: &SourceName,
        boot: Boot,
        first_seq: u64,
        received_us: i64,
    ) -> Result<&mut Source, BootRefused> {
        self.hear_boot_within(limits::BOOTS_MAX, from, (boot, first_seq), received_us)
    }

    /// As [`Sources::hear_boot`], of a number that was refused.
    pub(super) fn hear_refused(
        &mut self,
        from: &SourceName,
        boot: Boot,
        seq: u64,
        received_us: i64,
    ) -> Result<&mut Source, BootRefused> {
        self.hear_boot_within(limits::BOOTS_REFUSED_MAX, from, (boot, seq), received_us)
    }

    fn hear_boot_within(
        &mut self,
        most: usize,
        from: &SourceName,
        (boot, first_seq): (Boot, u64),
        received_us: i64,
    ) -> Result<&mut Source, BootRefused> {
        let full = self.boots >= most;
        let id = self.last_boot_id + 1;
        let source = self.hear(from, received_us).ok_or(BootRefused::TooMany)?;
        if source.boots.keys().next().is_some_and(|known| !known.same_sort(boot)) {
            return Err(BootRefused::OtherSort);
        }
        let is_new = !source.boots.contains_key(&boot);
        if is_new && full {
            return Err(BootRefused::TooMany);
        }
        if is_new {
            let is_later = source.boots.keys().next().is_some_and(|oldest| *oldest < boot);
            let heard_from = if is_later { 1 } else { first_seq };
            source.boots.insert(boot, Run::new(id, received_us, heard_from));
            self.last_boot_id = id;
            self.boots += 1;
        }
        // Found again, since the counters above are beside it.
        let source = self.by_name.get_mut(from).ok_or(BootRefused::TooMany)?;
        source.changed.insert(boot);
        Ok(source)
    }

    /// The collector was not ready until now: whoever said nothing may have been turned away.
    pub(super) fn wait_anew(&mut self, now_us: i64) {
        for source in self.by_name.values_mut() {
            source.heard_us = source.heard_us.max(now_us);
            source.boots.values_mut().for_each(|run| run.wait_anew(now_us));
        }
    }

    /// All sources, to look at the clock.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&SourceName, &mut Source)> {
        self.by_name.iter_mut()
    }

    /// Notes that a source was changed by the clock.
    pub(super) fn touch(&mut self, from: &SourceName, boot: Option<Boot>) {
        if let Some(source) = self.by_name.get_mut(from) {
            source.changed.extend(boot);
            self.changed.insert(from.clone());
        }
    }

    /// A boot of which nothing can be told again.
    pub(super) fn find_over(&self, now_us: i64) -> Option<(SourceName, Boot, i64)> {
        self.by_name.iter().find_map(|(from, source)| {
            let (boot, run) = source.boots.iter().find(|(_, run)| run.is_over(now_us))?;
            Some((from.clone(), *boot, run.id))
        })
    }

    /// A source whose boots are forgotten and that has said nothing for as long.
    pub(super) fn find_gone(&self, now_us: i64) -> Option<(SourceName, i64)> {
        let gone = self.by_name.iter().find(|(_, source)| source.is_gone(now_us));
        gone.map(|(from, source)| (from.clone(), source.id))
    }

    /// Forgets a source.
    pub(super) fn forget(&mut self, from: &SourceName) {
        self.by_name.remove(from);
    }

    /// Forgets a boot. Its source stays.
    pub(super) fn forget_boot(&mut self, from: &SourceName, boot: Boot) {
        let source = self.by_name.get_mut(from);
        if source.is_some_and(|source| source.boots.remove(&boot).is_some()) {
            self.boots = self.boots.saturating_sub(1);
        }
    }

    /// What changed since it was last asked, as it is to be stored.
    pub(super) fn take_changed(
        &mut self,
    ) -> Result<(Vec<StoredSource>, Vec<StoredBoot>), StoreError> {
        let (mut sources, mut boots) = (Vec::new(), Vec::new());
        for from in std::mem::take(&mut self.changed) {
            let Some(source) = self.by_name.get_mut(&from) else { continue };
            for boot in std::mem::take(&mut source.changed) {
                if let Some(run) = source.boots.get(&boot) {
                    boots.push(run.store(source.id, boot)?);
                }
            }
            sources.push(source.store(from));
        }
        Ok((sources, boots))
    }
}

impl Source {
    fn new(id: i64, received_us: i64) -> Self {
        Self {
            id,
            last_push_us: received_us,
            last_heartbeat_us: None,
            presence: Presence::Open,
            heard_us: received_us,
            boots: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    fn store(&self, from: SourceName) -> StoredSource {
        StoredSource {
            id: self.id,
            from,
            last_push_us: self.last_push_us,
            last_heartbeat_us: self.last_heartbeat_us,
            state: self.presence.as_str().into(),
        }
    }

    fn is_gone(&self, now_us: i64) -> bool {
        self.boots.is_empty()
            && self.last_push_us.saturating_add(limits::IDENTITY_AGE_US_MAX) < now_us
    }

    /// A heartbeat came: from now on it is watched.
    pub(super) fn watch(&mut self, received_us: i64) {
        self.last_heartbeat_us = Some(received_us);
    }

    /// It said something: open, unless its newest boot has said goodbye.
    pub(super) fn settle(&mut self) {
        let closing = self.boots.values().next_back().is_some_and(|newest| newest.closing);
        self.presence = if closing { Presence::Closed } else { Presence::Open };
    }

    /// Whether it is watched, has not been heard for too long, and that is new; then it is
    /// silent from now on.
    pub(super) fn falls_silent(&mut self, now_us: i64) -> bool {
        let watched = self.last_heartbeat_us.is_some() && self.presence == Presence::Open;
        let silent = watched && now_us.saturating_sub(self.heard_us) >= limits::SILENCE_US;
        if silent {
            self.presence = Presence::Silent;
        }
        silent
    }
}
