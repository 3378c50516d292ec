//! Whether somebody must know, and telling them.
//!
//! `rule` says what the rules are, `state` where an alert stands, `decide` whether the receiver
//! must be told: all three pure, with the present moment handed in. `observe` looks at what the
//! judge found, who is silent and who is rejected; `engine` puts alerts and notifications into one
//! transaction; `notify` delivers them. A slow receiver never holds up a look.

pub mod decide;
mod engine;
mod key;
mod notify;
mod observe;
#[cfg(test)]
#[path = "../../tests/it/support/receiver.rs"]
mod receiver;
pub mod rule;
pub mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

pub use self::engine::{Engine, Stepped};
pub use self::key::{Key, page};
pub use self::notify::{Courier, CourierError, DELIVERY_HEADER, Sent, WEBHOOK};
use crate::clock::Clock;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::vitals::Vitals;

/// How often the rules are looked at when no finding changed: silence, and times that are up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The rest between two looks: under a flood of findings every commit of the judge asks for one,
/// and each takes the write lock.
const REST: Duration = Duration::from_millis(100);

/// The engine and the courier of one collector.
pub struct Alerts {
    engine: Engine,
    courier: Option<Courier>,
    vitals: Arc<Vitals>,
    clock: Clock,
}

impl Alerts {
    /// As configured: without a webhook, alerts are kept and shown, and nobody is told.
    pub fn new(
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        vitals: Arc<Vitals>,
        clock: Clock,
        config: &Config,
    ) -> Result<Self, CourierError> {
        let courier = match &config.webhook {
            None => None,
            Some(webhook) => {
                let (store, metrics) = (Arc::clone(&store), Arc::clone(&metrics));
                Some(Courier::new(store, metrics, webhook.clone())?)
            }
        };
        let links = courier.is_some().then(|| config.external_url.clone());
        Ok(Self { engine: Engine::new(store, metrics, links), courier, vitals, clock })
    }

    /// Evaluates and delivers until `stop` is done. An evaluation under way is let go of: it is
    /// a transaction. A delivery under way comes to its end, so that it is not repeated.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let Self { engine, courier, vitals, clock } = self;
        let (told, news) = watch::channel(());
        // The end of `told` is the courier's sign to end.
        let evaluate = async {
            tokio::select! {
                () = stop => {}
                () = run_engine(engine, &vitals, told, &clock) => {}
            }
        };
        let deliver = async {
            if let Some(courier) = courier {
                run_courier(courier, news, &clock).await;
            }
        };
        tokio::join!(evaluate, deliver);
    }
}

async fn run_engine(engine: Engine, vitals: &Vitals, told: watch::Sender<()>, clock: &Clock) {
    let mut findings = vitals.findings();
    let mut seen = *findings.borrow_and_update();
    let mut timer = interval(LOOK_EVERY);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            changed = findings.changed() => {
                let last = std::mem::replace(&mut seen, *findings.borrow_and_update());
                match changed {
                    Err(_) => return,
                    Ok(()) if last == seen => continue,
                    Ok(()) => {}
                }
            }
        }
        match engine.step(clock.now_us()).await {
            Ok(stepped) if stepped.told.is_empty() => {}
            Ok(_) => told.send_replace(()),
            Err(error) => {
                tracing::error!(%error, "the alerts can't be evaluated; tried again");
                timer.tick().await;
            }
        }
        sleep(REST).await;
    }
}

async fn run_courier(mut courier: Courier, mut news: watch::Receiver<()>, clock: &Clock) {
    let mut timer = interval(LOOK_EVERY);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            told = news.changed() => if told.is_err() { return },
        }
        while news.has_changed().is_ok() {
            match courier.step(clock).await {
                Ok(Sent::Answered) => {}
                // One that hangs is not asked again at once: it would hang again.
                Ok(Sent::Nothing | Sent::Unanswered) => break,
                Err(error) => {
                    tracing::error!(%error, "notifications can't be read or noted; tried again");
                    timer.tick().await;
                    break;
                }
            }
        }
    }
}
