//! `counter_wrap`.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity, Subject};
use dedupwatch::outcome::{Effect, Event, Outcome};

use super::verdict::{Verdict, Verdicts};
use super::world::{World, before};

/// A counter of fewer states is none that goes round: 3 or 7 are versions like others.
const LEAST: u64 = 255;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut rooms: BTreeMap<String, (Subject, Vec<&Event>)> = BTreeMap::new();
    for (key, accepted) in world.acceptances() {
        let [first] = accepted[..] else { continue };
        let stands = !matches!(first.effect, Some(Effect::Failed | Effect::Unknown));
        let Some(game) = first.signature.game().filter(|_| stands) else { continue };
        if first.outcome == Outcome::Processed && first.state_version.is_some() {
            let (session, room) = (game.session.clone(), game.room.clone());
            let subject = Subject::Room { ledger: key.ledger, player: key.player, session, room };
            rooms.entry(format!("{subject:?}")).or_insert((subject, Vec::new())).1.push(first);
        }
    }
    for (subject, states) in rooms.into_values() {
        let runs = states.iter().flat_map(|state| world.sources[&state.from].runs.values());
        if runs.into_iter().any(|run| run.out_of_order) {
            verdicts.unsure(Kind::CounterWrap, &subject);
        }
        let count = states.iter().filter(|state| went_round(&states, state)).count() as u64;
        if count > 0 {
            let verdict = Verdict::of(Kind::CounterWrap, &subject, Severity::Info);
            verdicts.key(Verdict { count, ..verdict });
        }
    }
}

/// Whether the version fell from a limit, whichever state was just before it.
fn went_round(states: &[&Event], state: &Event) -> bool {
    let between = |one: &Event| states.iter().any(|it| before(one, it) && before(it, state));
    let just_before =
        states.iter().filter(|one| **one != state && !before(state, one) && !between(one));
    let versions: Vec<u64> = just_before.filter_map(|one| one.state_version).collect();
    let is_limit = |version: u64| version >= LEAST && (u128::from(version) + 1).is_power_of_two();
    let has_one_before = states.iter().any(|one| before(one, state));
    has_one_before
        && versions.iter().all(|version| Some(*version) > state.state_version)
        && versions.into_iter().all(is_limit)
}
