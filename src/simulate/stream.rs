//! What the guards decide: the world's deliveries, each before a guard of [`super::guards`], with
//! the faults that were asked for. Pure: same settings, same stream, whatever the network does.

use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

use super::SERVICES;
use super::fault::{Fault, FaultKind};
use super::guards::Met;
use super::mischief::Mischief;
use super::restart::{Loss, Restart, restarts};
use super::source::{Source, first_source, sources};
use super::world::{Delivery, World, WorldSettings};
use crate::outcome::{Boot, Event, Id, IdError, SourceName};

/// When a restarted source gets the queue's replay.
const REPLAY_AFTER_US: i64 = 300_000;
/// How far the clock of the fault `clock-back` is behind.
const BEHIND_US: i64 = 2_000_000;
/// A deploy or a mistake hits one player in so many that no more than these are hit: beyond,
/// findings of one minute are put together in one row.
const HIT_MAX: usize = 64;

/// One step of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It decided: what it has to tell.
    Decided {
        /// When.
        at_us: i64,
        /// Which source, as an index into [`Stream::sources`].
        source: usize,
        /// Told in this order; more than one where evictions are told apart.
        events: Vec<Event>,
        /// Whether the numbers are given out and nothing is told.
        lost: bool,
    },
    /// It ends and begins again at once as another boot.
    Restarted {
        /// When the new boot begins.
        at_us: i64,
        /// Which source.
        source: usize,
        /// Whether it said goodbye.
        goodbye: bool,
    },
}

impl Step {
    /// When.
    pub fn at_us(&self) -> i64 {
        match self {
            Self::Decided { at_us, .. } | Self::Restarted { at_us, .. } => *at_us,
        }
    }
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// Same seed, same stream.
    pub seed: u64,
    /// When game time begins.
    pub start_us: i64,
    /// How long it goes on.
    pub length_us: i64,
    /// Players of each service.
    pub players: usize,
    /// Keeps simulations of one collector apart: a suffix of sources and ledgers, and the session
    /// of all games. Without it the services write to their own books.
    pub tag: Option<String>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The steps of all sources, in order of time.
pub struct Stream {
    settings: StreamSettings,
    sources: Vec<Source>,
    world: World,
    mischief: Mischief,
    /// Restarts to come, latest first.
    restarts: Vec<Restart>,
}

impl Stream {
    /// The stream at its start.
    pub fn new(settings: StreamSettings) -> Result<Self, IdError> {
        let session = settings.tag.as_deref().map(Id::parse).transpose()?;
        let world = World::new(&WorldSettings {
            seed: settings.seed,
            start_us: settings.start_us,
            services: SERVICES.len(),
            players: settings.players,
            session,
        });
        let sources = sources(settings.tag.as_deref())?;
        let restarts = restarts(&settings, &sources);
        let random = ChaCha12Rng::seed_from_u64(!settings.seed);
        let mischief = Mischief::new(random, &settings.faults);
        Ok(Self { settings, sources, world, mischief, restarts })
    }

    /// All sources.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &SourceName> {
        self.sources.iter().map(|source| &source.name)
    }

    /// The books that a source writes to; none: its service's own.
    pub fn ledger(&self, source: usize) -> Option<&Id> {
        self.sources.get(source)?.ledger.as_ref()
    }

    /// How far a source's clock is behind.
    pub fn behind_us(&self, source: usize, at_us: i64) -> i64 {
        let Some(service) = self.sources.get(source).map(|source| source.service) else { return 0 };
        let is_first = source == first_source(&self.sources, service);
        let is_behind = is_first && self.is_on(FaultKind::ClockBack, service, at_us);
        if is_behind { BEHIND_US } else { 0 }
    }

    /// The run that a source begins at this moment.
    pub fn boot_at(at_us: i64) -> Boot {
        Boot::Started { at_us }
    }

    /// The next step; `None` at the end.
    pub fn next_step(&mut self) -> Result<Option<Step>, IdError> {
        loop {
            let delivery = self.world.next_delivery()?;
            if let Some(&restart) = self.restarts.last()
                && restart.up_us() <= delivery.at_us
            {
                // Back into the queue: what the restart brings may come before it.
                let at_us = delivery.at_us;
                self.world.put_off(delivery, at_us);
                self.restarts.pop();
                return Ok(Some(self.restart(restart)));
            }
            if delivery.at_us >= self.settings.start_us + self.settings.length_us {
                return Ok(None);
            }
            let met = self.met(&delivery);
            let source = self.route(&delivery, met);
            if let Some(up_us) = self.away_until(source, delivery.at_us) {
                self.world.put_off(delivery, up_us);
                continue;
            }
            return self.decide(source, &delivery, met).map(Some);
        }
    }

    /// The source that a delivery reaches. A player belongs to one, so that its memory is all
    /// that is needed; with two guards, copies reach the next one.
    fn route(&self, delivery: &Delivery, met: Met) -> usize {
        let first = first_source(&self.sources, delivery.service);
        let count = SERVICES.get(delivery.service).map_or(1, |service| service.sources);
        let copy_astray = delivery.is_copy && met.has(FaultKind::TwoGuards);
        let astray = delivery.astray || copy_astray || met.has(FaultKind::Handover);
        first + (delivery.player + usize::from(astray)) % count
    }

    fn is_on(&self, kind: FaultKind, service: usize, at_us: i64) -> bool {
        let after_us = at_us - self.settings.start_us;
        let on =
            |fault: &Fault| fault.kind == kind && fault.service == service && fault.is_on(after_us);
        self.settings.faults.iter().any(on)
    }

    /// The faults that a delivery meets.
    fn met(&self, delivery: &Delivery) -> Met {
        let mut met = Met::default();
        if !is_hit(self.settings.players, delivery.player) {
            return met;
        }
        let after_us = delivery.at_us - self.settings.start_us;
        let faults = self.settings.faults.iter();
        for fault in faults.filter(|fault| fault.service == delivery.service) {
            if fault.is_on(after_us) {
                met.add(fault.kind);
            }
        }
        met
    }

    fn away_until(&self, source: usize, at_us: i64) -> Option<i64> {
        let away = |restart: &&Restart| {
            restart.source == source && (restart.down_us..restart.up_us()).contains(&at_us)
        };
        self.restarts.iter().find(away).map(|restart| restart.up_us())
    }

    fn restart(&mut self, restart: Restart) -> Step {
        let at_us = restart.up_us();
        let Restart { source, goodbye, .. } = restart;
        let players = self.settings.players;
        if let Some(source) = self.sources.get_mut(source) {
            match restart.loss {
                Loss::None => {}
                Loss::All => source.memory.forget(|player| is_hit(players, player)),
                Loss::Surplus => source.memory.cut(|player| is_hit(players, player)),
            }
        }
        if let Some(service) = self.sources.get(source).map(|source| source.service) {
            let first = first_source(&self.sources, service);
            let count = SERVICES.get(service).map_or(1, |service| service.sources);
            let home = |delivery: &Delivery| first + delivery.player % count == source;
            self.world.replay(at_us + REPLAY_AFTER_US, service, home);
        }
        Step::Restarted { at_us, source, goodbye }
    }

    fn decide(&mut self, index: usize, delivery: &Delivery, met: Met) -> Result<Step, IdError> {
        let (service, at_us) = (delivery.service, delivery.at_us);
        let is_first = index == first_source(&self.sources, service);
        let is_lost = |kind| is_first && self.is_on(kind, service, at_us);
        let lost = is_lost(FaultKind::LostTelemetry) || is_lost(FaultKind::Crash);
        let behind_us = self.behind_us(index, at_us);
        let mut events = Vec::new();
        if let Some(source) = self.sources.get_mut(index) {
            events = self.mischief.decide(source, delivery, met)?;
        }
        for event in &mut events {
            event.occurred_us = at_us - behind_us;
        }
        for message in self.mischief.take_messages() {
            self.world.send(message);
        }
        Ok(Step::Decided { at_us, source: index, events, lost })
    }
}

/// Whether a mistake hits a player, by the number of players.
fn is_hit(players: usize, player: usize) -> bool {
    player.is_multiple_of(players.div_ceil(HIT_MAX).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::{settings, steps};
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn the_same_seed_is_the_same_stream() {
        let faults = ["window-of-3@10s+1m", "crash@60s+20s/1", "restart-empty@30s+1m"];
        let one = steps(&settings(5, &faults));
        assert_eq!(one, steps(&settings(5, &faults)));
        assert_ne!(one, steps(&settings(6, &faults)));
    }

    #[test]
    fn time_never_goes_back_even_over_a_restart() {
        let all = steps(&settings(1, &["restart-empty@20s+2m", "crash@40s+15s/1"]));
        assert!(all.windows(2).all(|pair| pair[0].at_us() <= pair[1].at_us()));
        let restarts = all.iter().filter(|step| matches!(step, Step::Restarted { .. })).count();
        assert_eq!(restarts, 4 + 1);
    }

    #[test]
    fn nobody_decides_while_away() {
        let settings = settings(2, &["restart-empty@20s+10s"]);
        let away = settings.start_us + 20_000_000..settings.start_us + 21_000_000;
        for step in steps(&settings) {
            if let Step::Decided { at_us, source: 0, .. } = step {
                assert!(!away.contains(&at_us));
            }
        }
    }

    #[test]
    fn a_window_accounts_for_each_of_its_signatures() {
        let mut lengths: BTreeMap<(usize, Id), u64> = BTreeMap::new();
        let mut evictions = 0;
        for step in steps(&settings(3, &["window-of-3@30s+1m", "window-of-3@30s+1m/1"])) {
            let Step::Decided { source, events, .. } = step else { continue };
            for event in events {
                let len = lengths.entry((source, event.player.clone())).or_default();
                evictions += event.evicted.len();
                *len -= event.evicted.len() as u64;
                match event.outcome {
                    Outcome::Evicted => *len -= 1,
                    Outcome::ReplayBlocked => {}
                    _ => *len += 1,
                }
                assert_eq!(event.window.map(|window| window.len), Some(*len), "{event:?}");
            }
        }
        assert!(evictions > 100);
    }

    #[test]
    fn some_services_tell_evictions_apart() {
        let mut apart = 0;
        for step in steps(&settings(3, &[])) {
            let Step::Decided { events, .. } = step else { continue };
            if events.len() > 1 {
                apart += 1;
                assert_eq!(events[0].outcome, Outcome::Evicted);
                assert!(events.last().is_some_and(Event::is_acceptance));
            }
        }
        assert!(apart > 100);
    }

    #[test]
    fn the_tag_keeps_simulations_apart() {
        let mut settings = settings(3, &[]);
        settings.tag = Some("x1".into());
        let Step::Decided { events, .. } = &steps(&settings)[0] else { panic!() };
        assert!(events[0].from.source.as_str().ends_with("-x1"));
        assert!(events[0].ledger().ends_with("-x1"));
        let session = events[0].signature.game().and_then(|game| game.session.clone());
        assert_eq!(session, Id::parse("x1").ok());
    }
}
