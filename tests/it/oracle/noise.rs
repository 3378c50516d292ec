//! Streams that no guard would tell: every field at random, from small alphabets, so that all of
//! it meets.

use dedupwatch::outcome::{
    Boot, Effect, Event, GuardMode, Heartbeat, Id, Net, Outcome, Reason, Signature, SourceState,
    Window, WindowScope,
};

use super::BEGIN_US;
use super::dice::Dice;
use super::guards::{id, named, settlement};
use super::stream::{Entry, Said, Stream};

/// What a source has told so far.
struct Teller {
    name: &'static str,
    boot: u64,
    seq: u64,
    watched: bool,
    counts: bool,
    mode: Option<GuardMode>,
}

/// A stream of this seed.
pub fn stream(dice: &mut Dice) -> Stream {
    let mut tellers: Vec<Teller> = ["a", "b", "c"][..dice.index(3) + 1]
        .iter()
        .map(|name| Teller {
            name,
            boot: 1,
            seq: 0,
            watched: dice.chance(75),
            counts: dice.chance(85),
            mode: *dice.pick(&[None, Some(GuardMode::Local), Some(GuardMode::Shared)]),
        })
        .collect();
    let step_us = *dice.pick(&[10_000, 600_000, 3_000_000, 20_000_000]);
    let (mut now_us, mut stream) = (BEGIN_US, Vec::new());
    for teller in &tellers {
        stream.extend(heartbeat(teller, now_us, SourceState::Running));
    }
    for _ in 0..dice.between(4, 40) {
        now_us += dice.between(1, step_us);
        let at = dice.index(tellers.len());
        if dice.chance(3) {
            let state = *dice.pick(&[SourceState::Closing, SourceState::Running]);
            stream.extend(heartbeat(&tellers[at], now_us, state));
            (tellers[at].boot, tellers[at].seq) = (tellers[at].boot + 1, 0);
        }
        let event = event(dice, &mut tellers[at], now_us);
        for teller in &tellers {
            stream.extend(heartbeat(teller, now_us, SourceState::Running));
        }
        let received_us = now_us + dice.between(0, 1_000_000);
        match event.sequence().filter(|_| dice.chance(3)) {
            Some((boot, seq)) => {
                let said = Said::Bad(event.from, boot, seq);
                stream.extend(dice.chance(50).then_some(Entry { received_us, said }));
            }
            None => stream.push(Entry { received_us, said: Said::Event(Box::new(event)) }),
        }
    }
    for teller in &tellers {
        let state = *dice.pick(&[SourceState::Closing, SourceState::Running]);
        stream.extend(heartbeat(teller, now_us + 2_000_000, state));
    }
    stream
}

fn heartbeat(teller: &Teller, now_us: i64, state: SourceState) -> Option<Entry> {
    let heartbeat = Heartbeat {
        from: named(teller.name),
        boot: Boot::Number(teller.boot),
        last_seq: teller.seq,
        at_us: now_us,
        ledgers: vec![id("settle")],
        state,
    };
    let said = Said::Heartbeat(heartbeat);
    (teller.watched && teller.counts).then_some(Entry { received_us: now_us, said })
}

fn signature(dice: &mut Dice) -> Signature {
    if dice.chance(8) {
        let key = id(dice.pick::<&str>(&["k1", "k2"]));
        return Signature::Opaque { key, net: Net(*dice.pick(&[5, 7])) };
    }
    let (room, net) = (*dice.pick(&["r", "s"]), *dice.pick(&[10, -10]));
    settlement(room, dice.below(3), net, dice.chance(30))
}

fn event(dice: &mut Dice, teller: &mut Teller, now_us: i64) -> Event {
    let outcome = *dice.pick(&[
        Outcome::Processed,
        Outcome::Processed,
        Outcome::Processed,
        Outcome::LateAccepted,
        Outcome::ReplayBlocked,
        Outcome::ReplayBlocked,
        Outcome::Evicted,
        Outcome::Unknown,
        Outcome::EffectReported,
    ]);
    let player = id(dice.pick::<&str>(&["p", "q"]));
    let signature = signature(dice);
    let mut event = Event::new(named(teller.name), player, signature, outcome);
    event.occurred_us = now_us;
    event.guard_mode = if dice.chance(5) { Some(GuardMode::Off) } else { teller.mode };
    if outcome != Outcome::EffectReported && dice.chance(60) {
        let scope = *dice.pick(&[WindowScope::Player, WindowScope::Player, WindowScope::Room]);
        event.window = Some(Window { len: dice.below(5), cap: dice.below(5), scope });
    }
    event.reason = reason(dice, outcome);
    if event.is_acceptance() {
        accepted(dice, &mut event);
    }
    told_beside(dice, &mut event);
    teller.seq += 1;
    if event.is_acceptance() && teller.seq.is_multiple_of(6) {
        event.booked_room = Some(id("s"));
    }
    if teller.counts {
        (event.boot, event.seq) = (Some(Boot::Number(teller.boot)), Some(teller.seq));
    } else {
        event.event_id = Some(id(&format!("e{}", teller.seq)));
    }
    event
}

fn reason(dice: &mut Dice, outcome: Outcome) -> Option<Reason> {
    use Reason::{
        Ack, Fifo, GuardDown, Held, InProgress, Memory, Reaper, Replay, Restart, Stale, TooOld, Ttl,
    };
    let all = [
        Replay, Stale, TooOld, InProgress, GuardDown, Held, Fifo, Ttl, Restart, Reaper, Ack, Memory,
    ];
    let fitting: Vec<Reason> = all.into_iter().filter(|reason| reason.fits(outcome)).collect();
    (!fitting.is_empty() && dice.chance(60)).then(|| *dice.pick(&fitting))
}

const EFFECTS: [Effect; 3] = [Effect::Applied, Effect::Failed, Effect::Unknown];

fn reference(dice: &mut Dice) -> Option<Id> {
    dice.chance(25).then(|| id(dice.pick::<&str>(&["x", "y"])))
}

/// What goes with other outcomes too.
fn told_beside(dice: &mut Dice, event: &mut Event) {
    match event.outcome {
        Outcome::EffectReported => {
            event.effect = Some(*dice.pick(&EFFECTS));
            event.reference = reference(dice);
        }
        Outcome::ReplayBlocked => event.reference = reference(dice),
        _ => {}
    }
    if dice.chance(25) {
        event.message_id = Some(id(dice.pick::<&str>(&["m", "n", "o"])));
    }
    if dice.chance(40) {
        event.state_version = Some(dice.below(4));
        event.state_hash = dice.chance(70).then(|| id(dice.pick::<&str>(&["h", "i"])));
    }
}

fn accepted(dice: &mut Dice, event: &mut Event) {
    event.effect = dice.chance(25).then(|| *dice.pick(&EFFECTS));
    event.reference = reference(dice);
    let undone = reference(dice).filter(|undone| event.reference.as_ref() != Some(undone));
    event.reversal_of = undone.filter(|_| dice.chance(50));
    if dice.chance(15) {
        event.evicted.push(signature(dice));
    }
}
