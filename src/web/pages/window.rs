//! A section of a service's page: how long its windows have to be, and what that was measured by.

use super::lines;
use crate::audit::{Advice, DISTANCES, Histogram, LATE_GAMES, LATE_SECONDS, Measured};
use crate::limits::SECOND_US;
use crate::web::format::{number, span};

/// The windows of a service in one env.
pub(super) struct WindowSection {
    /// Tells the sections apart.
    pub(super) env: String,
    pub(super) service: String,
    /// In signatures; `more than 7` where it is further back than is remembered.
    pub(super) required: Option<String>,
    pub(super) capacity: Option<String>,
    pub(super) too_small: bool,
    pub(super) derivation: String,
    pub(super) late_games: String,
    pub(super) is_late: bool,
    /// Replays of games that were over.
    pub(super) caught: String,
    pub(super) lucky: Option<String>,
    pub(super) charts: [Bars; 3],
}

/// A histogram: a bar for each row.
pub(super) struct Bars {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// What a row says.
    pub(super) unit: &'static str,
    pub(super) total: String,
    pub(super) rows: Vec<Bar>,
}

/// One row.
pub(super) struct Bar {
    pub(super) label: String,
    /// In hundredths of the longest.
    pub(super) length: u64,
    pub(super) count: String,
    /// What is to be said of it beside the number.
    pub(super) mark: Option<&'static str>,
    /// It lies beyond what the window holds.
    pub(super) beyond: bool,
}

/// The section of what was advised and measured.
pub(super) fn section(advice: &Advice, measured: &Measured) -> WindowSection {
    let capacity = advice.capacity();
    let (caught, lucky) = advice.caught();
    WindowSection {
        env: advice.env.clone(),
        service: lines::service(&advice.service, &advice.env),
        required: advice.required().map(|need| match need.more {
            true => format!("more than {}", number(need.capacity)),
            false => number(need.capacity),
        }),
        capacity: capacity.map(number),
        too_small: advice.is_too_small(),
        derivation: advice.derivation(),
        late_games: number(advice.late_games()),
        is_late: advice.late_games() > 0,
        caught: number(caught),
        lucky: (lucky > 0).then(|| number(lucky)),
        charts: [distances(measured, capacity), late(measured), late_games(measured)],
    }
}

fn distances(measured: &Measured, capacity: Option<u64>) -> Bars {
    let label = |upper: Option<u64>, from: u64| match upper {
        Some(upper) if upper == from => number(upper),
        Some(upper) => format!("{from} to {upper}"),
        None => "more than is remembered".into(),
    };
    let mut rows = bars(&measured.distances, &DISTANCES, capacity.unwrap_or(0), label);
    for (row, upper) in rows.iter_mut().zip(DISTANCES.iter().map(Some).chain([None])) {
        let place = upper.map(|upper| upper.saturating_add(1));
        row.beyond = capacity.is_some_and(|capacity| place.is_none_or(|place| place > capacity));
        row.mark = match place.zip(capacity) {
            Some((place, capacity)) if place == capacity => Some("last place of the window"),
            _ => None,
        };
    }
    Bars {
        name: "How far back replays were",
        about: "Other settlements accepted between a settlement and its replay.",
        unit: "Others in between",
        total: number(measured.distances.total()),
        rows,
    }
}

fn late(measured: &Measured) -> Bars {
    let seconds = |s: u64| span(i64::try_from(s).unwrap_or(i64::MAX).saturating_mul(SECOND_US));
    let label = |upper: Option<u64>, from: u64| match upper {
        Some(upper) => format!("up to {}", seconds(upper)),
        None => format!("over {}", seconds(from.saturating_sub(1))),
    };
    Bars {
        name: "How late acceptances came",
        about: "From the first acceptance of the game to the late one.",
        unit: "Time",
        total: number(measured.late_us.total()),
        rows: bars(&measured.late_us, &LATE_SECONDS, 0, label),
    }
}

fn late_games(measured: &Measured) -> Bars {
    let label = |upper: Option<u64>, from: u64| match upper {
        Some(upper) if upper == from => number(upper),
        Some(upper) => format!("{from} to {upper}"),
        None => format!("{from} or more"),
    };
    Bars {
        name: "How many games late",
        about: "Games of the player that had begun since.",
        unit: "Games",
        total: number(measured.late_games.total()),
        rows: bars(&measured.late_games, &LATE_GAMES, 0, label),
    }
}

/// The rows up to the last one with a count, and at least so many.
fn bars(
    histogram: &Histogram,
    bounds: &[u64],
    least: u64,
    label: impl Fn(Option<u64>, u64) -> String,
) -> Vec<Bar> {
    let longest = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let last = histogram.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let shown = last.max(usize::try_from(least).unwrap_or(usize::MAX)).min(bounds.len() + 1);
    let uppers = bounds.iter().copied().map(Some).chain([None]);
    let mut rows = Vec::new();
    let mut from = 0;
    for (place, upper) in uppers.enumerate().take(shown) {
        let count = histogram.counts.get(place).copied().unwrap_or(0);
        let length = u128::from(count) * 100 / u128::from(longest);
        let length = u64::try_from(length).unwrap_or(100).max(u64::from(count > 0));
        let (label, count) = (label(upper, from), number(count));
        rows.push(Bar { label, length, count, mark: None, beyond: false });
        from = upper.map_or(from, |upper| upper.saturating_add(1));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let mut measured = Measured::default();
        measured.distances.counts = vec![0; DISTANCES.len() + 1];
        measured.distances.counts[1] = 400;
        measured.distances.counts[4] = 1;
        measured
    }

    #[test]
    fn distances_are_shown_against_the_capacity() {
        let bars = distances(&measured(), Some(4));
        let rows: Vec<_> =
            bars.rows.iter().map(|row| (&*row.label, row.length, row.beyond)).collect();
        let wanted =
            [("0", 0, false), ("1", 100, false), ("2", 0, false), ("3", 0, false), ("4", 1, true)];
        assert_eq!(rows, wanted);
        assert_eq!(bars.rows[3].mark, Some("last place of the window"));
        assert_eq!(distances(&Measured::default(), Some(4)).rows.len(), 4, "empty ones too");
        assert_eq!(distances(&Measured::default(), None).rows.len(), 0);
    }

    #[test]
    fn the_last_row_says_what_lies_beyond() {
        let mut measured = Measured::default();
        measured.late_us.counts = vec![1; LATE_SECONDS.len() + 1];
        let labels: Vec<_> = late(&measured).rows.into_iter().map(|row| row.label).collect();
        assert_eq!(labels.first().map(String::as_str), Some("up to 1 s"));
        assert!(labels.last().unwrap().starts_with("over "), "{labels:?}");
    }
}
