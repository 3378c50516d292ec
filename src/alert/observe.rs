//! Looks at the world for each rule: what the judge found, who is silent, who is rejected.

use std::collections::{BTreeMap, BTreeSet};

use super::key::Key;
use super::rule::{RECENT_US, Rule, SILENT_US, severity_of};
use super::state::{AlertState, Instance, Level, Seen};
use crate::audit::Severity;
use crate::limits::MINUTE_US;
use crate::metrics::{RejectRun, RejectRuns, SLICES};
use crate::store::StoreError;
use crate::store::alerts::AlertTransaction;

/// The alerts that are not inactive.
pub(super) type Alerts = BTreeMap<Key, Instance>;
/// What is seen, by alert.
pub(super) type Look = BTreeMap<Key, (Level, Seen)>;

/// What is told of a firing alert is at most this old: the 15 minutes that it counts go on though
/// nothing changes.
const ASK_EVERY_US: i64 = MINUTE_US;

/// A source that sends no heartbeats is heard for this long after a push: as watched ones are.
const HEARD_US: i64 = MINUTE_US;

/// One look for all rules: whatever is not in it is quiet and inactive. Also returns the newest
/// change of a finding that it read.
pub(super) async fn look(
    transaction: &mut AlertTransaction<'_>,
    alerts: &Alerts,
    rejects: &RejectRuns,
    now_us: i64,
) -> Result<(Look, Option<i64>), StoreError> {
    let mut look = Look::new();
    let newest = look_at_findings(transaction, alerts, &mut look, now_us).await?;
    look_at_silence(transaction, &mut look, now_us).await?;
    look_at_rejects(alerts, rejects, &mut look);
    look_at_windows(transaction, &mut look).await?;
    for (key, alert) in alerts {
        look.entry(key.clone()).or_insert_with(|| (Level::Quiet, alert.seen.clone()));
    }
    Ok((look, newest))
}

/// Asks only where findings changed, the time of an alert may be up, or it was not asked for a
/// while: else what was seen is still so.
async fn look_at_findings(
    transaction: &mut AlertTransaction<'_>,
    alerts: &Alerts,
    look: &mut Look,
    now_us: i64,
) -> Result<Option<i64>, StoreError> {
    let changes = transaction.changed().await?;
    let changed = changes.of.into_iter().filter_map(|(kind, service, env)| {
        Rule::of_kind(&kind).map(|rule| Key { rule, service, env })
    });
    let mut asked: BTreeSet<Key> = changed.collect();
    for (key, alert) in alerts {
        if key.rule.kind().is_none() || alert.state != AlertState::Firing {
            continue;
        }
        let may_be_over_us = alert.seen.newest_us.saturating_add(RECENT_US);
        if now_us >= may_be_over_us.min(alert.seen.asked_us.saturating_add(ASK_EVERY_US)) {
            asked.insert(key.clone());
        } else {
            look.insert(key.clone(), (Level::Holds, alert.seen.clone()));
        }
    }
    for key in asked {
        let Some(kind) = key.rule.kind() else { continue };
        let (kind, service, env) = (kind.as_str(), key.service.as_str(), key.env.as_str());
        let recent = transaction.recent(kind, service, env, now_us - RECENT_US).await?;
        let open = transaction.open(kind, service, env).await?;
        let severity = severity_of(recent.severity);
        let holds = recent.rows > 0 && severity >= key.rule.least();
        let level = if holds { Level::Holds } else { Level::Quiet };
        let seen = Seen {
            severity,
            count: recent.rows,
            others: 0,
            newest_us: recent.gained_us,
            example: recent.finding,
            open,
            asked_us: now_us,
        };
        look.insert(key, (level, seen));
    }
    Ok(changes.newest)
}

async fn look_at_silence(
    transaction: &mut AlertTransaction<'_>,
    look: &mut Look,
    now_us: i64,
) -> Result<(), StoreError> {
    for silent in transaction.silent_sources(now_us - SILENT_US, now_us - HEARD_US).await? {
        let last = silent.heard == 0;
        let seen = Seen {
            severity: if last { Severity::Critical } else { Severity::Warning },
            count: silent.silent,
            others: silent.heard,
            newest_us: silent.last_word_us,
            example: Some(silent.example),
            open: Vec::new(),
            asked_us: 0,
        };
        let key = Key { rule: Rule::SourceSilent, service: silent.service, env: silent.env };
        look.insert(key, (Level::Holds, seen));
    }
    Ok(())
}

/// What the advisor says holds until windows are larger, or a week went by without the need.
async fn look_at_windows(
    transaction: &mut AlertTransaction<'_>,
    look: &mut Look,
) -> Result<(), StoreError> {
    for advice in transaction.advice().await? {
        if !advice.is_too_small() {
            continue;
        }
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let seen = Seen {
            severity: Severity::Warning,
            count: count(advice.required().map_or(0, |need| need.capacity)),
            others: count(advice.capacity().unwrap_or(0)),
            newest_us: advice.worse_us,
            example: Some(advice.derivation()),
            open: Vec::new(),
            asked_us: 0,
        };
        let rule = Rule::WindowTooSmall;
        look.insert(Key { rule, service: advice.service, env: advice.env }, (Level::Holds, seen));
    }
    Ok(())
}

fn look_at_rejects(alerts: &Alerts, rejects: &RejectRuns, look: &mut Look) {
    let rule = Rule::RejectedOutcomes;
    for ((service, env), run) in &rejects.runs {
        let level = if run.slices >= SLICES { Level::Holds } else { Level::Building };
        let key = Key { rule, service: service.clone(), env: env.clone() };
        look.insert(key, (level, seen_rejects(*run)));
    }
    // In the first minute after a start nobody knows whether it still holds.
    let firing = alerts.iter().filter(|(_, alert)| alert.state == AlertState::Firing);
    for (key, alert) in firing.filter(|(key, _)| key.rule == rule && !rejects.known) {
        look.insert(key.clone(), (Level::Holds, alert.seen.clone()));
    }
}

/// That rejects go on is nothing new; so the time of the newest never rises.
fn seen_rejects(run: RejectRun) -> Seen {
    Seen {
        severity: Severity::Warning,
        count: run.events.try_into().unwrap_or(i64::MAX),
        others: 0,
        newest_us: 0,
        example: None,
        open: Vec::new(),
        asked_us: 0,
    }
}
