//! Where an alert stands. Pure: what is seen and the present moment are handed in.

use serde::{Deserialize, Serialize};

use crate::audit::Severity;
use crate::limits::DAY_US;
use crate::store::alerts::Open;

/// How long an alert that is over is still shown.
pub const RESOLVED_SHOWN_US: i64 = DAY_US;

/// Where an alert stands. An inactive one is none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Part of what it waits for is there.
    Pending,
    /// Its rule holds.
    Firing,
    /// Its rule held.
    Resolved,
}

impl AlertState {
    /// Its name in the store, on pages and as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

/// Whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It does not.
    Quiet,
    /// It will if this goes on.
    Building,
    /// It does.
    Holds,
}

/// What is seen of a rule, service and env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// How bad.
    pub severity: Severity,
    /// Findings with a new occurrence, silent sources, rejected events, the required capacity.
    pub count: i64,
    /// Sources that are still heard, where it is about silent ones; the capacity of windows.
    #[serde(default)]
    pub others: i64,
    /// When the newest occurrence was seen; rises with each.
    pub newest_us: i64,
    /// The newest finding, a silent source, how the required capacity comes about.
    pub example: Option<String>,
    /// What is confirmed and open, by ledger.
    pub open: Vec<Open>,
    /// When it was last asked for, where that is not at every look.
    #[serde(default)]
    pub asked_us: i64,
}

/// What the receiver was told last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// When that was decided.
    pub at_us: i64,
    /// Where the alert stood.
    pub state: AlertState,
    /// What was seen.
    pub seen: Seen,
}

/// One alert: of a rule, service and env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Where it stands.
    pub state: AlertState,
    /// When it came to fire; while pending, when that began.
    pub started_us: i64,
    /// When it was over.
    pub ended_us: Option<i64>,
    /// What is seen now; of what is over, what was seen at its end.
    pub seen: Seen,
    /// What the receiver knows.
    pub told: Option<Told>,
}

impl Instance {
    /// Where an alert stands after this look; `None` if it is inactive.
    pub fn advance(was: Option<Self>, level: Level, seen: Seen, now_us: i64) -> Option<Self> {
        let state = was.as_ref().map(|was| was.state);
        let begin = |state, told| Self {
            state,
            started_us: now_us,
            ended_us: None,
            seen: seen.clone(),
            told,
        };
        match (state, level, was) {
            (Some(AlertState::Firing), Level::Holds, Some(was)) => Some(Self { seen, ..was }),
            (Some(AlertState::Firing), Level::Quiet | Level::Building, Some(was)) => {
                Some(was.resolve(seen, now_us))
            }
            (Some(AlertState::Pending), Level::Building, Some(was)) => Some(Self { seen, ..was }),
            (Some(AlertState::Resolved), Level::Quiet, Some(was)) => was.while_shown(now_us),
            (_, Level::Holds, was) => Some(begin(AlertState::Firing, was.and_then(|was| was.told))),
            (_, Level::Building, was) => {
                Some(begin(AlertState::Pending, was.and_then(|was| was.told)))
            }
            (_, Level::Quiet, _) => None,
        }
    }

    /// An alert is as bad at its end as it was; what is open is of now.
    fn resolve(self, seen: Seen, now_us: i64) -> Self {
        let seen = Seen { open: seen.open, ..self.seen };
        Self { state: AlertState::Resolved, ended_us: Some(now_us), seen, ..self }
    }

    fn while_shown(self, now_us: i64) -> Option<Self> {
        let ended_us = self.ended_us.unwrap_or(self.started_us);
        (now_us < ended_us.saturating_add(RESOLVED_SHOWN_US)).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000;

    fn seen(severity: Severity) -> Seen {
        Seen {
            severity,
            count: 1,
            others: 0,
            newest_us: 7,
            example: None,
            open: Vec::new(),
            asked_us: 0,
        }
    }

    fn told() -> Told {
        Told { at_us: 6, state: AlertState::Firing, seen: seen(Severity::Warning) }
    }

    fn instance(state: AlertState) -> Instance {
        let ended_us = (state == AlertState::Resolved).then_some(500);
        let seen = seen(Severity::Warning);
        Instance { state, started_us: 5, ended_us, seen, told: Some(told()) }
    }

    /// Every state and every look: what comes, since when, until when.
    #[test]
    fn each_transition() {
        use AlertState::{Firing, Pending, Resolved};
        use Level::{Building, Holds, Quiet};
        type Row = (Option<AlertState>, Level, Option<(AlertState, i64, Option<i64>)>);
        let table: [Row; 12] = [
            (None, Quiet, None),
            (None, Building, Some((Pending, NOW, None))),
            (None, Holds, Some((Firing, NOW, None))),
            (Some(Pending), Quiet, None),
            (Some(Pending), Building, Some((Pending, 5, None))),
            (Some(Pending), Holds, Some((Firing, NOW, None))),
            (Some(Firing), Quiet, Some((Resolved, 5, Some(NOW)))),
            (Some(Firing), Building, Some((Resolved, 5, Some(NOW)))),
            (Some(Firing), Holds, Some((Firing, 5, None))),
            (Some(Resolved), Quiet, Some((Resolved, 5, Some(500)))),
            (Some(Resolved), Building, Some((Pending, NOW, None))),
            (Some(Resolved), Holds, Some((Firing, NOW, None))),
        ];
        for (was, level, wanted) in table {
            let got = Instance::advance(was.map(instance), level, seen(Severity::Critical), NOW);
            let short = got.as_ref().map(|got| (got.state, got.started_us, got.ended_us));
            assert_eq!(short, wanted, "{was:?} {level:?}");
            if let (Some(_), Some(got)) = (was, &got) {
                assert_eq!(got.told, Some(told()), "what was told is kept: {was:?} {level:?}");
            }
        }
    }

    #[test]
    fn what_is_seen_is_of_now_and_at_the_end_of_the_last_look_but_for_what_is_open() {
        let open = vec![Open { ledger: "chips".into(), rows: 2, amounts: Default::default() }];
        let look = Seen { open: open.clone(), ..seen(Severity::Critical) };
        let firing = Some(instance(AlertState::Firing));
        let still = Instance::advance(firing.clone(), Level::Holds, look.clone(), NOW).unwrap();
        assert_eq!(still.seen, look);
        let over = Instance::advance(firing, Level::Quiet, look, NOW).unwrap();
        assert_eq!(over.seen, Seen { open, ..seen(Severity::Warning) });
    }

    #[test]
    fn what_is_over_is_shown_for_a_day() {
        let over = Some(instance(AlertState::Resolved));
        let at = |now_us| {
            Instance::advance(over.clone(), Level::Quiet, seen(Severity::Info), now_us).is_some()
        };
        assert!(at(500 + RESOLVED_SHOWN_US - 1));
        assert!(!at(500 + RESOLVED_SHOWN_US));
    }
}
