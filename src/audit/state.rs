//! The state of the fold: what is in memory, what must be loaded, and what has changed.
//!
//! The judge folds in steps: it asks what a record [`Audit::needs`], loads that, folds, settles
//! what has become due, and stores all that changed together with its progress. Without a store
//! ([`Audit::in_memory`]) nothing needs loading.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::advice::{Advice, Measured};
use super::book::Book;
use super::finding::{Finding, Subject};
use super::group::Group;
use super::kind::Kind;
use super::ledger::Ledgers;
use super::rule::Context;
use super::source::Sources;
use super::table::{Facts, PlayerKey};
use super::waits::{Wait, Waits};
use crate::outcome::{Id, KeyedHash, Settings};

/// Minutes over which the share of live evictions is taken (audit.md).
const RATE_MINUTES: i64 = 15;
/// So many are settled at a time: their facts are in memory together, under 1 KiB each as a rule.
/// When a hole fills, or somebody else writes for a player, up to all that wait are looked at.
pub(super) const READY_MAX: usize = 10_000;
/// Twice as many are kept: times of several sources are not in order.
const MINUTES_KEPT: usize = 30;
/// Live evictions among so many acceptances are critical: over 1 in 100, and at least 10.
const RATE_MIN: u64 = 10;
const RATE_ONE_IN: u64 = 100;

/// Acceptances of a service by minute of event time, and those that pushed out a live signature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    minutes: BTreeMap<i64, (u64, u64)>,
}

/// Service, env and minute of event time.
pub type MinuteKey = (String, String, i64);

/// The state of the audit.
#[derive(Clone, Debug)]
pub struct Audit {
    pub(super) settings: Settings,
    settings_changed: bool,
    pub(super) hash: KeyedHash,
    /// The sources.
    pub sources: Sources,
    /// The ledgers.
    pub ledgers: Ledgers,
    /// Facts of players and settlements.
    pub facts: Facts,
    /// The findings.
    pub book: Book,
    /// Who waits for time.
    pub waits: Waits,
    pub(super) services: BTreeMap<String, Service>,
    pub(super) services_changed: BTreeSet<String>,
    /// By service and env.
    pub(super) advices: BTreeMap<String, BTreeMap<String, Advice>>,
    pub(super) advices_changed: BTreeSet<(String, String)>,
    /// By service, env and minute, since they were last taken.
    pub(super) measured: BTreeMap<MinuteKey, Measured>,
    pub(super) groups: BTreeMap<(Kind, Subject), Group>,
    pub(super) groups_changed: BTreeSet<(Kind, Subject)>,
    pub(super) received_us: i64,
    pub(super) recheck: BTreeSet<Wait>,
    pub(super) skipped: BTreeMap<&'static str, u64>,
    pub(super) closing: BTreeMap<String, Finding>,
}

impl Audit {
    /// A state that knows nothing; the store holds the rest.
    pub fn new(settings: Settings, hash: KeyedHash) -> Self {
        Self {
            settings,
            settings_changed: false,
            hash,
            sources: Sources::default(),
            ledgers: Ledgers::default(),
            facts: Facts::default(),
            book: Book::new(hash),
            waits: Waits::default(),
            services: BTreeMap::new(),
            services_changed: BTreeSet::new(),
            advices: BTreeMap::new(),
            advices_changed: BTreeSet::new(),
            measured: BTreeMap::new(),
            groups: BTreeMap::new(),
            groups_changed: BTreeSet::new(),
            received_us: i64::MIN,
            recheck: BTreeSet::new(),
            skipped: BTreeMap::new(),
            closing: BTreeMap::new(),
        }
    }

    /// A state that knows nothing and keeps all in memory.
    pub fn in_memory(settings: Settings, hash: KeyedHash) -> Self {
        let mut state = Self::new(settings, hash);
        state.facts.complete = true;
        state
    }

    /// From here on other settings hold. What waits already goes on waiting as long as it would.
    pub(super) fn set(&mut self, settings: &Settings) {
        self.settings = settings.clone();
        self.settings_changed = true;
    }

    /// What is set, if that changed since the last call.
    pub fn take_settings(&mut self) -> Option<&Settings> {
        std::mem::take(&mut self.settings_changed).then_some(&self.settings)
    }

    /// Takes back the time of receipt that was reached.
    pub fn restore_received(&mut self, received_us: i64) {
        self.received_us = received_us;
    }

    /// Takes back a stored service.
    pub fn restore_service(&mut self, service: Service) {
        self.services.insert(service.name.clone(), service);
    }

    /// Takes back stored advice.
    pub fn restore_advice(&mut self, advice: Advice) {
        let envs = self.advices.entry(advice.service.clone()).or_default();
        envs.insert(advice.env.clone(), advice);
    }

    /// Advice that changed since the last call.
    pub fn take_advices(&mut self) -> Vec<&Advice> {
        let changed = std::mem::take(&mut self.advices_changed);
        let get = |(service, env): (String, String)| self.advices.get(&service)?.get(&env);
        changed.into_iter().filter_map(get).collect()
    }

    /// What was measured since the last call.
    pub fn take_measured(&mut self) -> BTreeMap<MinuteKey, Measured> {
        std::mem::take(&mut self.measured)
    }

    /// Takes back a stored group.
    pub fn restore_group(&mut self, group: Group) {
        self.groups.insert((group.kind, group.subject.clone()), group);
    }

    /// Takes the finding that a `closed` record names, before that record is folded.
    pub fn load_finding(&mut self, finding: Finding) {
        self.closing.insert(finding.id.clone(), finding);
    }

    /// Services that changed since the last call.
    pub fn take_services(&mut self) -> Vec<&Service> {
        let changed = std::mem::take(&mut self.services_changed);
        changed.into_iter().filter_map(|name| self.services.get(&name)).collect()
    }

    /// Groups that changed since the last call.
    pub fn take_groups(&mut self) -> Vec<&Group> {
        let changed = std::mem::take(&mut self.groups_changed);
        changed.into_iter().filter_map(|key| self.groups.get(&key)).collect()
    }

    /// Checks that could not be made since the last call, by name.
    pub fn take_skipped(&mut self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.skipped)
    }

    /// The receipt of the newest record.
    pub fn received_us(&self) -> i64 {
        self.received_us
    }

    /// 64 bits of a player in a ledger.
    pub fn player_key(&self, ledger: &str, player: &Id) -> PlayerKey {
        player_key(&self.hash, ledger, player)
    }

    /// When the judge wants to hear of time again, by the clock of receipt; `None` if nothing
    /// waits for that.
    pub fn tick_due_us(&self) -> Option<i64> {
        self.waits.first_by_receipt(|ledger| {
            // A ledger with open watched sources hears of time by their heartbeats.
            self.ledgers.get(ledger).is_none_or(|ledger| !ledger.has_open())
        })
    }

    /// Those who waited long enough, or for a hole that filled; 10,000 at most, so ask
    /// again until there are none.
    pub fn ready(&self) -> Vec<Wait> {
        let mut ready: BTreeSet<Wait> = self.recheck.iter().take(READY_MAX).cloned().collect();
        ready.extend(self.waits.due(READY_MAX, |ledger| self.now_us(ledger)));
        ready.into_iter().take(READY_MAX).collect()
    }

    fn now_us(&self, ledger: Option<&str>) -> i64 {
        match ledger.and_then(|name| self.ledgers.get(name)) {
            Some(ledger) => ledger.watermark_us(&self.sources, self.received_us),
            None => self.received_us,
        }
    }

    pub(super) fn ref_hash(&self, reference: &Id) -> i64 {
        self.hash.of(&[b"ref", reference.as_str().as_bytes()])
    }

    pub(super) fn context(&self, ledger: &str) -> Option<Context<'_>> {
        let ledger = self.ledgers.get(ledger)?;
        Some(Context {
            sources: &self.sources,
            ledger,
            settings: &self.settings,
            watermark_us: ledger.watermark_us(&self.sources, self.received_us),
            by_receipt: !ledger.has_open(),
        })
    }

    pub(super) fn skip(&mut self, check: &'static str) {
        let count = self.skipped.entry(check).or_default();
        *count = count.saturating_add(1);
    }

    pub(super) fn service(&mut self, name: &str) -> &mut Service {
        self.services_changed.insert(name.to_owned());
        self.services
            .entry(name.to_owned())
            .or_insert_with(|| Service { name: name.to_owned(), minutes: BTreeMap::new() })
    }
}

/// 64 bits of a player in a ledger.
pub fn player_key(hash: &KeyedHash, ledger: &str, player: &Id) -> PlayerKey {
    hash.of(&[b"player", ledger.as_bytes(), player.as_str().as_bytes()])
}

impl Service {
    pub(super) fn count(&mut self, at_us: i64, accepted: u64, pushed_out: u64) {
        let minute = at_us.div_euclid(60_000_000);
        let counts = self.minutes.entry(minute).or_default();
        counts.0 = counts.0.saturating_add(accepted);
        counts.1 = counts.1.saturating_add(pushed_out);
        while self.minutes.len() > MINUTES_KEPT {
            self.minutes.pop_first();
        }
    }

    /// One that was counted as pushed out while it was live was not.
    pub(super) fn take_back(&mut self, at_us: i64) {
        if let Some(counts) = self.minutes.get_mut(&at_us.div_euclid(60_000_000)) {
            counts.1 = counts.1.saturating_sub(1);
        }
    }

    /// Whether too many acceptances pushed out a live signature in the minutes up to this one.
    pub(super) fn is_critical(&self, at_us: i64) -> bool {
        let minute = at_us.div_euclid(60_000_000);
        let (accepted, pushed_out) = self
            .minutes
            .range(minute - RATE_MINUTES + 1..=minute)
            .fold((0_u64, 0_u64), |sum, (_, counts)| (sum.0 + counts.0, sum.1 + counts.1));
        pushed_out >= RATE_MIN && pushed_out.saturating_mul(RATE_ONE_IN) > accepted
    }
}
