//! In a week of a fleet of fifty the audit has to find what guards refuse by mistake, and none of
//! the blocks that were right: with windows of the pods' own and players who stick to them, with
//! shared windows that any pod uses, and where a pod that crashed is never heard again.

use dedupwatch::audit::{Kind, Severity, State};
use dedupwatch::outcome::GuardMode;

use super::pods::Week;

#[derive(Debug, Default)]
struct Shares {
    wrong: usize,
    found: usize,
    certain: usize,
    unverifiable: usize,
    unknowable: usize,
    false_alarms: Vec<String>,
}

/// Confirmed false blocks: of those that are and of those that are not.
fn shares(week: &Week) -> Shares {
    let mut shares = Shares { wrong: week.wrong.len(), ..Shares::default() };
    for row in week.rows.values().filter(|row| row.state == State::Confirmed) {
        let key = row.player.clone().zip(row.signature.clone());
        let is_wrong = key.as_ref().is_some_and(|key| week.wrong.contains(key));
        match row.kind {
            Kind::FalseBlock if is_wrong => {
                shares.found += 1;
                shares.certain += usize::from(row.severity == Severity::Critical);
            }
            Kind::FalseBlock => shares.false_alarms.push(format!("{row:#?}")),
            Kind::UnverifiableBlock if is_wrong => shares.unverifiable += 1,
            Kind::UnverifiableBlock => shares.unknowable += 1,
            _ => {}
        }
    }
    shares
}

/// So many of 100 real false blocks were confirmed, and so many for certain.
fn week_of(mode: GuardMode, comes_back: bool) -> [usize; 2] {
    let mut week = Week::new(mode, comes_back);
    week.run();
    let shares = shares(&week);
    let unheard = week.blocks.intersection(&week.untold).count();
    let Week { events, records, made, crashes, .. } = week;
    println!(
        "{mode:?}, comes back {comes_back}: {events} events, {records} records, {made} pods, \
         {crashes} crashes, {} rightly blocked, {unheard} of what was never told; {shares:?}",
        week.blocks.len(),
    );
    assert_eq!(shares.false_alarms, Vec::<String>::new());
    assert!(crashes >= 45 && unheard >= 10 && shares.wrong >= 180, "not much of a week");
    [shares.found, shares.certain].map(|share| share * 100 / shares.wrong)
}

#[test]
fn a_week_of_private_windows() {
    let [found, certain] = week_of(GuardMode::Local, true);
    assert!(found >= 97 && certain >= 97, "{found} {certain}");
}

#[test]
fn a_week_of_shared_windows() {
    let [found, certain] = week_of(GuardMode::Shared, true);
    assert!(found >= 88 && certain >= 88, "{found} {certain}");
}

#[test]
fn a_week_of_pods_that_never_come_back() {
    let [found, _] = week_of(GuardMode::Shared, false);
    assert!(found >= 45, "{found}");
}
