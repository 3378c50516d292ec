//! What the guards decide: the world's deliveries, each before a real [`SignatureWindow`], with
//! the faults that were asked for. Pure: same settings, same stream, whatever the network does.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::fault::{Fault, FaultKind};
use super::world::{Delivery, World, WorldSettings};
use super::{SERVICES, Style};
use crate::guard::{Decision, SignatureWindow, Verdict};
use crate::outcome::{
    Boot, Event, GuardMode, Id, IdError, Outcome, Reason, Signature, SourceName, Window,
};

/// The capacity of the fault `window-of-3`.
const CAPACITY_OF_3: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);
/// How long a source is away when it restarts.
const RESTART_US: i64 = 1_000_000;
/// When a restarted source gets the queue's replay.
const REPLAY_AFTER_US: i64 = 300_000;

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
    random: ChaCha12Rng,
    /// Restarts to come, latest first.
    restarts: Vec<Restart>,
}

struct Source {
    name: SourceName,
    service: usize,
    ledger: Option<Id>,
    style: Style,
    windows: BTreeMap<usize, SignatureWindow>,
}

#[derive(Clone, Copy)]
struct Restart {
    down_us: i64,
    source: usize,
    goodbye: bool,
    forgets: bool,
}

impl Restart {
    fn up_us(self) -> i64 {
        self.down_us + RESTART_US
    }
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
        Ok(Self { settings, sources, world, random, restarts })
    }

    /// All sources.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &SourceName> {
        self.sources.iter().map(|source| &source.name)
    }

    /// The books that a source writes to; none: its service's own.
    pub fn ledger(&self, source: usize) -> Option<&Id> {
        self.sources.get(source)?.ledger.as_ref()
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
            let source = self.route(&delivery);
            if let Some(up_us) = self.away_until(source, delivery.at_us) {
                self.world.put_off(delivery, up_us);
                continue;
            }
            return self.decide(source, &delivery).map(Some);
        }
    }

    /// The source that a delivery reaches. A player belongs to one, so that its memory is all
    /// that is needed; with two guards, copies reach the next one.
    fn route(&self, delivery: &Delivery) -> usize {
        let first = first_source(&self.sources, delivery.service);
        let count = SERVICES.get(delivery.service).map_or(1, |service| service.sources);
        let astray = delivery.is_copy && self.is_on(FaultKind::TwoGuards, delivery);
        first + (delivery.player + usize::from(astray)) % count
    }

    fn is_on(&self, kind: FaultKind, delivery: &Delivery) -> bool {
        let after_us = delivery.at_us - self.settings.start_us;
        let on = |fault: &Fault| {
            fault.kind == kind && fault.service == delivery.service && fault.is_on(after_us)
        };
        self.settings.faults.iter().any(on)
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
        if let Some(source) = self.sources.get_mut(source)
            && restart.forgets
        {
            source.windows.clear();
        }
        if let Some(service) = self.sources.get(source).map(|source| source.service) {
            let first = first_source(&self.sources, service);
            let count = SERVICES.get(service).map_or(1, |service| service.sources);
            let home = |delivery: &Delivery| first + delivery.player % count == source;
            self.world.replay(at_us + REPLAY_AFTER_US, service, home);
        }
        Step::Restarted { at_us, source, goodbye }
    }

    fn decide(&mut self, index: usize, delivery: &Delivery) -> Result<Step, IdError> {
        let of_3 = self.is_on(FaultKind::WindowOf3, delivery);
        let is_first = index == first_source(&self.sources, delivery.service);
        let lost = is_first
            && (self.is_on(FaultKind::LostTelemetry, delivery)
                || self.is_on(FaultKind::Crash, delivery));
        let mut events = Vec::new();
        if let Some(source) = self.sources.get_mut(index) {
            let window = source.windows.entry(delivery.player).or_default();
            let capacity = if of_3 { CAPACITY_OF_3 } else { SignatureWindow::CAPACITY };
            window.set_capacity(capacity);
            let before = window.len() as u64;
            let decision = window.check(&delivery.signature);
            let check_us = self.random.random_range(3..40);
            let response_us = self.random.random_range(400..4_000);
            let event = Event {
                check_us: Some(check_us),
                response_us: Some(check_us + response_us),
                ..source.event(delivery, delivery.signature.clone())?
            };
            events = source.told(event, decision, before)?;
        }
        Ok(Step::Decided { at_us: delivery.at_us, source: index, events, lost })
    }
}

impl Source {
    /// What there is to tell of a decision. `before`: the length of the window before it.
    fn told(&self, event: Event, decision: Decision, before: u64) -> Result<Vec<Event>, IdError> {
        let outcome = decision.verdict.into();
        let reason = (decision.verdict == Verdict::ReplayBlocked).then_some(Reason::Replay);
        let window = Some(decision.window);
        let event = Event { outcome, reason, window, ..event };
        if self.style == Style::Inline {
            return Ok(vec![Event { evicted: decision.evicted, ..event }]);
        }
        let mut told = Vec::new();
        for (gone, signature) in (1..).zip(decision.evicted) {
            let window = Window { len: before.saturating_sub(gone), ..decision.window };
            told.push(Event {
                signature,
                outcome: Outcome::Evicted,
                reason: Some(Reason::Fifo),
                window: Some(window),
                check_us: None,
                response_us: None,
                ..event.clone()
            });
        }
        told.push(event);
        Ok(told)
    }

    fn event(&self, delivery: &Delivery, signature: Signature) -> Result<Event, IdError> {
        let player = Id::parse(&format!("p-{:04}", delivery.player))?;
        Ok(Event {
            occurred_us: delivery.at_us,
            ledger_named: self.ledger.clone(),
            guard: Some(Id::parse("signature_window")?),
            guard_mode: Some(GuardMode::Local),
            trace_id: Some(Id::parse(&format!("{:032x}", delivery.trace))?),
            ..Event::new(self.name.clone(), player, signature, Outcome::Unknown)
        })
    }
}

fn sources(tag: Option<&str>) -> Result<Vec<Source>, IdError> {
    let mut sources = Vec::new();
    let suffix = tag.map_or(String::new(), |tag| format!("-{tag}"));
    for (service, plan) in SERVICES.iter().enumerate() {
        for number in 1..=plan.sources {
            sources.push(Source {
                name: SourceName {
                    service: Id::parse(plan.name)?,
                    env: Id::parse("prod")?,
                    source: Id::parse(&format!("{}-{number}{suffix}", plan.instance))?,
                },
                service,
                ledger: tag.map(|_| Id::parse(&format!("{}{suffix}", plan.name))).transpose()?,
                style: plan.style,
                windows: BTreeMap::new(),
            });
        }
    }
    Ok(sources)
}

fn first_source(sources: &[Source], service: usize) -> usize {
    sources.iter().position(|source| source.service == service).unwrap_or_default()
}

/// All restarts that the faults bring, latest first.
fn restarts(settings: &StreamSettings, sources: &[Source]) -> Vec<Restart> {
    let mut restarts = Vec::new();
    for fault in &settings.faults {
        let source = first_source(sources, fault.service);
        let start_us = settings.start_us + fault.start_us;
        let end_us = start_us + fault.length_us;
        match fault.kind {
            FaultKind::RestartEmpty => {
                let mut down_us = start_us;
                while down_us < end_us {
                    restarts.push(Restart { down_us, source, goodbye: true, forgets: true });
                    down_us += FaultKind::RESTART_EVERY_US;
                }
            }
            FaultKind::Crash => {
                restarts.push(Restart { down_us: end_us, source, goodbye: false, forgets: false });
            }
            FaultKind::WindowOf3 | FaultKind::TwoGuards | FaultKind::LostTelemetry => {}
        }
    }
    restarts.sort_by_key(|restart| std::cmp::Reverse(restart.down_us));
    restarts
}

#[cfg(test)]
mod tests {
    use super::super::testing::{settings, steps};
    use super::*;

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
