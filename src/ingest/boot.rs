//! One boot of a source: which of its numbers have come, and which are still waited for.

use super::sets::Sets;
use crate::limits;
use crate::outcome::{Boot, Heartbeat, SourceState};
use crate::store::StoreError;
use crate::store::identity::StoredBoot;

/// A boot, as the writer holds it.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Its number in the database.
    pub(super) id: i64,
    /// What became of its numbers.
    pub(super) sets: Sets,
    first_received_us: i64,
    last_received_us: i64,
    last_seq_named: u64,
    /// Said goodbye.
    pub(super) closing: bool,
    /// From which number on holes are waited for.
    heard_from: u64,
    heartbeats: Vec<i64>,
    waits: Waits,
}

impl Run {
    /// A boot that is heard of for the first time. Only a later boot of a known source is waited
    /// for from 1 on: of the first one, nobody knows how long it has been running.
    pub(super) fn new(id: i64, received_us: i64, heard_from: u64) -> Self {
        Self {
            id,
            sets: Sets::default(),
            first_received_us: received_us,
            last_received_us: received_us,
            last_seq_named: 0,
            closing: false,
            heard_from,
            heartbeats: Vec::new(),
            waits: Waits::default(),
        }
    }

    /// A boot as it was stored. After a start all waiting begins anew.
    pub(super) fn load(stored: &StoredBoot, now_us: i64) -> Result<Self, StoreError> {
        let set = |text: &str| serde_json::from_str(text).map_err(|error| unreadable(&error));
        let mut run = Self {
            sets: Sets {
                received: set(&stored.received)?,
                refused: set(&stored.refused)?,
                lost: set(&stored.lost)?,
                given_up: set(&stored.given_up)?,
            },
            last_received_us: stored.last_received_us,
            last_seq_named: stored.last_seq_named,
            closing: stored.closing,
            heartbeats: serde_json::from_str(&stored.heartbeats)
                .map_err(|error| unreadable(&error))?,
            ..Self::new(stored.id, stored.first_received_us, stored.heard_from)
        };
        if !run.sets.waited_for(run.heard_from, run.top()).is_empty() {
            run.waits.notice(run.top(), now_us);
        }
        Ok(run)
    }

    /// The boot as it is to be stored.
    pub(super) fn store(&self, source_id: i64, boot: Boot) -> Result<StoredBoot, StoreError> {
        let text = |set: &crate::outcome::Ranges| {
            serde_json::to_string(set).map_err(|error| unreadable(&error))
        };
        Ok(StoredBoot {
            id: self.id,
            source_id,
            boot,
            first_received_us: self.first_received_us,
            last_received_us: self.last_received_us,
            last_seq_named: self.last_seq_named,
            closing: self.closing,
            received: text(&self.sets.received)?,
            refused: text(&self.sets.refused)?,
            lost: text(&self.sets.lost)?,
            given_up: text(&self.sets.given_up)?,
            heard_from: self.heard_from,
            heartbeats: serde_json::to_string(&self.heartbeats)
                .map_err(|error| unreadable(&error))?,
        })
    }

    /// The highest number that came or was named.
    fn top(&self) -> u64 {
        self.sets.top().max(self.last_seq_named).max(self.heard_from.saturating_sub(1))
    }

    /// A number was written. Numbers before it that have not come are waited for from now on; a
    /// backlog that drains starts the waiting anew. Says which holes are lost by it, as the sets
    /// are full.
    ///
    /// A backlog drains if an event is older than the grace at receipt, and either younger by a
    /// second than the one by which the waiting last began anew, or one by which fewer are missing
    /// than were then: a backlog may come in any order. After an outage of ten minutes that holds
    /// again and again, until the sender has caught up. A sender whose clock is slow by more than
    /// the grace sends nothing but old events too, but they do not get younger, and what it lost
    /// stays missing: its holes are given up after the grace, whether or not heartbeats tell how
    /// slow it is. So is a backlog that is sent no faster than it grows. A backlog of age `a`
    /// starts the waiting anew once for each second of `a` and for each number missing at most.
    pub(super) fn receive(
        &mut self,
        seq: u64,
        age_us: i64,
        received_us: i64,
        grace_us: i64,
    ) -> Vec<(u64, u64)> {
        self.came(seq, received_us);
        self.closing &= seq <= self.last_seq_named;
        self.sets.receive(seq);
        if age_us > grace_us && !self.waits.since.is_empty() {
            let holes = self.sets.waited_for(self.heard_from, self.top()).into_iter();
            let missing = holes.fold(0, |sum: u64, (first, last)| {
                sum.saturating_add(last - first).saturating_add(1)
            });
            self.waits.drain(age_us, missing, received_us);
        }
        self.sets.shrink(self.heard_from)
    }

    /// A number came and was not taken. It is not waited for.
    pub(super) fn refuse(&mut self, seq: u64, received_us: i64) -> Vec<(u64, u64)> {
        self.came(seq, received_us);
        self.sets.refuse(seq);
        self.sets.shrink(self.heard_from)
    }

    fn came(&mut self, seq: u64, received_us: i64) {
        self.last_received_us = self.last_received_us.max(received_us);
        if seq > self.top().saturating_add(1) {
            self.waits.notice(seq, received_us);
        }
        if seq < self.heard_from {
            self.waits.notice(self.top(), received_us);
            self.heard_from = seq;
        }
    }

    /// The boot said how far it is; `false` if it said just that before.
    pub(super) fn beat(&mut self, heartbeat: &Heartbeat, content: i64, received_us: i64) -> bool {
        self.last_received_us = self.last_received_us.max(received_us);
        if self.heartbeats.contains(&content) {
            return false;
        }
        if self.heartbeats.len() >= limits::HEARTBEATS_KNOWN_MAX {
            self.heartbeats.remove(0);
        }
        self.heartbeats.push(content);
        if heartbeat.last_seq > self.top() {
            self.waits.notice(heartbeat.last_seq, received_us);
        }
        self.closing = match heartbeat.state {
            SourceState::Closing => true,
            // One that was overtaken by the goodbye does not take it back.
            SourceState::Running => self.closing && heartbeat.last_seq <= self.last_seq_named,
        };
        self.last_seq_named = self.last_seq_named.max(heartbeat.last_seq);
        // What it gave out after a heartbeat is waited for, also where that was overtaken.
        let next_seq = heartbeat.last_seq.saturating_add(1);
        if next_seq < self.heard_from {
            self.waits.notice(self.top(), received_us);
            self.heard_from = next_seq;
        }
        true
    }

    /// The collector took nothing until now: what is missing could not come.
    pub(super) fn wait_anew(&mut self, now_us: i64) {
        self.waits.begin_anew(now_us);
    }

    /// Whether none of its numbers can be told again.
    pub(super) fn is_over(&self, now_us: i64) -> bool {
        self.last_received_us.saturating_add(limits::IDENTITY_AGE_US_MAX) < now_us
    }

    /// Stops waiting for holes whose grace is over; says which.
    pub(super) fn give_up(&mut self, now_us: i64, grace_us: i64) -> Vec<(u64, u64)> {
        let Some(top) = self.waits.over(now_us, grace_us) else { return Vec::new() };
        let holes = self.sets.waited_for(self.heard_from, top);
        for &(first, last) in &holes {
            self.sets.give_up(first, last);
        }
        holes
    }
}

fn unreadable(error: &serde_json::Error) -> StoreError {
    StoreError::Unreadable { table: "boots", detail: error.to_string() }
}

/// Up to which number holes are waited for since when. Holes that are noticed within the same
/// second wait together, so that the list is as long as the grace has seconds.
#[derive(Clone, Debug, Default)]
struct Waits {
    since: Vec<(u64, i64)>,
    /// The event by which a backlog last started the waiting anew: its age, and how many numbers
    /// were then missing.
    backlog: Option<(i64, u64)>,
}

impl Waits {
    fn notice(&mut self, top: u64, now_us: i64) {
        let second = |at_us: i64| at_us.div_euclid(limits::SECOND_US);
        match self.since.last_mut() {
            Some((last, since_us)) if second(*since_us) == second(now_us) => {
                *last = top.max(*last);
                *since_us = now_us;
            }
            _ => self.since.push((top, now_us)),
        }
    }

    fn drain(&mut self, age_us: i64, missing: u64, now_us: i64) {
        let drains = |(last_us, last): (i64, u64)| {
            age_us <= last_us.saturating_sub(limits::SECOND_US) || missing < last
        };
        if self.backlog.is_none_or(drains) {
            let youngest_us = self.backlog.map_or(age_us, |(last_us, _)| last_us.min(age_us));
            let least = self.backlog.map_or(missing, |(_, last)| last.min(missing));
            self.begin_anew(now_us);
            self.backlog = Some((youngest_us, least));
        }
    }

    fn begin_anew(&mut self, now_us: i64) {
        if let Some(top) = self.since.iter().map(|(top, _)| *top).max() {
            *self = Self { since: vec![(top, now_us)], backlog: None };
        }
    }

    /// Up to which number the waiting is over.
    fn over(&mut self, now_us: i64, grace_us: i64) -> Option<u64> {
        let is_over = |since_us: i64| since_us.saturating_add(grace_us) <= now_us;
        let top =
            self.since.iter().filter(|(_, since_us)| is_over(*since_us)).map(|(top, _)| *top).max();
        self.since.retain(|(_, since_us)| !is_over(*since_us));
        if self.since.is_empty() {
            self.backlog = None;
        }
        top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE_US: i64 = 30_000_000;

    fn run(heard_from: u64) -> Run {
        Run::new(1, 0, heard_from)
    }

    #[test]
    fn a_hole_is_waited_for_until_its_grace_is_over() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        run.receive(4, 0, 1_000_000, GRACE_US);
        assert_eq!(run.give_up(30_999_999, GRACE_US), []);
        assert_eq!(run.give_up(31_000_000, GRACE_US), [(2, 3)]);
        assert_eq!(run.give_up(90_000_000, GRACE_US), [], "once");
    }

    #[test]
    fn each_hole_has_a_grace_of_its_own() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        run.receive(3, 0, 0, GRACE_US);
        run.receive(5, 0, 20_000_000, GRACE_US);
        assert_eq!(run.give_up(30_000_000, GRACE_US), [(2, 2)]);
        assert_eq!(run.give_up(50_000_000, GRACE_US), [(4, 4)]);
    }

    #[test]
    fn a_hole_that_fills_is_not_given_up() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        run.receive(3, 0, 0, GRACE_US);
        run.receive(2, 0, 1, GRACE_US);
        assert_eq!(run.give_up(90_000_000, GRACE_US), []);
    }

    #[test]
    fn what_was_given_out_after_an_overtaken_heartbeat_is_waited_for() {
        let mut run = run(5);
        run.receive(5, 0, 0, GRACE_US);
        run.beat(&heartbeat(2, SourceState::Running), 1, 1_000_000);
        assert_eq!(run.give_up(90_000_000, GRACE_US), [(3, 4)]);
    }

    #[test]
    fn a_backlog_that_drains_starts_the_waiting_anew() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        run.receive(4, 0, 0, GRACE_US);
        run.receive(2, GRACE_US + 1, 29_000_000, GRACE_US);
        assert_eq!(run.give_up(58_000_000, GRACE_US), []);
        assert_eq!(run.give_up(59_000_000, GRACE_US), [(3, 3)]);
    }

    #[test]
    fn a_backlog_of_ten_minutes_is_waited_for_until_it_has_drained() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        // Twice as fast as it grew; seq 3 went another way, and comes last.
        for second in 0..570_i64 {
            let now_us = second * 1_000_000;
            run.receive(4 + second.unsigned_abs(), 600_000_000 - now_us, now_us, GRACE_US);
            assert_eq!(run.give_up(now_us, GRACE_US), []);
        }
        run.receive(3, 600_000_000, 570_000_000, GRACE_US);
        assert_eq!(run.give_up(599_999_999, GRACE_US), []);
        assert_eq!(run.give_up(600_000_000, GRACE_US), [(2, 2)]);
    }

    #[test]
    fn a_backlog_may_drain_in_any_order() {
        let mut run = run(1);
        run.receive(100, 0, 0, GRACE_US);
        // The youngest first, and what is new in between.
        for second in 0..98_i64 {
            let (age_us, now_us) = (500_000_000 + second * 1_000_000, second * 1_000_000);
            run.receive(99 - second.unsigned_abs(), age_us, now_us, GRACE_US);
            run.receive(101 + second.unsigned_abs(), 0, now_us, GRACE_US);
            assert_eq!(run.give_up(now_us, GRACE_US), []);
        }
        assert_eq!(run.give_up(126_999_999, GRACE_US), []);
        assert_eq!(run.give_up(127_000_000, GRACE_US), [(1, 1)]);
    }

    #[test]
    fn a_slow_clock_is_no_backlog() {
        let mut run = run(1);
        let given_up = (0..12_u64).find_map(|n| {
            let now_us = n.cast_signed() * 10_000_000;
            // The network adds up to a second to 31 seconds.
            let age_us = GRACE_US + 1_000_000 + (n.cast_signed() % 4) * 300_000;
            if n != 4 {
                run.receive(n + 1, age_us, now_us, GRACE_US);
            }
            let holes = run.give_up(now_us, GRACE_US);
            (!holes.is_empty()).then_some((now_us, holes))
        });
        assert_eq!(given_up, Some((80_000_000, vec![(5, 5)])), "noticed at 50 s");
    }

    #[test]
    fn a_second_backlog_is_waited_for_as_the_first() {
        let mut run = run(1);
        for (seq, at_us) in [(2, 0), (5, 100_000_000)] {
            run.receive(seq, GRACE_US + 1, at_us, GRACE_US);
            run.receive(seq + 1, GRACE_US + 1, at_us + 29_000_000, GRACE_US);
            assert_eq!(run.give_up(at_us + 30_000_000, GRACE_US).len(), 1);
        }
        run.receive(9, 0, 200_000_000, GRACE_US);
        run.receive(10, 2 * GRACE_US, 220_000_000, GRACE_US);
        assert_eq!(run.give_up(249_000_000, GRACE_US), []);
    }

    #[test]
    fn nothing_is_given_up_while_nothing_is_taken() {
        let mut run = run(1);
        run.receive(2, 0, 0, GRACE_US);
        run.wait_anew(20_000_000);
        assert_eq!(run.give_up(49_000_000, GRACE_US), []);
        assert_eq!(run.give_up(50_000_000, GRACE_US), [(1, 1)]);
    }

    #[test]
    fn a_refused_number_is_not_waited_for() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        run.refuse(2, 0);
        run.receive(4, 0, 0, GRACE_US);
        assert_eq!(run.give_up(30_000_000, GRACE_US), [(3, 3)]);
    }

    #[test]
    fn the_first_boot_is_waited_for_from_where_it_was_first_heard() {
        let mut run = run(500);
        run.receive(500, 0, 0, GRACE_US);
        run.receive(501, 0, 0, GRACE_US);
        assert_eq!(run.give_up(90_000_000, GRACE_US), []);
        run.receive(498, 0, 90_000_000, GRACE_US);
        assert_eq!(run.give_up(120_000_000, GRACE_US), [(499, 499)]);
    }

    #[test]
    fn a_later_boot_is_waited_for_from_one() {
        let mut run = run(1);
        run.receive(3, 0, 0, GRACE_US);
        assert_eq!(run.give_up(30_000_000, GRACE_US), [(1, 2)]);
    }

    fn heartbeat(last_seq: u64, state: SourceState) -> Heartbeat {
        let id = |text| crate::outcome::Id::parse(text).unwrap();
        let from =
            crate::outcome::SourceName { service: id("s"), env: id("prod"), source: id("a") };
        let ledgers = Vec::new();
        Heartbeat { from, boot: Boot::Number(1), last_seq, at_us: 0, ledgers, state }
    }

    #[test]
    fn a_heartbeat_shows_a_lost_tail() {
        let mut run = run(1);
        run.receive(1, 0, 0, GRACE_US);
        assert!(run.beat(&heartbeat(3, SourceState::Running), 7, 0));
        assert!(!run.beat(&heartbeat(3, SourceState::Running), 7, 0), "said before");
        assert_eq!(run.give_up(30_000_000, GRACE_US), [(2, 3)]);
    }

    #[test]
    fn a_goodbye_holds_until_the_boot_goes_on() {
        let mut run = run(1);
        run.beat(&heartbeat(5, SourceState::Closing), 1, 0);
        run.receive(5, 0, 0, GRACE_US);
        run.beat(&heartbeat(5, SourceState::Running), 2, 0);
        assert!(run.closing, "what came late takes nothing back");
        run.receive(6, 0, 0, GRACE_US);
        assert!(!run.closing);
    }

    #[test]
    fn is_stored_and_loaded_as_it_was() {
        let mut run = run(1);
        run.receive(1, 0, 5, GRACE_US);
        run.receive(4, 0, 6, GRACE_US);
        run.refuse(9, 7);
        run.beat(&heartbeat(11, SourceState::Closing), -3, 8);
        run.give_up(40_000_000, GRACE_US);
        let stored = run.store(2, Boot::Number(1)).unwrap();
        let mut loaded = Run::load(&stored, 50_000_000).unwrap();
        assert_eq!(loaded.store(2, Boot::Number(1)).unwrap(), stored);
        assert!(!loaded.beat(&heartbeat(11, SourceState::Closing), -3, 9));
        loaded.receive(13, 0, 50_000_000, GRACE_US);
        assert_eq!(loaded.give_up(80_000_000, GRACE_US), [(12, 12)]);
    }
}
