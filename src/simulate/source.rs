//! One guard instance: who it is, and how it tells what it decided.

use super::guards::{Memory, Said};
use super::world::Delivery;
use super::{SERVICES, Style};
use crate::outcome::{Event, Id, IdError, Outcome, Reason, SourceName, Window};

/// One guard instance.
pub(super) struct Source {
    pub(super) name: SourceName,
    pub(super) service: usize,
    pub(super) ledger: Option<Id>,
    pub(super) memory: Memory,
    style: Style,
}

impl Source {
    /// What there is to tell of a decision, the decision itself last.
    pub(super) fn told(&self, delivery: &Delivery, said: Said) -> Result<Vec<Event>, IdError> {
        let Said { outcome, reason, window, evicted, before, .. } = said;
        let event = Event {
            outcome,
            reason,
            window,
            ledger_named: self.ledger.clone(),
            guard: Some(Id::parse(said.guard)?),
            guard_mode: Some(said.mode),
            trace_id: Some(Id::parse(&format!("{:032x}", delivery.trace))?),
            ..Event::new(
                self.name.clone(),
                Id::parse(&format!("p-{:04}", delivery.player))?,
                delivery.signature.clone(),
                outcome,
            )
        };
        if self.style == Style::Inline {
            return Ok(vec![Event { evicted, ..event }]);
        }
        let mut told = Vec::new();
        for (gone, signature) in (1..).zip(evicted) {
            told.push(Event {
                signature,
                outcome: Outcome::Evicted,
                reason: Some(Reason::Fifo),
                window: window.map(|window| Window { len: before.saturating_sub(gone), ..window }),
                ..event.clone()
            });
        }
        told.push(event);
        Ok(told)
    }
}

/// All of them, of one service after the other.
pub(super) fn sources(tag: Option<&str>) -> Result<Vec<Source>, IdError> {
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
                memory: Memory::default(),
            });
        }
    }
    Ok(sources)
}

/// The first of a service.
pub(super) fn first_source(sources: &[Source], service: usize) -> usize {
    sources.iter().position(|source| source.service == service).unwrap_or_default()
}
