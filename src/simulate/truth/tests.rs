//! Small stories, and what each fault is known for.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;
use crate::guard::SignatureWindow;
use crate::outcome::{Game, Net, Window, WindowScope};
use crate::simulate::testing::{settings, steps};
use crate::simulate::{FaultKind, Step, Stream};

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

    fn book(
        &mut self,
        source: &str,
        signature: &Signature,
        reference: &str,
        undone: Option<&str>,
    ) -> &mut Self {
        let id = |text| Id::parse(text).unwrap();
        let event = Event {
            reference: Some(id(reference)),
            reversal_of: undone.map(id),
            ..self.event(source, signature)
        };
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

/// All that is expected of a kind.
fn all(expected: &Expected, kind: &str) -> Vec<(About, Wanted)> {
    expected.of(kind).map(|(about, wanted)| (about.clone(), wanted.clone())).collect()
}

fn of_key(signature: &Signature) -> About {
    About::Key(key(signature))
}

/// What is expected of what happened to a settlement: how many must be, at most.
fn counts(expected: &Expected, kind: &str) -> Vec<(About, u64, u64)> {
    expected.of(kind).map(|(about, it)| (about.clone(), it.least, it.most)).collect()
}

#[test]
fn replays_that_are_blocked_are_healthy() {
    let mut story = Story::new(4);
    for round in 0..9 {
        let (now, last) = (settlement(round, 5, false), settlement(round, -7, true));
        story.tell("a", &now).tell("a", &now).tell("a", &last).tell("a", &now);
    }
    let expected = story.expected();
    let ill: Vec<_> = expected.iter().filter(|(kind, _, _)| *kind != "retry_storm").collect();
    assert!(ill.is_empty(), "{ill:?}");
}

#[test]
fn a_leak_is_what_was_accepted_too_often() {
    let mut story = Story::new(4);
    let (paid, taken) = (settlement(1, 100, false), settlement(1, -30, true));
    for source in ["a", "b", "c"] {
        story.tell(source, &paid);
    }
    story.tell("a", &taken).tell("b", &taken);
    let expected = story.expected();
    let leak = |signature| expected.get("duplicate_leak", &of_key(signature)).unwrap();
    assert_eq!(leak(&paid).money, Some(Money { overpaid: 200, ..Money::default() }));
    assert_eq!((leak(&paid).least, leak(&paid).most), (2, 2));
    assert_eq!(leak(&paid).causes, ["split"]);
    assert_eq!(leak(&taken).money, Some(Money { overcharged: 30, ..Money::default() }));
    assert_eq!(expected.must("duplicate_leak"), 2);
}

#[test]
fn a_window_of_three_pushes_out_a_live_one_per_game() {
    let mut story = Story::new(3);
    for round in 0..3 {
        story.tell("a", &settlement(round, 5, false)).tell("a", &settlement(round, 7, true));
    }
    // The final of game 1 pushes out game 0's first, that of game 2 pushes out game 1's.
    let live = counts(&story.expected(), "live_eviction");
    assert_eq!(live, [(About::Source(from("a")), 2, 2)]);
}

#[test]
fn a_window_of_four_pushes_out_none_while_finals_are_punctual() {
    let mut story = Story::new(4);
    for round in 0..9 {
        story.tell("a", &settlement(round, 5, false)).tell("a", &settlement(round, 7, true));
    }
    assert_eq!(counts(&story.expected(), "live_eviction"), []);
}

#[test]
fn punctual_finals_after_a_late_one_need_five() {
    let mut story = Story::new(4);
    story.tell("a", &settlement(0, 5, false)).tell("a", &settlement(1, 5, false));
    story.tell("a", &settlement(0, 7, true)).tell("a", &settlement(1, 7, true));
    story.tell("a", &settlement(2, 5, false)).tell("a", &settlement(2, 7, true));
    let live = counts(&story.expected(), "live_eviction");
    assert_eq!(live, [(About::Source(from("a")), 1, 1)]);
}

#[test]
fn a_block_whose_acceptance_was_lost_is_unknowable() {
    let mut story = Story::new(4);
    let lost = settlement(1, 5, true);
    story.tell("a", &settlement(1, 5, false)).lose("a", &lost).tell("a", &lost);
    let expected = story.expected();
    assert_eq!(counts(&expected, "unverifiable_block"), [(of_key(&lost), 1, 1)]);
    assert_eq!(all(&expected, "false_block"), []);
    assert_eq!(counts(&expected, "telemetry_gap"), [(About::Source(from("a")), 1, 1)]);
}

#[test]
fn an_eviction_tells_of_the_acceptance_that_was_lost() {
    let mut story = Story::new(2);
    let lost = settlement(1, 5, true);
    story.lose("a", &lost).tell("a", &lost);
    for round in 2..4 {
        story.tell("a", &settlement(round, 5, true));
    }
    assert_eq!(all(&story.expected(), "unverifiable_block"), []);
}

#[test]
fn a_block_out_of_the_blue_is_false_where_all_was_seen() {
    let mut story = Story::new(4);
    let blocked = settlement(1, 5, true);
    story.event("a", &blocked);
    story.tell("a", &blocked);
    let expected = story.expected();
    let owed = Some(Money { underpaid: 5, ..Money::default() });
    assert_eq!(expected.get("false_block", &of_key(&blocked)).unwrap().money, owed);
    assert_eq!(all(&expected, "unverifiable_block"), []);
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
    assert_eq!(all(&expected, "false_block"), []);
    assert_eq!(counts(&expected, "unverifiable_block"), [(of_key(&blocked), 1, 1)]);
    assert_eq!(counts(&expected, "live_eviction"), [(About::Source(from("a")), 0, 1)]);
}

#[test]
fn an_eviction_while_blind_may_be_counted_or_not() {
    let mut story = Story::new(3);
    story.tell("a", &settlement(1, 5, false)).tell("a", &settlement(1, 5, true));
    story.tell("b", &settlement(1, 5, false)).lose("b", &settlement(1, 5, true));
    story.tell("a", &settlement(2, 5, false)).tell("a", &settlement(2, 5, true));
    let live = counts(&story.expected(), "live_eviction");
    assert_eq!(live, [(About::Source(from("a")), 0, 1)]);
}

#[test]
fn a_lost_acceptance_leaks_nothing_that_can_be_seen() {
    let mut story = Story::new(4);
    let twice = settlement(1, 5, true);
    story.tell("a", &twice).lose("b", &twice);
    assert_eq!(all(&story.expected(), "duplicate_leak"), []);
}

#[test]
fn a_tail_shows_only_where_a_heartbeat_told_it() {
    for (told_seq, gap) in [(None, None), (Some(1), None), (Some(3), Some(2))] {
        let mut story = Story::new(4);
        story.tell("a", &settlement(1, 5, false));
        story.lose("a", &settlement(1, 5, true)).lose("a", &settlement(2, 5, true));
        story.truth.ended(&from("a"), BOOT, told_seq);
        let gaps = counts(&story.expected(), "telemetry_gap");
        assert_eq!(gaps.first().map(|(_, least, _)| *least), gap, "{told_seq:?}");
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
    let mut missing = Vec::new();
    for kind in FaultKind::all() {
        // What was lost has to be in the windows at the end: else it falls out, and is known.
        let span = if kind == FaultKind::Crash { "265s+20s" } else { "30s+2m" };
        let fault = format!("{}@{span}", kind.as_str());
        let mut not_yet = kind.known_for().to_vec();
        for seed in 1..=3 {
            if !not_yet.is_empty() {
                let expected = expected_of(seed, &[&fault]);
                not_yet.retain(|known| expected.must(known) == 0);
            }
        }
        missing.extend(not_yet.into_iter().map(|known| format!("{fault} without {known}")));
        assert!(!kind.known_for().is_empty(), "{kind:?} never shows");
    }
    assert_eq!(missing, [] as [String; 0]);
}

#[test]
fn what_was_lost_makes_the_rest_unknowable() {
    let forgetful = expected_of(1, &["restart-empty@60s+2m"]);
    assert_eq!((forgetful.must("unverifiable_block"), forgetful.must("telemetry_gap")), (0, 0));
    let mut lossy = (1..9).map(|seed| expected_of(seed, &["lost-telemetry@255s+35s"]));
    assert!(
        lossy.any(|lossy| {
            lossy.must("unverifiable_block") > 0 && lossy.must("telemetry_gap") == 1
        })
    );
    let crashed = expected_of(1, &["crash@265s+20s"]);
    assert!(crashed.must("unverifiable_block") > 0, "{crashed:?}");
    assert_eq!(crashed.must("telemetry_gap"), 0);
}

#[test]
fn a_leak_that_was_reversed_is_made_good() {
    let (paid, back) = (settlement(1, 100, false), settlement(1, -100, false));
    let mut story = Story::new(4);
    story.book("a", &paid, "r1", None).book("b", &paid, "r1", None);
    story.book("a", &back, "r2", Some("r1"));
    assert_eq!(all(&story.expected(), "duplicate_leak"), []);
}

#[test]
fn of_what_was_undone_nothing_may_stand() {
    let (paid, back) = (settlement(1, 100, false), settlement(1, -100, false));
    let mut story = Story::new(4);
    story.book("a", &paid, "r1", None).book("a", &back, "r2", Some("r1"));
    story.book("b", &paid, "r1", None);
    let expected = story.expected();
    let leak = expected.get("duplicate_leak", &of_key(&paid)).unwrap();
    assert_eq!(leak.money, Some(Money { overpaid: 100, ..Money::default() }));
    assert_eq!((leak.least, leak.most, &leak.causes[..]), (1, 1, &["split"][..]));
}

#[test]
fn a_lower_capacity_pushes_out_several_at_once() {
    let evictions = |cap: u64| {
        let (mut story, mut truth) = (Story::new(9), Truth::default());
        let windows = [(Outcome::Processed, 4, 4), (Outcome::Evicted, 3, cap)];
        let windows = windows.into_iter().chain([(Outcome::Evicted, 2, cap)]);
        for (round, (outcome, len, cap)) in (1..).zip(windows) {
            let event = story.event("a", &settlement(round, 5, false));
            let window = Window { len, cap, scope: WindowScope::Player };
            truth.told(BOOT, &Event { outcome, window: Some(window), ..event });
        }
        truth.expected(&SETTINGS).must("window_lost")
    };
    assert_eq!((evictions(3), evictions(4)), (0, 1));
}

#[test]
fn sources_disagree_where_one_refuses_what_another_accepts_later() {
    let (mut story, settled) = (Story::new(4), settlement(1, 5, true));
    story.event("a", &settled);
    story.tell("a", &settled).tell("b", &settled);
    assert_eq!(story.expected().must("replica_disagreement"), 1);
    let mut story = Story::new(4);
    story.tell("b", &settled).tell("a", &settled).tell("a", &settled);
    assert_eq!(all(&story.expected(), "replica_disagreement"), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The world's times are such that a window of four is enough.
    #[test]
    fn healthy_services_are_healthy(seed in any::<u64>()) {
        let expected = expected_of(seed, &[]);
        let ill: Vec<_> = expected.iter().filter(|(kind, _, _)| *kind != "retry_storm").collect();
        prop_assert!(ill.is_empty(), "{ill:?}");
    }

    /// Guards that are right are never called wrong, whatever gets lost.
    #[test]
    fn losses_never_make_a_guard_wrong(seed in any::<u64>()) {
        let expected = expected_of(seed, &["lost-telemetry@50s+40s", "crash@90s+20s/1"]);
        prop_assert_eq!(all(&expected, "duplicate_leak"), []);
        prop_assert_eq!(all(&expected, "false_block"), []);
        prop_assert_eq!(expected.must("live_eviction"), 0);
        prop_assert_eq!(expected.must("window_lost"), 0);
    }
}
