//! Whose transitions have come: the runs of their sources, as the writer holds them.
//!
//! Apart from the sources of outcomes. Numbers of transitions are counted by themselves, nobody
//! waits for their holes, and a source that sends them is not heard by it: that a delivery moved
//! says nothing of whether the guard's outcomes arrive.

use std::collections::{BTreeMap, HashMap};

use super::item::Rejection;
use super::sets::{Known, Sets};
use crate::limits;
use crate::outcome::{Boot, SourceName};
use crate::store::transitions::StoredRun;
use crate::store::{Store, StoreError};

/// A run of a source, or all that it does not number.
#[derive(Debug)]
pub(super) struct Run {
    /// Its number in the database.
    pub(super) id: i64,
    last_received_us: i64,
    sets: Sets,
    changed: bool,
}

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    by_name: HashMap<SourceName, BTreeMap<Option<Boot>, Run>>,
    changed: Vec<(SourceName, Option<Boot>)>,
    runs: usize,
    last_id: i64,
}

impl Transitions {
    /// Reads all that are stored.
    pub(super) async fn load(store: &Store) -> Result<Self, StoreError> {
        let mut all = Self::default();
        for stored in store.load_transition_runs().await? {
            all.last_id = all.last_id.min(stored.id);
            all.runs += 1;
            let run = Run::load(&stored)?;
            all.by_name.entry(stored.from).or_default().insert(stored.boot, run);
        }
        Ok(all)
    }

    /// A run that a transition came of. One that is not known becomes known, while there is room.
    pub(super) fn hear(
        &mut self,
        from: &SourceName,
        boot: Option<Boot>,
        received_us: i64,
    ) -> Result<&mut Run, Rejection> {
        if !self.by_name.get(from).is_some_and(|runs| runs.contains_key(&boot)) {
            self.begin(from, boot)?;
        }
        let runs = self.by_name.get_mut(from);
        let run = runs.and_then(|runs| runs.get_mut(&boot)).ok_or(Rejection::TooMany)?;
        run.last_received_us = run.last_received_us.max(received_us);
        if !run.changed {
            run.changed = true;
            self.changed.push((from.clone(), boot));
        }
        Ok(run)
    }

    fn begin(&mut self, from: &SourceName, boot: Option<Boot>) -> Result<(), Rejection> {
        let is_new = !self.by_name.contains_key(from);
        if self.runs >= limits::BOOTS_MAX || (is_new && self.by_name.len() >= limits::SOURCES_MAX) {
            return Err(Rejection::TooMany);
        }
        self.last_id -= 1;
        self.runs += 1;
        let run = Run {
            id: self.last_id,
            last_received_us: i64::MIN,
            sets: Sets::default(),
            changed: false,
        };
        self.by_name.entry(from.clone()).or_default().insert(boot, run);
        Ok(())
    }

    /// A run of which nothing can be told again.
    pub(super) fn find_over(&self, now_us: i64) -> Option<(SourceName, Option<Boot>, i64)> {
        self.by_name.iter().find_map(|(from, runs)| {
            let is_over = |run: &Run| {
                run.last_received_us.saturating_add(limits::IDENTITY_AGE_US_MAX) < now_us
            };
            let (boot, run) = runs.iter().find(|(_, run)| is_over(run))?;
            Some((from.clone(), *boot, run.id))
        })
    }

    /// Forgets a run, and a source with its last one.
    pub(super) fn forget(&mut self, from: &SourceName, boot: Option<Boot>) {
        let Some(runs) = self.by_name.get_mut(from) else { return };
        if runs.remove(&boot).is_some() {
            self.runs = self.runs.saturating_sub(1);
        }
        if runs.is_empty() {
            self.by_name.remove(from);
        }
    }

    /// What changed since it was last asked, as it is to be stored.
    pub(super) fn take_changed(&mut self) -> Result<Vec<StoredRun>, StoreError> {
        let mut stored = Vec::with_capacity(self.changed.len());
        for (from, boot) in std::mem::take(&mut self.changed) {
            let runs = self.by_name.get_mut(&from);
            if let Some(run) = runs.and_then(|runs| runs.get_mut(&boot)) {
                run.changed = false;
                stored.push(run.store(from, boot)?);
            }
        }
        Ok(stored)
    }
}

impl Run {
    fn load(stored: &StoredRun) -> Result<Self, StoreError> {
        let set = |text: &str| serde_json::from_str(text).map_err(|error| unreadable(&error));
        let (received, lost) = (set(&stored.received)?, set(&stored.lost)?);
        let sets = Sets { received, lost, ..Sets::default() };
        let last_received_us = stored.last_received_us;
        Ok(Self { id: stored.id, last_received_us, sets, changed: false })
    }

    fn store(&self, from: SourceName, boot: Option<Boot>) -> Result<StoredRun, StoreError> {
        let text = |set: &crate::outcome::Ranges| {
            serde_json::to_string(set).map_err(|error| unreadable(&error))
        };
        Ok(StoredRun {
            id: self.id,
            from,
            boot,
            last_received_us: self.last_received_us,
            received: text(&self.sets.received)?,
            lost: text(&self.sets.lost)?,
        })
    }

    /// What is known of a number; one that is new is received by it.
    pub(super) fn receive(&mut self, seq: u64) -> Known {
        let known = self.sets.known(seq);
        if known == Known::New {
            self.sets.receive(seq);
            self.sets.shrink(1);
        }
        known
    }
}

fn unreadable(error: &serde_json::Error) -> StoreError {
    StoreError::Unreadable { table: "transition_runs", detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::id;

    fn named(source: &str) -> SourceName {
        SourceName { service: id("s"), env: id("prod"), source: id(source) }
    }

    #[test]
    fn a_number_is_new_once_and_survives_being_stored() {
        let (mut all, boot) = (Transitions::default(), Some(Boot::Number(7)));
        for (seq, known) in [(1, Known::New), (3, Known::New), (1, Known::Received)] {
            assert_eq!(all.hear(&named("a"), boot, 5).unwrap().receive(seq), known);
        }
        assert_eq!(all.hear(&named("b"), boot, 5).unwrap().receive(1), Known::New);
        let stored = all.take_changed().unwrap();
        assert_eq!(stored.iter().map(|run| run.id).collect::<Vec<_>>(), [-1, -2]);
        assert_eq!(stored[0].received, "[[1,1],[3,3]]");
        assert_eq!(all.take_changed().unwrap(), []);
        let mut run = Run::load(&stored[0]).unwrap();
        assert_eq!(
            [1, 2, 3].map(|seq| run.receive(seq)),
            [Known::Received, Known::New, Known::Received]
        );
    }

    #[test]
    fn many_holes_lose_the_lowest() {
        let mut all = Transitions::default();
        let run = all.hear(&named("a"), Some(Boot::Number(1)), 5).unwrap();
        for n in 0..=limits::RANGES_OF_A_BOOT_MAX as u64 {
            assert_eq!(run.receive(2 * n + 1), Known::New);
        }
        assert_eq!(run.receive(2), Known::Lost);
        assert_eq!(run.receive(4_000), Known::New);
    }

    #[test]
    fn sources_are_bounded_and_go_with_their_last_run() {
        let mut all = Transitions::default();
        for n in 0..limits::SOURCES_MAX {
            all.hear(&named(&n.to_string()), None, 5).unwrap();
        }
        assert_eq!(all.hear(&named("x"), None, 5).err(), Some(Rejection::TooMany));
        all.hear(&named("0"), Some(Boot::Number(1)), 5).unwrap();
        let over_us = 6 + limits::IDENTITY_AGE_US_MAX;
        assert_eq!(all.find_over(over_us - 1), None);
        let (from, boot, _) = all.find_over(over_us).unwrap();
        all.forget(&from, boot);
        all.forget(&from, Some(Boot::Number(1)));
        assert!(from == named("0") || all.hear(&named("x"), None, 5).is_ok());
    }
}
