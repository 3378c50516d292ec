//! What was heard of a ledger: which of its sources were blind, and how far time has come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::Coverage;
use super::order::{Moment, SKEW_US};
use super::source::{Source, SourceId, Sources};
use crate::outcome::Settings;

/// One book.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger {
    /// Its name.
    pub name: String,
    /// Time of its first event; `i64::MAX` until there is one.
    pub first_us: i64,
    /// The sources that write to it.
    pub sources: Vec<SourceId>,
    /// Those of them that are open, so that a fleet's dead pods cost nothing.
    #[serde(skip)]
    open: Vec<SourceId>,
}

/// All ledgers.
#[derive(Clone, Debug, Default)]
pub struct Ledgers {
    by_name: BTreeMap<String, Ledger>,
    changed: std::collections::BTreeSet<String>,
}

impl Ledgers {
    /// Takes back a stored ledger; after its sources.
    pub fn restore(&mut self, mut ledger: Ledger, sources: &Sources) {
        ledger.open = ledger.sources.clone();
        ledger.open.retain(|id| sources.get(*id).is_some_and(Source::is_open));
        self.by_name.insert(ledger.name.clone(), ledger);
    }

    /// Those that changed since the last call.
    pub fn take_changed(&mut self) -> Vec<&Ledger> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|name| self.by_name.get(&name)).collect()
    }

    /// Every ledger.
    pub fn iter(&self) -> impl Iterator<Item = &Ledger> {
        self.by_name.values()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Ledger> {
        self.by_name.get(name)
    }

    /// A source writes to a ledger, for the first time if it `joins`; `event_us` if it just did.
    pub(super) fn join(
        &mut self,
        name: &str,
        source: SourceId,
        joins: bool,
        event_us: Option<i64>,
    ) {
        let ledger = match self.by_name.get_mut(name) {
            Some(ledger) => ledger,
            None => self.by_name.entry(name.to_owned()).or_insert_with(|| Ledger {
                name: name.to_owned(),
                first_us: i64::MAX,
                sources: Vec::new(),
                open: Vec::new(),
            }),
        };
        let first_us = event_us.map_or(ledger.first_us, |us| us.min(ledger.first_us));
        if !joins && first_us == ledger.first_us {
            return;
        }
        ledger.first_us = first_us;
        if joins {
            ledger.sources.push(source);
        }
        self.changed.insert(name.to_owned());
    }

    /// A source has opened, or is over.
    pub(super) fn set_open(&mut self, source: &Source) {
        for name in &source.ledgers {
            let Some(ledger) = self.by_name.get_mut(name) else { continue };
            let listed = ledger.open.iter().position(|id| *id == source.id);
            match (listed, source.is_open()) {
                (None, true) => ledger.open.push(source.id),
                (Some(i), false) => {
                    ledger.open.swap_remove(i);
                }
                _ => {}
            }
        }
    }
}

impl Ledger {
    /// Whether some source of it is open: time comes by its words.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Event time up to which the ledger has been heard, by the collector's clock: the least over
    /// its open watched sources; without any, the time of receipt.
    pub(super) fn watermark_us(&self, sources: &Sources, received_us: i64) -> i64 {
        let heard = self.open.iter().filter_map(|id| {
            let offset_us = sources.offset_us(*id).unwrap_or(0);
            Some(sources.get(*id)?.heard_us().saturating_add(offset_us))
        });
        heard.min().unwrap_or(received_us)
    }

    /// Whether some source was blind from a time on until an event; both by the clock of the
    /// event's source. Where others were blind is widened by what clocks may differ.
    pub(super) fn blind(&self, sources: &Sources, from_us: i64, at: &Moment) -> Option<SourceId> {
        let offset_us = |id| sources.offset_us(id).unwrap_or(0);
        let blind = |source: &&Source| {
            let own = source.id == at.source;
            let skew_us = if own { 0 } else { SKEW_US };
            let ahead_us = offset_us(at.source).saturating_sub(offset_us(source.id));
            let (from_us, to_us) =
                (from_us.saturating_add(ahead_us), at.at_us.saturating_add(ahead_us));
            if !source.spoke_near(from_us.saturating_sub(skew_us), to_us.saturating_add(skew_us)) {
                return false;
            }
            source.blind_before(at.sequence.filter(|_| own)).into_iter().any(|blind| {
                blind.from_us.saturating_sub(skew_us) <= to_us
                    && from_us <= blind.to_us.saturating_add(skew_us)
            })
        };
        self.sources.iter().filter_map(|id| sources.get(*id)).find(blind).map(|source| source.id)
    }

    /// How well the ledger was heard for as long before an event as a message can come back.
    pub(super) fn coverage(&self, sources: &Sources, settings: &Settings, at: &Moment) -> Coverage {
        if at.at_us < self.first_us.saturating_add(settings.warmup_us) {
            return Coverage::Blind;
        }
        let heard = self.heard(sources, at.at_us.saturating_sub(settings.horizon_us), at);
        // Of a young source, nobody knows what it remembers from before.
        let is_young = sources
            .get(at.source)
            .is_some_and(|own| at.at_us < own.first_us.saturating_add(settings.warmup_us));
        if is_young { heard.max(Coverage::Assumed) } else { heard }
    }

    /// How well everybody was heard from a time on until an event; both by the clock of the
    /// event's source.
    pub(super) fn heard(&self, sources: &Sources, from_us: i64, at: &Moment) -> Coverage {
        let at_us = at.at_us;
        if self.blind(sources, from_us, at).is_some() {
            return Coverage::Blind;
        }
        let proves_nothing = |source: &Source| {
            let seen = !source.watched && source.first_us <= at_us && from_us <= source.last_us;
            let unnumbered = source
                .unnumbered_us
                .is_some_and(|(first_us, last_us)| first_us <= at_us && from_us <= last_us);
            seen || unnumbered || source.lost_before(at_us)
        };
        let assumed = self.sources.iter().filter_map(|id| sources.get(*id)).any(proves_nothing);
        if assumed { Coverage::Assumed } else { Coverage::Full }
    }
}
