//! The truth of what was delivered: what an audit of it must find, no more and no less.
//!
//! It shares no code with `audit`, and it works the other way round: it has the whole story in
//! hand, knows what was lost and when, and reads it once at the end. The audit has a stream and
//! has to decide as it goes.
//!
//! What was lost is not part of the truth: nobody can find a leak whose second acceptance was
//! never told. But a loss also makes things *unknowable*: a block whose acceptance was lost looks
//! like a false block, and must come out as unverifiable; an eviction while somebody was blind
//! may be counted or not. So evictions have a lower and an upper count.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::{Boot, Event, Game, Id, Outcome, Signature, SourceName};

/// Clocks of different sources say nothing about order when they are closer than this
/// (audit.md: 1 s).
const SKEW_US: i64 = 1_000_000;

/// What of the collector's settings the truth depends on.
#[derive(Clone, Copy, Debug)]
pub struct TruthSettings {
    /// How many of a player's newest games are live.
    pub live_games: usize,
    /// How long a new ledger is blind.
    pub warmup_us: i64,
    /// How long a message can come back.
    pub horizon_us: i64,
}

/// (ledger, player, signature).
pub type Key = (String, Id, Signature);

/// A settlement that was accepted too often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leak {
    /// Acceptances too many.
    pub count: u64,
    /// Paid too often, in all.
    pub overpaid: i128,
    /// Taken too often, in all.
    pub overcharged: i128,
}

/// A count that can't be known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// So many at least.
    pub least: u64,
    /// So many at most.
    pub most: u64,
}

/// What must be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// `duplicate_leak`.
    pub leaks: BTreeMap<Key, Leak>,
    /// `live_eviction`, by source.
    pub live_evictions: BTreeMap<SourceName, Between>,
    /// `false_block`.
    pub false_blocks: BTreeSet<Key>,
    /// `unverifiable_block`.
    pub unverifiable: BTreeSet<Key>,
    /// `telemetry_gap`: missing numbers.
    pub gaps: BTreeMap<(SourceName, Boot), u64>,
}

/// All that was told, and what of it was lost.
#[derive(Debug, Default)]
pub struct Truth {
    /// What reached the collector, in the order in which it was decided.
    told: Vec<Told>,
    boots: BTreeMap<(SourceName, Boot), BootStory>,
    /// First outcome of each ledger.
    first_us: BTreeMap<String, i64>,
    /// When which ledger could not be seen in full.
    blind: BTreeMap<String, Vec<(i64, i64)>>,
    /// Sources whose last words were lost, and since when.
    dark: BTreeMap<SourceName, Dark>,
}

#[derive(Debug)]
struct Told {
    /// Its place among all.
    order: usize,
    boot: Boot,
    event: Event,
}

#[derive(Debug, Default)]
struct BootStory {
    given_out: u64,
    delivered: u64,
    newest_delivered: u64,
    newest_told: u64,
}

#[derive(Debug, Clone)]
struct Dark {
    ledger: String,
    since_us: i64,
}

impl Truth {
    /// An outcome reached the collector.
    pub fn told(&mut self, boot: Boot, event: &Event) {
        let story = self.boots.entry((event.from.clone(), boot)).or_default();
        story.given_out += 1;
        story.delivered += 1;
        story.newest_delivered = story.given_out;
        if let Some(dark) = self.dark.remove(&event.from) {
            self.light(dark, event.occurred_us);
        }
        self.first_us.entry(event.ledger()).or_insert(event.occurred_us);
        self.told.push(Told { order: self.told.len(), boot, event: event.clone() });
    }

    /// An outcome got its number and never reached the collector.
    pub fn lost(&mut self, boot: Boot, event: &Event) {
        self.boots.entry((event.from.clone(), boot)).or_default().given_out += 1;
        self.darken(&event.from, &event.ledger(), event.occurred_us);
    }

    /// A boot ended. `told_seq`: the last number that a heartbeat has shown.
    pub fn ended(&mut self, from: &SourceName, boot: Boot, told_seq: Option<u64>) {
        let story = self.boots.entry((from.clone(), boot)).or_default();
        story.newest_told = told_seq.unwrap_or(0);
    }

    /// A boot ended without a goodbye: nobody knows what it did after its last word.
    pub fn crashed(&mut self, from: &SourceName, ledger: &str, at_us: i64) {
        self.darken(from, ledger, at_us);
    }

    /// What must be found.
    pub fn expected(mut self, settings: &TruthSettings) -> Expected {
        for (_, dark) in std::mem::take(&mut self.dark) {
            self.light(dark, i64::MAX);
        }
        let (false_blocks, unverifiable) = self.blocks(settings);
        Expected {
            leaks: self.leaks(),
            live_evictions: self.live_evictions(settings),
            false_blocks,
            unverifiable,
            gaps: self.gaps(),
        }
    }

    /// Blind from the last word before a loss on.
    fn darken(&mut self, from: &SourceName, ledger: &str, at_us: i64) {
        if self.dark.contains_key(from) {
            return;
        }
        let last = self.told.iter().rev().find(|told| told.event.from == *from);
        let since_us = last.map_or(at_us, |told| told.event.occurred_us);
        let dark = Dark { ledger: ledger.to_owned(), since_us };
        self.dark.insert(from.clone(), dark);
    }

    fn light(&mut self, dark: Dark, until_us: i64) {
        let span = (dark.since_us - SKEW_US, until_us.saturating_add(SKEW_US));
        self.blind.entry(dark.ledger).or_default().push(span);
    }

    fn leaks(&self) -> BTreeMap<Key, Leak> {
        let mut accepted: BTreeMap<Key, u64> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            *accepted.entry(told.key()).or_default() += 1;
        }
        let surplus = accepted.into_iter().filter(|(_, count)| *count > 1);
        surplus
            .map(|(key, count)| {
                let count = count - 1;
                let moved = i128::from(key.2.net().0) * i128::from(count);
                let (overpaid, overcharged) = (moved.max(0), (-moved).max(0));
                (key, Leak { count, overpaid, overcharged })
            })
            .collect()
    }

    /// Blocked, and by all that was told neither accepted nor in a window: false where everything
    /// was seen, else unknowable.
    fn blocks(&self, settings: &TruthSettings) -> (BTreeSet<Key>, BTreeSet<Key>) {
        let mut known = BTreeSet::new();
        for told in &self.told {
            let event = &told.event;
            if event.is_acceptance() || event.outcome == Outcome::Evicted {
                known.insert(told.key());
            }
            let gone = event.evicted.iter();
            known.extend(gone.map(|gone| (event.ledger(), event.player.clone(), gone.clone())));
        }
        let (mut wrong, mut unknowable) = (BTreeSet::new(), BTreeSet::new());
        for told in self.told.iter().filter(|told| told.event.outcome == Outcome::ReplayBlocked) {
            let key = told.key();
            if known.contains(&key) {
                continue;
            }
            let at_us = told.event.occurred_us;
            let seen = (at_us - settings.horizon_us, at_us);
            if self.was_blind(&key.0, seen) || self.warms_up(&key.0, at_us, settings) {
                unknowable.insert(key);
            } else {
                wrong.insert(key);
            }
        }
        let wrong = wrong.difference(&unknowable).cloned().collect();
        (wrong, unknowable)
    }

    fn live_evictions(&self, settings: &TruthSettings) -> BTreeMap<SourceName, Between> {
        let games = self.games();
        let mut counts: BTreeMap<SourceName, Between> = BTreeMap::new();
        for (pushing, gone) in self.evictions() {
            let live = self.liveness(&games, pushing, gone, settings);
            let count = counts.entry(pushing.event.from.clone()).or_default();
            count.least += u64::from(live == Some(true));
            count.most += u64::from(live != Some(false));
        }
        counts.retain(|_, count| count.most > 0);
        counts
    }

    /// Each eviction with the acceptance that caused it: the one that carries it, or the next one
    /// in that window.
    fn evictions(&self) -> Vec<(&Told, &Signature)> {
        let mut apart: BTreeMap<(&SourceName, Boot, &Id), Vec<&Signature>> = BTreeMap::new();
        let mut evictions = Vec::new();
        for told in &self.told {
            let window = (&told.event.from, told.boot, &told.event.player);
            if told.event.outcome == Outcome::Evicted {
                apart.entry(window).or_default().push(&told.event.signature);
            } else if told.event.is_acceptance() {
                let before = apart.remove(&window).into_iter().flatten();
                let inline = told.event.evicted.iter();
                evictions.extend(before.chain(inline).map(|gone| (told, gone)));
            }
        }
        evictions
    }

    /// When each game of each player was first processed, and by whom.
    fn games(&self) -> BTreeMap<(String, &Id), BTreeMap<&Game, Vec<&Told>>> {
        let mut games: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            if let Some(game) = told.event.signature.game() {
                let player = (told.event.ledger(), &told.event.player);
                games.entry(player).or_default().entry(game).or_default().push(told);
            }
        }
        games
    }

    /// Whether an evicted signature was of one of the player's newest games; `None` where that
    /// can't be known from what was told.
    fn liveness(
        &self,
        games: &BTreeMap<(String, &Id), BTreeMap<&Game, Vec<&Told>>>,
        pushing: &Told,
        gone: &Signature,
        settings: &TruthSettings,
    ) -> Option<bool> {
        let ledger = pushing.event.ledger();
        let at_us = pushing.event.occurred_us;
        let of_player = games.get(&(ledger.clone(), &pushing.event.player));
        let Some((of_player, own)) =
            of_player.and_then(|games| Some((games, games.get(gone.game()?)?)))
        else {
            return Some(false); // never seen accepted: nothing to be live
        };
        if !own.iter().any(|told| told.event.signature == *gone) {
            return Some(false);
        }
        let (mut surely_newer, mut perhaps_newer) = (0, 0);
        for (_, other) in of_player.iter().filter(|(game, _)| Some(**game) != gone.game()) {
            let (surely, perhaps) = is_newer(other, own, pushing);
            surely_newer += usize::from(surely);
            perhaps_newer += usize::from(perhaps);
        }
        if surely_newer >= settings.live_games {
            return Some(false);
        }
        let began_us = own.iter().map(|told| told.event.occurred_us).min().unwrap_or(at_us);
        let accepted_before =
            own.iter().any(|told| told.order < pushing.order && told.event.signature == *gone);
        let seen = accepted_before
            && !self.was_blind(&ledger, (began_us, at_us))
            && !self.warms_up(&ledger, began_us, settings);
        (seen && perhaps_newer < settings.live_games).then_some(true)
    }

    fn was_blind(&self, ledger: &str, (from_us, to_us): (i64, i64)) -> bool {
        let spans = self.blind.get(ledger).into_iter().flatten();
        spans.into_iter().any(|&(since_us, until_us)| since_us <= to_us && from_us <= until_us)
    }

    fn warms_up(&self, ledger: &str, at_us: i64, settings: &TruthSettings) -> bool {
        let first_us = self.first_us.get(ledger);
        first_us.is_some_and(|first_us| at_us < first_us + settings.warmup_us)
    }

    fn gaps(&self) -> BTreeMap<(SourceName, Boot), u64> {
        let missing = self.boots.iter().map(|(boot, story)| {
            let newest = story.newest_delivered.max(story.newest_told);
            (boot.clone(), newest - story.delivered)
        });
        missing.filter(|(_, missing)| *missing > 0).collect()
    }
}

impl Told {
    fn key(&self) -> Key {
        (self.event.ledger(), self.event.player.clone(), self.event.signature.clone())
    }

    /// Whether it surely, or perhaps, came before another. One source decides one after the
    /// other; between sources only clocks speak.
    fn before(&self, other: &Self) -> (bool, bool) {
        if self.event.from == other.event.from {
            return (self.order < other.order, self.order < other.order);
        }
        let gap_us = other.event.occurred_us - self.event.occurred_us;
        (gap_us > SKEW_US, gap_us >= -SKEW_US)
    }

    fn surely_before(&self, other: &Self) -> bool {
        self.before(other).0
    }

    fn is_processed(&self) -> bool {
        self.event.outcome == Outcome::Processed
    }
}

/// Whether a game is surely, or perhaps, newer than another, as of an acceptance. Newest by first
/// `processed`; games known only by late acceptances rank behind those.
fn is_newer(game: &[&Told], than: &[&Told], as_of: &Told) -> (bool, bool) {
    let processed = || game.iter().filter(|told| told.is_processed());
    let than_processed = || than.iter().filter(|told| told.is_processed());
    let begun = |surely: bool| {
        processed().any(|told| {
            let (before, perhaps) = told.before(as_of);
            told.order == as_of.order || if surely { before } else { perhaps }
        })
    };
    let ranks_behind = than_processed().next().is_none();
    let began_later =
        than_processed().any(|first| processed().all(|told| first.surely_before(told)));
    let began_earlier =
        processed().any(|first| than_processed().all(|told| first.surely_before(told)));
    let surely = begun(true) && (ranks_behind || began_later);
    let perhaps = match processed().next() {
        Some(_) => begun(false) && (ranks_behind || !began_earlier),
        None => ranks_behind,
    };
    (surely, perhaps)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use proptest::prelude::*;

    use super::super::testing::{settings, steps};
    use super::super::{Step, Stream};
    use super::*;
    use crate::guard::SignatureWindow;
    use crate::outcome::Net;

    const SETTINGS: TruthSettings =
        TruthSettings { live_games: 2, warmup_us: 0, horizon_us: 7_200_000_000 };
    const BOOT: Boot = Boot::Number(1);

    /// A service whose guards are real, and whose telemetry can be lost.
    struct Story {
        truth: Truth,
        windows: BTreeMap<(String, String), SignatureWindow>,
        capacity: usize,
        now_s: i64,
    }

    impl Story {
        fn new(capacity: usize) -> Self {
            Self { truth: Truth::default(), windows: BTreeMap::new(), capacity, now_s: 0 }
        }

        fn event(&mut self, source: &str, signature: &Signature) -> Event {
            self.now_s += 2;
            let capacity = NonZeroUsize::new(self.capacity).unwrap();
            let window = self
                .windows
                .entry((source.into(), "p".into()))
                .or_insert_with(|| SignatureWindow::with_capacity(capacity));
            let decision = window.check(signature);
            let json = serde_json::json!({
                "service": "settle", "env": "prod", "source": source, "player": "p",
                "occurred_at": crate::outcome::format_us(self.now_s * 1_000_000),
                "signature": signature, "outcome": Outcome::from(decision.verdict),
                "evicted": decision.evicted,
            });
            serde_json::from_value(json).unwrap()
        }

        fn tell(&mut self, source: &str, signature: &Signature) -> &mut Self {
            let event = self.event(source, signature);
            self.truth.told(BOOT, &event);
            self
        }

        fn lose(&mut self, source: &str, signature: &Signature) -> &mut Self {
            let event = self.event(source, signature);
            self.truth.lost(BOOT, &event);
            self
        }

        fn expected(self) -> Expected {
            self.truth.expected(&SETTINGS)
        }
    }

    fn from(source: &str) -> SourceName {
        let id = |text| Id::parse(text).unwrap();
        SourceName { service: id("settle"), env: id("prod"), source: id(source) }
    }

    fn settlement(round: u32, net: i64, last: bool) -> Signature {
        let id = |text: &str| Id::parse(text).unwrap();
        let game = Game { session: None, room: id("r"), round: id(&round.to_string()) };
        Signature::Settlement { game, net: Net(net), last }
    }

    fn key(signature: &Signature) -> Key {
        ("settle".into(), Id::parse("p").unwrap(), signature.clone())
    }

    fn exactly(count: u64) -> Between {
        Between { least: count, most: count }
    }

    #[test]
    fn replays_that_are_blocked_are_healthy() {
        let mut story = Story::new(4);
        for round in 0..9 {
            let (now, last) = (settlement(round, 5, false), settlement(round, -7, true));
            story.tell("a", &now).tell("a", &now).tell("a", &last).tell("a", &now);
        }
        assert_eq!(story.expected(), Expected::default());
    }

    #[test]
    fn a_leak_is_what_was_accepted_too_often() {
        let mut story = Story::new(4);
        let (paid, taken) = (settlement(1, 100, false), settlement(1, -30, true));
        for source in ["a", "b", "c"] {
            story.tell(source, &paid);
        }
        story.tell("a", &taken).tell("b", &taken);
        let leaks = story.expected().leaks;
        assert_eq!(leaks[&key(&paid)], Leak { count: 2, overpaid: 200, overcharged: 0 });
        assert_eq!(leaks[&key(&taken)], Leak { count: 1, overpaid: 0, overcharged: 30 });
        assert_eq!(leaks.len(), 2);
    }

    #[test]
    fn a_window_of_three_pushes_out_a_live_one_per_game() {
        let mut story = Story::new(3);
        for round in 0..3 {
            story.tell("a", &settlement(round, 5, false)).tell("a", &settlement(round, 7, true));
        }
        // The final of game 1 pushes out game 0's first, that of game 2 pushes out game 1's.
        assert_eq!(story.expected().live_evictions, [(from("a"), exactly(2))].into());
    }

    #[test]
    fn a_window_of_four_pushes_out_none_while_finals_are_punctual() {
        let mut story = Story::new(4);
        for round in 0..9 {
            story.tell("a", &settlement(round, 5, false)).tell("a", &settlement(round, 7, true));
        }
        assert_eq!(story.expected().live_evictions, [].into());
    }

    #[test]
    fn punctual_finals_after_a_late_one_need_five() {
        let mut story = Story::new(4);
        story.tell("a", &settlement(0, 5, false)).tell("a", &settlement(1, 5, false));
        story.tell("a", &settlement(0, 7, true)).tell("a", &settlement(1, 7, true));
        story.tell("a", &settlement(2, 5, false)).tell("a", &settlement(2, 7, true));
        assert_eq!(story.expected().live_evictions, [(from("a"), exactly(1))].into());
    }

    #[test]
    fn a_block_whose_acceptance_was_lost_is_unknowable() {
        let mut story = Story::new(4);
        let lost = settlement(1, 5, true);
        story.tell("a", &settlement(1, 5, false)).lose("a", &lost).tell("a", &lost);
        let expected = story.expected();
        assert_eq!(expected.unverifiable, [key(&lost)].into());
        assert_eq!(expected.false_blocks, [].into());
        assert_eq!(expected.gaps, [((from("a"), BOOT), 1)].into());
    }

    #[test]
    fn an_eviction_tells_of_the_acceptance_that_was_lost() {
        let mut story = Story::new(2);
        let lost = settlement(1, 5, true);
        story.lose("a", &lost).tell("a", &lost);
        for round in 2..4 {
            story.tell("a", &settlement(round, 5, true));
        }
        assert_eq!(story.expected().unverifiable, [].into());
    }

    #[test]
    fn a_block_out_of_the_blue_is_false_where_all_was_seen() {
        let mut story = Story::new(4);
        let blocked = settlement(1, 5, true);
        story.event("a", &blocked);
        story.tell("a", &blocked);
        let expected = story.expected();
        assert_eq!(expected.false_blocks, [key(&blocked)].into());
        assert_eq!(expected.unverifiable, [].into());
    }

    #[test]
    fn while_a_ledger_warms_up_no_block_is_false_and_no_eviction_sure() {
        let mut story = Story::new(1);
        let blocked = settlement(1, 5, true);
        story.event("b", &blocked);
        story.tell("b", &blocked).tell("a", &settlement(2, 1, false));
        story.tell("a", &settlement(2, 1, true));
        let warm = TruthSettings { warmup_us: 86_400_000_000, ..SETTINGS };
        let expected = story.truth.expected(&warm);
        assert_eq!(expected.false_blocks, [].into());
        assert_eq!(expected.unverifiable, [key(&blocked)].into());
        let perhaps = Between { least: 0, most: 1 };
        assert_eq!(expected.live_evictions, [(from("a"), perhaps)].into());
    }

    #[test]
    fn an_eviction_while_blind_may_be_counted_or_not() {
        let mut story = Story::new(3);
        story.tell("a", &settlement(1, 5, false)).tell("a", &settlement(1, 5, true));
        story.tell("b", &settlement(1, 5, false)).lose("b", &settlement(1, 5, true));
        story.tell("a", &settlement(2, 5, false)).tell("a", &settlement(2, 5, true));
        let counts = story.expected().live_evictions;
        assert_eq!(counts, [(from("a"), Between { least: 0, most: 1 })].into());
    }

    #[test]
    fn a_lost_acceptance_leaks_nothing_that_can_be_seen() {
        let mut story = Story::new(4);
        let twice = settlement(1, 5, true);
        story.tell("a", &twice).lose("b", &twice);
        assert_eq!(story.expected().leaks, [].into());
    }

    #[test]
    fn a_tail_shows_only_where_a_heartbeat_told_it() {
        for (told_seq, gap) in [(None, None), (Some(1), None), (Some(3), Some(2))] {
            let mut story = Story::new(4);
            story.tell("a", &settlement(1, 5, false));
            story.lose("a", &settlement(1, 5, true)).lose("a", &settlement(2, 5, true));
            story.truth.ended(&from("a"), BOOT, told_seq);
            let gaps = story.expected().gaps;
            assert_eq!(gaps.values().next().copied(), gap, "{told_seq:?}");
        }
    }

    #[test]
    fn order_between_sources_is_known_beyond_the_skew_only() {
        let tell = |at_us: i64| {
            let mut story = Story::new(4);
            let event = story.event("a", &settlement(1, 5, false));
            let other = story.event("b", &settlement(2, 5, false));
            story.truth.told(BOOT, &event);
            story.truth.told(BOOT, &Event { occurred_us: event.occurred_us + at_us, ..other });
            let (first, second) = (&story.truth.told[0], &story.truth.told[1]);
            (first.before(second), second.before(first))
        };
        assert_eq!(tell(SKEW_US + 1), ((true, true), (false, false)));
        assert_eq!(tell(SKEW_US), ((false, true), (false, true)));
        assert_eq!(tell(0), ((false, true), (false, true)));
    }

    fn expected_of(seed: u64, faults: &[&str]) -> Expected {
        let settings = settings(seed, faults);
        let sources: Vec<_> = Stream::new(settings.clone()).unwrap().sources().cloned().collect();
        let mut boots = vec![Stream::boot_at(settings.start_us); sources.len()];
        let mut truth = Truth::default();
        for step in steps(&settings) {
            match step {
                Step::Decided { source, events, lost: false, .. } => {
                    events.iter().for_each(|event| truth.told(boots[source], event));
                }
                Step::Decided { source, events, .. } => {
                    events.iter().for_each(|event| truth.lost(boots[source], event));
                }
                Step::Restarted { at_us, source, .. } => boots[source] = Stream::boot_at(at_us),
            }
        }
        truth.expected(&SETTINGS)
    }

    #[test]
    fn each_fault_brings_what_it_is_known_for() {
        let of_3 = expected_of(1, &["window-of-3@30s+2m"]);
        assert!(of_3.live_evictions.values().any(|count| count.least > 5), "{of_3:?}");
        assert!(!of_3.leaks.is_empty());
        let forgetful = expected_of(1, &["restart-empty@60s+2m"]);
        assert!(!forgetful.leaks.is_empty());
        assert_eq!((forgetful.unverifiable.len(), forgetful.gaps.len()), (0, 0));
        let two = expected_of(1, &["two-guards@30s+2m"]);
        assert!(!two.leaks.is_empty());
        let mut lossy = (1..9).map(|seed| expected_of(seed, &["lost-telemetry@255s+35s"]));
        assert!(lossy.any(|lossy| !lossy.unverifiable.is_empty() && lossy.gaps.len() == 1));
        let crashed = expected_of(1, &["crash@265s+20s"]);
        assert!(!crashed.unverifiable.is_empty() && crashed.gaps.is_empty(), "{crashed:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The world's times are such that a window of four is enough.
        #[test]
        fn healthy_services_are_healthy(seed in any::<u64>()) {
            prop_assert_eq!(expected_of(seed, &[]), Expected::default());
        }

        /// Guards that are right are never called wrong, whatever gets lost.
        #[test]
        fn losses_never_make_a_guard_wrong(seed in any::<u64>()) {
            let expected = expected_of(seed, &["lost-telemetry@50s+40s", "crash@90s+20s/1"]);
            prop_assert_eq!(expected.leaks, BTreeMap::new());
            prop_assert_eq!(expected.false_blocks, BTreeSet::new());
            prop_assert!(expected.live_evictions.values().all(|count| count.least == 0));
        }
    }
}
