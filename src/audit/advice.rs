//! How long the windows of a service have to be, by all that was measured, and why: the window
//! advisor's memory, one for each service and env.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The advice looks back so far: play repeats by the week, and a need of months ago is none.
pub const DAYS: usize = 7;
const DAY_US: i64 = 86_400_000_000;
const MINUTE_US: i64 = 60_000_000;
/// Capacities of so many minutes say what holds now: rolling deploys are over by then.
const CAPACITY_MINUTES: i64 = 15;
/// Twice as many are kept: times of several sources are not in order.
const MINUTES_KEPT: usize = 30;
/// Needs that may wait at a time until nothing can come that disproves them. Each is higher than
/// any before it, so more would say nothing new.
pub(super) const WAITING_MAX: u32 = 32;

/// Upper bounds of the replay distances; beyond is further back than is remembered.
pub const DISTANCES: [u64; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15];
/// Upper bounds of the times by which acceptances come late, in seconds: from the next game to
/// the next evening.
pub const LATE_SECONDS: [u64; 12] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 3_600, 14_400];
/// Upper bounds of the games by which acceptances come late.
pub const LATE_GAMES: [u64; 6] = [0, 1, 2, 3, 4, 6];

/// Why a capacity is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// So many signatures were accepted from the oldest live one on.
    Live {
        /// Settlements of one live game, at most.
        settlements: u64,
        /// Live games.
        games: u64,
        /// By how many games one of the others was late, if any was.
        late: u64,
    },
    /// A replay came after so many others.
    Replay {
        /// Other signatures accepted in between.
        others: u64,
        /// It was booked again.
        leaked: bool,
    },
}

/// One capacity that was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// In signatures.
    pub capacity: u64,
    /// It is more than that: further back than is remembered.
    pub more: bool,
    /// Why.
    pub why: Why,
}

/// What was measured on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Day {
    need: Option<Need>,
    /// Replays of games no longer live that were blocked.
    not_live: u64,
    /// Those of them that stood in the last place of their window.
    lucky: u64,
    /// The longest window that had one in its last place.
    lucky_capacity: u64,
    late_games: u64,
}

/// What is known of the windows of a service in an env.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// The smallest capacity by minute.
    capacities: BTreeMap<i64, u64>,
    days: BTreeMap<i64, Day>,
    /// Receipt when what it says last became worse.
    pub worse_us: i64,
    /// Needs that wait to be sure.
    pub(super) waiting: u32,
}

/// How many were measured: not cumulative, the last place is beyond all bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// By bound.
    pub counts: Vec<u64>,
    /// The sum of all.
    pub sum: u64,
}

/// What was measured in a minute, or since a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// By [`DISTANCES`].
    pub distances: Histogram,
    /// By [`LATE_SECONDS`]; the sum is in microseconds.
    pub late_us: Histogram,
    /// By [`LATE_GAMES`].
    pub late_games: Histogram,
}

impl Histogram {
    fn observe(&mut self, bounds: &[u64], value: u64, beyond: bool, add: u64) {
        self.counts.resize(bounds.len() + 1, 0);
        let within = bounds.partition_point(|upper| *upper < value);
        let place = if beyond { bounds.len() } else { within };
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        self.sum = self.sum.saturating_add(add);
    }

    /// Adds another one of the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Measured {
    /// A replay, after so many others; `more`: or further back.
    pub(super) fn replay(&mut self, others: u64, more: bool) {
        self.distances.observe(&DISTANCES, others, more, others);
    }

    /// A late acceptance.
    pub(super) fn late(&mut self, late_us: u64, games: u64) {
        let seconds = late_us.div_ceil(1_000_000);
        self.late_us.observe(&LATE_SECONDS, seconds, false, late_us);
        self.late_games.observe(&LATE_GAMES, games, false, games);
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.distances.add(&other.distances);
        self.late_us.add(&other.late_us);
        self.late_games.add(&other.late_games);
    }
}

impl Advice {
    pub(super) fn new(service: &str, env: &str) -> Self {
        Self { service: service.to_owned(), env: env.to_owned(), ..Self::default() }
    }

    /// Takes the capacity that a window is told to have. Returns whether that is news.
    pub(super) fn hear_capacity(&mut self, at_us: i64, capacity: u64) -> bool {
        let minute = at_us.div_euclid(MINUTE_US);
        if self.capacities.get(&minute).is_some_and(|known| *known <= capacity) {
            return false;
        }
        self.capacities.insert(minute, capacity);
        while self.capacities.len() > MINUTES_KEPT {
            self.capacities.pop_first();
        }
        true
    }

    fn day(&mut self, at_us: i64) -> &mut Day {
        while self.days.len() > DAYS {
            self.days.pop_first();
        }
        self.days.entry(at_us.div_euclid(DAY_US)).or_default()
    }

    /// Whether a capacity is more than was needed on that day.
    pub(super) fn is_new(&self, at_us: i64, capacity: u64) -> bool {
        let known = self.days.get(&at_us.div_euclid(DAY_US)).and_then(|day| day.need);
        known.is_none_or(|need| need.capacity < capacity)
    }

    /// Takes a need.
    pub(super) fn need(&mut self, at_us: i64, need: Need, received_us: i64) {
        let was = self.required().map(|need| (need.capacity, need.more));
        let day = self.day(at_us);
        // Of two equal ones any would do; which one is kept does not depend on who came first.
        let rank = |need: &Need| {
            let why = match need.why {
                Why::Live { settlements, games, late } => (1, settlements, games, late),
                Why::Replay { others, leaked } => (0, others, u64::from(leaked), 0),
            };
            (need.capacity, need.more, why)
        };
        if day.need.is_none_or(|known| rank(&known) < rank(&need)) {
            day.need = Some(need);
        }
        if self.required().map(|need| (need.capacity, need.more)) > was {
            self.worse_us = received_us;
        }
    }

    /// Takes a blocked replay of a game that is no longer live. `places_left`: how many more
    /// acceptances it would have stood.
    pub(super) fn not_live(&mut self, at_us: i64, last_of: Option<u64>, received_us: i64) {
        let day = self.day(at_us);
        day.not_live = day.not_live.saturating_add(1);
        if let Some(capacity) = last_of {
            day.lucky = day.lucky.saturating_add(1);
            day.lucky_capacity = day.lucky_capacity.max(capacity);
            self.worse_us = received_us;
        }
    }

    /// Takes a late acceptance.
    pub(super) fn late(&mut self, at_us: i64, games: u64) -> bool {
        let day = self.day(at_us);
        let news = games > day.late_games;
        day.late_games = day.late_games.max(games);
        news
    }

    fn days(&self) -> impl Iterator<Item = &Day> {
        let newest = self.days.last_key_value().map_or(0, |(day, _)| *day);
        let kept = self.days.range(newest.saturating_sub(DAYS as i64 - 1)..);
        kept.map(|(_, day)| day)
    }

    /// The required capacity of the last [`DAYS`]; `None` while nothing was measured.
    pub fn required(&self) -> Option<Need> {
        self.days().filter_map(|day| day.need).max_by_key(|need| (need.capacity, need.more))
    }

    /// The smallest capacity that windows have now; `None` where no guard tells.
    pub fn capacity(&self) -> Option<u64> {
        let (newest, _) = self.capacities.last_key_value()?;
        let now = self.capacities.range(newest.saturating_sub(CAPACITY_MINUTES - 1)..);
        now.map(|(_, capacity)| *capacity).min()
    }

    /// By how many games acceptances came late, at most.
    pub fn late_games(&self) -> u64 {
        self.days().map(|day| day.late_games).max().unwrap_or(0)
    }

    /// Blocked replays of games no longer live, and those of them that stood in the last place of
    /// their window.
    pub fn caught(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), day: &Day| {
            (sum.0.saturating_add(day.not_live), sum.1.saturating_add(day.lucky))
        };
        self.days().fold((0, 0), add)
    }

    /// Whether the windows are too short, as far as they were put to the test.
    pub fn is_too_small(&self) -> bool {
        let needs_more = |capacity| {
            self.required().is_some_and(|need| {
                need.capacity > capacity || (need.more && need.capacity >= capacity)
            })
        };
        self.capacity().is_some_and(|capacity| needs_more(capacity) || self.is_lucky(capacity))
    }

    /// Whether a replay was caught that one acceptance more would have let through. Only in the
    /// last place is that luck: short of it the window holds what it is not asked to hold, and a
    /// healthy one does so all the time.
    fn is_lucky(&self, capacity: u64) -> bool {
        self.days().any(|day| day.lucky > 0 && day.lucky_capacity >= capacity)
    }

    /// How the required capacity comes about, in words.
    pub fn derivation(&self) -> String {
        let Some(need) = self.required() else {
            return "Nothing was measured yet.".into();
        };
        let needed = if need.more {
            format!("more than {}", need.capacity)
        } else {
            need.capacity.to_string()
        };
        let mut text = format!("{}: {needed} needed", why(need));
        match self.capacity() {
            Some(capacity) => {
                text.push_str(&format!(", capacity {capacity}."));
                if self.is_lucky(capacity) {
                    text.push_str(
                        " A replay of a game that was over was caught in the last place of its \
                         window: by luck.",
                    );
                }
            }
            None => text.push_str("; no guard tells its capacity."),
        }
        text
    }
}

fn why(need: Need) -> String {
    match need.why {
        Why::Replay { others, leaked } => format!(
            "a replay came after {}{} and was {}",
            if need.more { "more than " } else { "" },
            counted(others, "other settlement"),
            if leaked { "booked again" } else { "caught" },
        ),
        Why::Live { settlements, games, late } => {
            let usual = settlements.saturating_mul(games);
            let of_games =
                format!("{} x {}", counted(settlements, "settlement"), counted(games, "game"));
            match (need.capacity.cmp(&usual), late) {
                (std::cmp::Ordering::Less, _) => {
                    format!("at most {} of live games at a time", settled(need.capacity))
                }
                (std::cmp::Ordering::Equal, _) => format!("{of_games} = {usual}"),
                (_, 0) => {
                    let others = counted(need.capacity - usual, "other settlement");
                    format!("{of_games} = {usual}, but {others} came in between")
                }
                (_, late) => format!(
                    "{of_games} = {usual}, but finals came up to {} late",
                    counted(late, "game")
                ),
            }
        }
    }
}

fn settled(count: u64) -> String {
    counted(count, "settlement")
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_of_the_newest_minutes_are_kept() {
        let mut advice = Advice::new("settle", "prod");
        for minute in (0..40).rev() {
            advice.hear_capacity(minute * MINUTE_US, 100 - minute.unsigned_abs());
            advice.hear_capacity(minute * MINUTE_US, 200);
        }
        let kept: Vec<i64> = advice.capacities.keys().copied().collect();
        assert_eq!(kept, (10..40).collect::<Vec<i64>>());
        assert_eq!(advice.capacity(), Some(61), "the smallest of the last 15 minutes");
    }

    #[test]
    fn it_is_worse_only_when_more_is_needed() {
        let mut advice = Advice::new("settle", "prod");
        let mut worse = Vec::new();
        for (received_us, capacity) in [(10, 4), (20, 3), (30, 4), (40, 5)] {
            let why = Why::Replay { others: capacity - 1, leaked: false };
            advice.need(0, Need { capacity, more: false, why }, received_us);
            worse.push(advice.worse_us);
        }
        assert_eq!(worse, [10, 10, 10, 40]);
    }

    #[test]
    fn the_newest_days_are_kept_and_an_older_one_may_still_be_told() {
        let mut advice = Advice::new("settle", "prod");
        for day in 0..DAYS as i64 {
            assert!(advice.late(day * DAY_US, 9 - day.unsigned_abs()));
        }
        assert_eq!(advice.late_games(), 9);
        assert!(!advice.late(3 * DAY_US, 1));
        assert_eq!(advice.late_games(), 9, "the first day is one of the last seven");
        advice.late(DAYS as i64 * DAY_US, 1);
        assert_eq!(advice.late_games(), 8, "the first day is too old");
        for day in 8..100 {
            advice.late(day * DAY_US, 1);
        }
        assert!(advice.days.len() <= DAYS + 1);
    }

    #[test]
    fn only_what_is_more_than_known_of_its_day_is_news() {
        let mut advice = Advice::new("settle", "prod");
        assert!(advice.is_new(0, 1));
        let why = Why::Replay { others: 3, leaked: false };
        advice.need(0, Need { capacity: 4, more: false, why }, 1);
        let news = [3, 4, 5].map(|capacity| advice.is_new(0, capacity));
        assert_eq!(news, [false, false, true]);
        assert!(advice.is_new(DAY_US, 1), "of another day");

        let news = [0, 2, 2, 1, 3].map(|games| advice.late(0, games));
        assert_eq!(news, [false, true, false, false, true]);
    }

    #[test]
    fn of_equal_needs_the_same_one_is_kept_whatever_the_order() {
        let live = |late| Why::Live { settlements: 2, games: 2, late };
        let needs = [
            Need { capacity: 4, more: false, why: Why::Replay { others: 3, leaked: false } },
            Need { capacity: 4, more: false, why: Why::Replay { others: 3, leaked: true } },
            Need { capacity: 4, more: false, why: live(0) },
            Need { capacity: 4, more: false, why: live(1) },
            Need { capacity: 4, more: true, why: Why::Replay { others: 3, leaked: false } },
            Need { capacity: 5, more: false, why: Why::Replay { others: 4, leaked: false } },
        ];
        for (n, more) in needs.iter().enumerate() {
            for less in needs.iter().take(n) {
                for order in [[less, more], [more, less]] {
                    let mut advice = Advice::new("settle", "prod");
                    order.iter().for_each(|need| advice.need(0, **need, 1));
                    assert_eq!(advice.required(), Some(*more));
                }
            }
        }
    }

    #[test]
    fn capacities_of_the_last_quarter_of_an_hour_hold_now() {
        let mut advice = Advice::new("settle", "prod");
        advice.hear_capacity(100 * MINUTE_US, 4);
        advice.hear_capacity(101 * MINUTE_US, 8);
        for (minute, capacity) in [(114, Some(4)), (115, Some(8)), (131, Some(16))] {
            advice.hear_capacity(minute * MINUTE_US, 16);
            assert_eq!(advice.capacity(), capacity, "{minute}");
        }
    }

    #[test]
    fn luck_is_of_a_window_no_longer_than_those_of_now() {
        for (lucky, now, is_lucky) in [(None, 4, false), (Some(4), 4, true), (Some(4), 5, false)] {
            let mut advice = Advice::new("settle", "prod");
            advice.hear_capacity(0, now);
            advice.not_live(0, lucky, 7);
            assert_eq!(advice.is_too_small(), is_lucky, "{lucky:?} {now}");
            assert_eq!(advice.worse_us, if lucky.is_some() { 7 } else { 0 });
            assert_eq!(advice.caught(), (1, u64::from(lucky.is_some())));
        }
        let mut advice = Advice::new("settle", "prod");
        advice.hear_capacity(0, 0);
        assert!(!advice.is_too_small(), "nothing was caught");
    }

    #[test]
    fn lateness_is_counted_by_begun_seconds() {
        let mut measured = Measured::default();
        for late_us in [1, 1_000_000, 1_000_001, 14_400_000_001] {
            measured.late(late_us, 1);
        }
        assert_eq!(measured.late_us.counts.iter().take(3).copied().collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(measured.late_us.counts.last(), Some(&1), "beyond all bounds");
        assert_eq!((measured.late_us.total(), measured.late_us.sum), (4, 14_402_000_003));
    }

    fn advice(need: Need, capacity: u64) -> Advice {
        let mut advice = Advice::new("settle", "prod");
        advice.need(0, need, 1);
        advice.hear_capacity(0, capacity);
        advice
    }

    #[test]
    fn it_warns_beyond_the_capacity_and_at_it_where_more_may_be_needed() {
        let why = Why::Replay { others: 3, leaked: false };
        for (capacity, more, warns) in [
            (3, false, true),
            (4, false, false),
            (3, true, true),
            (4, true, true),
            (5, true, false),
        ] {
            let advice = advice(Need { capacity: 4, more, why }, capacity);
            assert_eq!(advice.is_too_small(), warns, "{capacity} {more}");
        }
    }

    #[test]
    fn says_how_the_required_capacity_comes_about() {
        let live = |settlements, games, late| Why::Live { settlements, games, late };
        let replay = |others, leaked| Why::Replay { others, leaked };
        for (capacity, more, why, text) in [
            (4, false, live(2, 2, 0), "2 settlements x 2 games = 4: 4 needed, capacity 4."),
            (3, false, live(2, 2, 0), "at most 3 settlements of live games at a time: 3 needed"),
            (1, false, live(2, 1, 0), "at most 1 settlement of live games at a time: 1 needed"),
            (6, false, live(2, 2, 0), "4, but 2 other settlements came in between: 6 needed"),
            (5, false, live(2, 2, 2), "4, but finals came up to 2 games late: 5 needed"),
            (2, false, replay(1, true), "a replay came after 1 other settlement and was booked ag"),
            (9, true, replay(8, false), "after more than 8 other settlements and was caught: more"),
        ] {
            let derivation = advice(Need { capacity, more, why }, 4).derivation();
            assert!(derivation.contains(text), "{derivation}");
        }
    }

    #[test]
    fn a_need_of_last_week_is_none() {
        let why = Why::Replay { others: 8, leaked: false };
        for (day, required) in [(6, 9), (7, 2), (70, 2)] {
            let mut advice = advice(Need { capacity: 9, more: false, why }, 4);
            advice.need(day * DAY_US, Need { capacity: 2, more: false, why }, 1);
            assert_eq!(advice.required().map(|need| need.capacity), Some(required), "{day}");
        }
    }
}
