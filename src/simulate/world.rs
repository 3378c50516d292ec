//! Players, rooms and the messages between rooms and wallets: what is delivered, and when.
//!
//! Two sorts of players. *Stayers* play round after round in one room and get each final before
//! the next round is settled. *Hoppers* leave early after each game, are settled in the next room
//! first, and the final of the room just left comes late. A player does not change sorts: the
//! first punctual pair of settlements after a late final needs a fifth place in the window (see
//! `guard`), and healthy services shall be healthy.
//!
//! Each message arrives once, and sometimes again: the network sends it twice, each hop on the
//! way retries, or a queue goes back to its last checkpoint after a failover and delivers all
//! since then again. Times are such that a copy comes at most four acceptances later: what a
//! window of four must block. `tests` has the proof by many seeds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::outcome::{Game, Id, IdError, Net, Signature};

/// From one game of a player to the next.
const GAME_US: Range<i64> = 10_000_000..12_000_000;
/// From the immediate settlement of a stayer to the final.
const FINAL_US: Range<i64> = 2_500_000..3_500_000;
/// From the next immediate settlement of a hopper to the final of the room just left.
const LATE_FINAL_US: Range<i64> = 1_500_000..2_500_000;
/// Between leaving a room and the first settlement in the next one, beyond a game's time.
const BREAK_US: Range<i64> = 0..20_000_000;
/// How much later the network delivers a copy.
const COPY_US: Range<i64> = 5_000..3_000_000;
/// How far a queue goes back after a failover: often over four settlements of a player, never
/// over five. Those are 2 x 10 s - 1 s apart at least (from one final to the second next), and
/// 2.5 s of it may pass while a source restarts and the queue comes back.
const CHECKPOINT_US: i64 = 16_500_000;
/// Between two failovers of a service.
const FAILOVER_US: Range<i64> = 40_000_000..80_000_000;
/// Between two messages of a replayed queue.
const REPLAY_STEP_US: i64 = 500;
/// Hops between room and wallet that each try twice.
const HOPS: u32 = 3;
/// Rooms of a service.
const ROOMS: u32 = 40;

/// One message that reaches a wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub at_us: i64,
    /// Of which service.
    pub service: usize,
    /// Whose money, counted within the service.
    pub player: usize,
    /// Which settlement.
    pub signature: Signature,
    /// The trace that all its deliveries belong to.
    pub trace: u128,
    /// Whether it was delivered before.
    pub is_copy: bool,
    /// The trace of the booking that it undoes.
    pub undoes: Option<u128>,
    /// Whether it goes astray to the other source.
    pub astray: bool,
}

/// Which world.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Same seed, same world.
    pub seed: u64,
    /// When it begins.
    pub start_us: i64,
    /// Services.
    pub services: usize,
    /// Players of each service.
    pub players: usize,
    /// Set where rooms and rounds may have been used before, by an earlier simulation.
    pub session: Option<Id>,
}

/// The endless sequence of deliveries, in order of time.
pub struct World {
    random: ChaCha12Rng,
    session: Option<Id>,
    players: Vec<Player>,
    players_of_a_service: usize,
    /// First deliveries of the last [`CHECKPOINT_US`], by service.
    recent: Vec<VecDeque<Delivery>>,
    due: BinaryHeap<Reverse<Due>>,
    scheduled: u64,
}

struct Player {
    service: usize,
    hops: bool,
    room: u32,
    rounds_left: u32,
    games: u64,
    /// The final of the room just left.
    final_due: Option<Game>,
}

/// Something that will happen; of two at one time the one scheduled first.
#[derive(PartialEq, Eq)]
struct Due {
    at_us: i64,
    order: u64,
    what: What,
}

#[derive(PartialEq, Eq)]
enum What {
    Immediate { player: usize },
    Final { player: usize, game: Game },
    Failover { service: usize },
    Copy(Delivery),
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_us, self.order).cmp(&(other.at_us, other.order))
    }
}

impl World {
    /// A world at its start: everybody is somewhere in their first game.
    pub fn new(settings: &WorldSettings) -> Self {
        let mut world = Self {
            random: ChaCha12Rng::seed_from_u64(settings.seed),
            session: settings.session.clone(),
            players: Vec::new(),
            players_of_a_service: settings.players,
            recent: vec![VecDeque::new(); settings.services],
            due: BinaryHeap::new(),
            scheduled: 0,
        };
        for service in 0..settings.services {
            for _ in 0..settings.players {
                let player = world.new_player(service);
                let first_us = world.random.random_range(0..GAME_US.end);
                let what = What::Immediate { player: world.players.len() };
                world.players.push(player);
                world.schedule(settings.start_us + first_us, what);
            }
            let first_us = world.random.random_range(FAILOVER_US);
            world.schedule(settings.start_us + first_us, What::Failover { service });
        }
        world
    }

    /// The next delivery.
    pub fn next_delivery(&mut self) -> Result<Delivery, IdError> {
        loop {
            // Players never stop, so there is always something due.
            let Some(Reverse(due)) = self.due.pop() else { continue };
            match due.what {
                What::Immediate { player } => {
                    if let Some(delivery) = self.end_game(due.at_us, player)? {
                        return Ok(delivery);
                    }
                }
                What::Final { player, game } => {
                    if let Some(delivery) = self.settle(due.at_us, player, game, true) {
                        return Ok(delivery);
                    }
                }
                What::Failover { service } => {
                    self.replay(due.at_us, service, |_| true);
                    let next_us = self.random.random_range(FAILOVER_US);
                    self.schedule(due.at_us + next_us, What::Failover { service });
                }
                What::Copy(delivery) => return Ok(Delivery { at_us: due.at_us, ..delivery }),
            }
        }
    }

    /// A failover of a queue: from `at_us` on, what it delivered since its last checkpoint is
    /// delivered again, in order.
    pub fn replay(&mut self, at_us: i64, service: usize, of: impl Fn(&Delivery) -> bool) {
        let since_us = at_us - CHECKPOINT_US;
        let Some(recent) = self.recent.get(service) else { return };
        let again: Vec<_> =
            recent.iter().filter(|d| d.at_us >= since_us && of(d)).cloned().collect();
        let mut copy_us = at_us;
        for delivery in again {
            copy_us += REPLAY_STEP_US;
            self.schedule(copy_us, What::Copy(Delivery { is_copy: true, ..delivery }));
        }
    }

    /// Puts off a delivery whose wallet is away.
    pub fn put_off(&mut self, delivery: Delivery, until_us: i64) {
        self.schedule(until_us, What::Copy(delivery));
    }

    /// One more message, at its time.
    pub fn send(&mut self, delivery: Delivery) {
        let at_us = delivery.at_us;
        self.put_off(delivery, at_us);
    }

    fn new_player(&mut self, service: usize) -> Player {
        Player {
            service,
            hops: self.random.random_ratio(1, 4),
            room: self.random.random_range(0..ROOMS),
            rounds_left: self.random.random_range(3..12),
            games: 0,
            final_due: None,
        }
    }

    /// A player is done with a game; the next one is scheduled.
    fn end_game(&mut self, at_us: i64, index: usize) -> Result<Option<Delivery>, IdError> {
        let mut next_us = at_us + self.random.random_range(GAME_US);
        let final_us = self.random.random_range(FINAL_US);
        let late_us = self.random.random_range(LATE_FINAL_US);
        let next_room = self.random.random_range(0..ROOMS);
        let rounds = self.random.random_range(3..12);
        let break_us = self.random.random_range(BREAK_US);
        let session = self.session.clone();
        let Some(player) = self.players.get_mut(index) else { return Ok(None) };
        player.games += 1;
        let room = Id::parse(&format!("room-{}", player.room))?;
        let game = Game { session, room, round: Id::parse(&player.games.to_string())? };
        player.rounds_left = player.rounds_left.saturating_sub(1);
        let leaves = player.hops || player.rounds_left == 0;
        if leaves {
            player.room = next_room;
        }
        if player.rounds_left == 0 {
            player.rounds_left = rounds;
            next_us += break_us;
        }
        let due = if player.hops {
            player.final_due.replace(game.clone()).map(|left| (at_us + late_us, left))
        } else {
            Some((at_us + final_us, game.clone()))
        };
        if let Some((due_us, game)) = due {
            self.schedule(due_us, What::Final { player: index, game });
        }
        self.schedule(next_us, What::Immediate { player: index });
        Ok(self.settle(at_us, index, game, false))
    }

    /// The first delivery of a settlement; its copies are scheduled.
    fn settle(&mut self, at_us: i64, index: usize, game: Game, last: bool) -> Option<Delivery> {
        let service = self.players.get(index)?.service;
        let net = self.random_net();
        let delivery = Delivery {
            at_us,
            service,
            player: index - service * self.players_of_a_service,
            signature: Signature::Settlement { game, net, last },
            trace: self.random.random(),
            is_copy: false,
            undoes: None,
            astray: false,
        };
        self.copy_at_random(&delivery);
        let recent = self.recent.get_mut(service)?;
        recent.push_back(delivery.clone());
        while recent.front().is_some_and(|d| d.at_us < at_us - CHECKPOINT_US) {
            recent.pop_front();
        }
        Some(delivery)
    }

    /// Wins and losses; a fold now and then moves nothing.
    fn random_net(&mut self) -> Net {
        if self.random.random_ratio(1, 50) {
            return Net(0);
        }
        Net(self.random.random_range(-50_000..50_000))
    }

    fn copy_at_random(&mut self, delivery: &Delivery) {
        let copies = if self.random.random_ratio(1, 25) {
            1
        } else if self.random.random_ratio(1, 200) {
            (1 << HOPS) - 1
        } else {
            0
        };
        for _ in 0..copies {
            let copy_us = delivery.at_us + self.random.random_range(COPY_US);
            self.schedule(copy_us, What::Copy(Delivery { is_copy: true, ..delivery.clone() }));
        }
    }

    fn schedule(&mut self, at_us: i64, what: What) {
        self.scheduled += 1;
        self.due.push(Reverse(Due { at_us, order: self.scheduled, what }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn deliveries(seed: u64, count: usize) -> Vec<Delivery> {
        let settings = WorldSettings { seed, start_us: 0, services: 2, players: 20, session: None };
        let mut world = World::new(&settings);
        (0..count).map(|_| world.next_delivery().unwrap()).collect()
    }

    #[test]
    fn the_same_seed_is_the_same_world() {
        assert_eq!(deliveries(7, 2_000), deliveries(7, 2_000));
        assert_ne!(deliveries(7, 2_000), deliveries(8, 2_000));
    }

    #[test]
    fn time_never_goes_back() {
        let all = deliveries(1, 5_000);
        assert!(all.windows(2).all(|pair| pair[0].at_us <= pair[1].at_us));
    }

    #[test]
    fn a_settlement_is_delivered_first_and_then_as_copies() {
        let all = deliveries(2, 5_000);
        let mut seen = std::collections::BTreeSet::new();
        for delivery in &all {
            let key = (delivery.service, delivery.player, delivery.signature.clone());
            assert_eq!(seen.insert(key), !delivery.is_copy, "{delivery:?}");
        }
        let copies = all.iter().filter(|delivery| delivery.is_copy).count();
        assert!((500..2_500).contains(&copies), "{copies} copies");
    }

    #[test]
    fn each_game_is_settled_twice_and_finals_can_be_late() {
        let mut late = 0;
        let mut newest = std::collections::BTreeMap::new();
        for delivery in deliveries(3, 5_000).iter().filter(|delivery| !delivery.is_copy) {
            let Signature::Settlement { game, last, .. } = &delivery.signature else { panic!() };
            let player = (delivery.service, delivery.player);
            if *last {
                late += usize::from(newest.get(&player) != Some(game));
            } else {
                newest.insert(player, game.clone());
            }
        }
        assert!((100..1_500).contains(&late), "{late} late finals");
    }
}
