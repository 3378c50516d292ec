//! What happens to a fleet, step by step: deliveries, their copies, deploys and crashes. All is
//! chosen here, so that a script with steps taken out is a script again, and healthy too.

use dedupwatch::outcome::{Game, Id, Net, Signature};

use super::dice::Dice;
use super::plan::{Games, Plan};
use super::{BEGIN_US, COPY_US_MAX, SECOND_US};

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    pub at_us: i64,
    pub what: What,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum What {
    /// A settlement is delivered.
    Deliver(Delivery),
    /// A run of an instance ends, and another begins.
    Restart(Restart),
    /// Players and rooms move on to other instances.
    Rebalance(usize),
}

#[derive(Clone, Debug)]
pub struct Delivery {
    pub player: usize,
    pub signature: Signature,
    /// It may have been delivered before: whoever does not remember it is not asked.
    pub again: bool,
    /// Which instance, where it is not sticky.
    pub to: usize,
    /// How long before the lock it is stamped.
    pub stamped_before_us: i64,
    /// Of the room's state.
    pub version: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub instance: usize,
    pub goodbye: bool,
    pub away_us: i64,
    /// How much of what it had decided at last was never told.
    pub untold_us: i64,
}

/// The steps of a fleet, in order of time.
pub fn script(plan: &Plan) -> Vec<Step> {
    let mut dice = Dice::new(plan.seed ^ 0x5c21);
    let mut steps = Vec::new();
    for player in 0..plan.players {
        play(plan, &mut dice, player, &mut steps);
    }
    deploys(plan, &mut dice, &mut steps);
    steps.sort_by_key(|step| step.at_us);
    steps
}

pub fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

/// One player goes from game to game.
fn play(plan: &Plan, dice: &mut Dice, player: usize, steps: &mut Vec<Step>) {
    let pause_us = if plan.length_us > 600 * SECOND_US { 40 } else { 12 } * SECOND_US;
    let end_us = BEGIN_US + plan.length_us;
    let mut at_us = BEGIN_US + dice.between(0, pause_us);
    let mut left: Option<(String, u64)> = None;
    let mut late = plan.games == Games::Late;
    let mut room = dice.below(6);
    let mut round = 1_u64;
    while at_us < end_us {
        let game = (format!("r{room}"), round);
        let late_us = match dice.between(50_000, 3_000_000) {
            // At once, by another thread.
            late_us if plan.numbered_after_us > 0 && late_us % 2 == 0 => late_us % 10_000,
            late_us => late_us,
        };
        let final_us = dice.between(3_100_000, 4_500_000);
        settle(plan, dice, player, (&game, false), at_us, steps);
        if let Some(left) = left.take() {
            settle(plan, dice, player, (&left, true), at_us + late_us, steps);
        }
        if plan.games == Games::Mixed {
            late = dice.chance(40);
        }
        if late {
            left = Some(game);
        } else {
            settle(plan, dice, player, (&game, true), at_us + final_us, steps);
        }
        if late || dice.chance(30) {
            room = dice.below(6);
        }
        round += 1;
        at_us += dice.between(5_000_000, pause_us);
    }
}

fn settle(
    plan: &Plan,
    dice: &mut Dice,
    player: usize,
    (game, last): (&(String, u64), bool),
    at_us: i64,
    steps: &mut Vec<Step>,
) {
    let (room, round) = game;
    let game = Game { session: None, room: id(room), round: id(&round.to_string()) };
    let net = Net(dice.between(-500, 500));
    let mut deliver = |dice: &mut Dice, at_us: i64, again: bool| {
        let lag = dice.between(0, plan.stamped_before_us);
        let delivery = Delivery {
            player,
            signature: Signature::Settlement { game: game.clone(), net, last },
            again,
            to: dice.below(plan.instances),
            stamped_before_us: lag,
            version: round * 2 + u64::from(last),
        };
        steps.push(Step { at_us, what: What::Deliver(delivery) });
    };
    deliver(dice, at_us, false);
    let copies = if dice.chance(25) { dice.between(1, 3) } else { 0 };
    for _ in 0..copies {
        let after_us = dice.pick(&[30_000, 2_000_000, 20_000_000, COPY_US_MAX]);
        let after_us = dice.between(5_000, after_us);
        deliver(dice, at_us + after_us, true);
    }
}

/// Rolling deploys, crashes and scaling. Nobody restarts while the collector is away or drained:
/// what a client buffers would be lost.
fn deploys(plan: &Plan, dice: &mut Dice, steps: &mut Vec<Step>) {
    let calm = |at_us: i64| {
        plan.outage.is_none_or(|(from_us, to_us, drain_us)| {
            at_us < from_us - 40 * SECOND_US || at_us > to_us + drain_us + 60 * SECOND_US
        })
    };
    let mut at_us = BEGIN_US + SECOND_US * dice.between(5, 120);
    let end_us = BEGIN_US + plan.length_us;
    while at_us < end_us {
        let rolls = dice.chance(50);
        let goodbye = dice.chance(60);
        let first = dice.below(plan.instances);
        for instance in
            (0..if rolls { plan.instances } else { 1 }).map(|i| (first + i) % plan.instances)
        {
            let restart = Restart {
                instance,
                goodbye,
                away_us: dice.between(1_000_000, 20_000_000),
                untold_us: if goodbye || !plan.may_lose() || dice.chance(50) {
                    0
                } else {
                    dice.pick(&[2, 10, 40]) * dice.between(1, SECOND_US)
                },
            };
            if calm(at_us) {
                steps.push(Step { at_us, what: What::Restart(restart) });
            }
            at_us += SECOND_US * dice.between(2, 30);
        }
        if dice.chance(30) {
            steps.push(Step { at_us, what: What::Rebalance(dice.below(plan.instances)) });
        }
        at_us += SECOND_US * dice.between(30, 300);
    }
}
