//! `version_regression` and `torn_state`.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity, Subject};
use dedupwatch::outcome::{Effect, Event, Id, Outcome};

use super::verdict::{Verdict, Verdicts};
use super::world::{World, before};

/// So many states of a room are compared: a bound of the product.
const STATES_MAX: usize = 8;

/// The room whose state a settlement tells; some games have none.
pub fn subject(event: &Event) -> Option<Subject> {
    let game = event.signature.game().filter(|game| !game.room.as_str().is_empty())?;
    let (ledger, player) = (event.ledger(), event.player.clone());
    Some(Subject::Room { ledger, player, session: game.session.clone(), room: game.room.clone() })
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut rooms: BTreeMap<String, (Subject, Vec<&Event>)> = BTreeMap::new();
    for accepted in world.acceptances().values() {
        let firsts: Vec<&Event> = accepted
            .iter()
            .filter(|one| !accepted.iter().any(|other| before(other, one)))
            .copied()
            .collect();
        let Some(subject) = subject(accepted[0]) else { continue };
        // Where it is not known which one was the first, nothing is said.
        let [first] = firsts[..] else { continue };
        let stands = !matches!(first.effect, Some(Effect::Failed | Effect::Unknown));
        if first.outcome == Outcome::Processed && stands && first.state_version.is_some() {
            let place = format!("{subject:?}");
            rooms.entry(place).or_insert((subject, Vec::new())).1.push(first);
        }
    }
    for (subject, states) in rooms.into_values() {
        let back = states.iter().filter(|state| goes_back(&states, state)).count();
        say(verdicts, Kind::VersionRegression, &subject, back);
        say(verdicts, Kind::TornState, &subject, torn(&states));
        if states.len() > STATES_MAX {
            verdicts.unsure(Kind::TornState, &subject);
        }
    }
}

fn say(verdicts: &mut Verdicts, kind: Kind, subject: &Subject, count: usize) {
    if count > 0 {
        let verdict = Verdict::of(kind, subject, Severity::Warning);
        verdicts.key(Verdict { count: count as u64, ..verdict });
    }
}

/// Whether the version just before it was a higher one, in whatever order that is possible.
fn goes_back(states: &[&Event], state: &Event) -> bool {
    let between =
        |one: &Event| states.iter().any(|other| before(one, other) && before(other, state));
    let may_be_just_before: Vec<&&Event> = states
        .iter()
        .filter(|one| **one != state && !before(state, one) && !between(one))
        .collect();
    let may_be_first = !states.iter().any(|one| before(one, state));
    !may_be_first && may_be_just_before.iter().all(|one| one.state_version > state.state_version)
}

/// Contents of a version beyond its first.
fn torn(states: &[&Event]) -> usize {
    let mut contents: BTreeMap<Option<u64>, BTreeSet<&Id>> = BTreeMap::new();
    for state in states {
        contents.entry(state.state_version).or_default().extend(&state.state_hash);
    }
    contents.values().map(|contents| contents.len().saturating_sub(1)).sum()
}
