//! Evaluates the rules. One step is one transaction: the findings that changed since the stored
//! cursor, where the alerts stand, and the notifications about it. So a crash at any moment
//! neither forgets an alert nor tells it twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::{NoContext, Timestamp, Uuid};

use super::decide::{Because, Decision, GROWTH_EVERY_US, decide};
use super::key::Key;
use super::notify::{self, WEBHOOK};
use super::observe::{self, Alerts, Look};
use super::rule::Rule;
use super::state::{Instance, Told};
use crate::limits;
use crate::metrics::{Counted, Metrics};
use crate::store::alerts::{self, AlertTransaction, Notification};
use crate::store::{AlertRow, Store, StoreError};

/// Evaluates the rules.
pub struct Engine {
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    /// How people reach the pages, where there is somebody to tell.
    links: Option<String>,
}

/// What a step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Which alerts are told of, and why.
    pub told: Vec<(Key, Because)>,
}

impl Engine {
    /// `links`: how people reach the pages, if there is a receiver; without one, alerts are kept
    /// and shown, and nobody is told.
    pub fn new(store: Arc<Store>, metrics: Arc<Metrics>, links: Option<String>) -> Self {
        Self { store, metrics, links }
    }

    /// Evaluates all rules once.
    pub async fn step(&self, now_us: i64) -> Result<Stepped, StoreError> {
        let rejects = self.metrics.reject_runs(now_us);
        let mut transaction = alerts::begin(&self.store).await?;
        let alerts = read(&mut transaction).await?;
        let (look, newest) = observe::look(&mut transaction, &alerts, &rejects, now_us).await?;
        let lately = transaction.delivered(now_us.saturating_sub(GROWTH_EVERY_US)).await?;
        let links = self.links.as_deref();
        let round = Round { transaction, alerts, lately, links, now_us, did: Did::default() };
        let (mut transaction, did) = round.evaluate(look).await?;
        let Did { stepped, no_room, crowded_out, .. } = did;
        // What found no room is looked at again.
        if no_room == 0 {
            transaction.set_read(newest).await?;
        }
        let counted = self.count_crowded_out(crowded_out);
        transaction.add_totals(counted.totals()).await?;
        transaction.commit().await?;
        self.metrics.notified(&counted);
        report(&stepped, no_room);
        Ok(stepped)
    }

    fn count_crowded_out(&self, notifications: u64) -> Counted {
        self.metrics.count_notified(WEBHOOK, "given_up", notifications)
    }
}

/// One evaluation under way.
struct Round<'a> {
    transaction: AlertTransaction<'a>,
    /// Where the alerts stood before.
    alerts: Alerts,
    /// Those of which something was delivered lately.
    lately: BTreeSet<(String, String, String)>,
    links: Option<&'a str>,
    now_us: i64,
    did: Did,
}

/// What an evaluation did.
#[derive(Default)]
struct Did {
    stepped: Stepped,
    /// Alerts that are kept.
    kept: usize,
    /// Those of them that are over, and since when.
    over: BTreeSet<(i64, Key)>,
    /// Alerts that found no room.
    no_room: usize,
    /// Notifications given up for want of room.
    crowded_out: u64,
}

impl<'a> Round<'a> {
    /// Known alerts first: what has ended makes room for what is new.
    async fn evaluate(mut self, look: Look) -> Result<(AlertTransaction<'a>, Did), StoreError> {
        let (known, new): (Look, Look) =
            look.into_iter().partition(|(key, _)| self.alerts.contains_key(key));
        for (key, (level, seen)) in known {
            let was = self.alerts.get(&key).cloned();
            match Instance::advance(was, level, seen, self.now_us) {
                Some(alert) => self.keep(key, alert).await?,
                None => self.transaction.forget(&key.stored()).await?,
            }
        }
        for (key, (level, seen)) in new {
            let Some(alert) = Instance::advance(None, level, seen, self.now_us) else { continue };
            if self.make_room().await? {
                self.keep(key, alert).await?;
            } else {
                self.did.no_room += 1;
            }
        }
        Ok((self.transaction, self.did))
    }

    /// Whether one more can be kept; what was over first is let go of for it.
    async fn make_room(&mut self) -> Result<bool, StoreError> {
        if self.did.kept < limits::ALERTS_MAX as usize {
            return Ok(true);
        }
        let Some((_, key)) = self.did.over.pop_first() else { return Ok(false) };
        self.transaction.forget(&key.stored()).await?;
        self.did.kept -= 1;
        Ok(true)
    }

    /// Tells of an alert if somebody must know, and keeps it.
    async fn keep(&mut self, key: Key, mut alert: Instance) -> Result<(), StoreError> {
        let decision = decide(&alert, self.lately.contains(&key.stored()), self.now_us);
        if let (Decision::Notify(because), Some(links)) = (decision, self.links) {
            let told = tell(&key, &mut alert, because, links, self.now_us)?;
            self.did.crowded_out += self.transaction.enqueue(&told).await?;
            self.did.stepped.told.push((key.clone(), because));
        }
        if self.alerts.get(&key) != Some(&alert) {
            self.transaction.put(&row_of(&key, &alert)?).await?;
        }
        self.did.kept += 1;
        if let Some(ended_us) = alert.ended_us {
            self.did.over.insert((ended_us, key));
        }
        Ok(())
    }
}

fn report(stepped: &Stepped, no_room: usize) {
    for (key, because) in &stepped.told {
        let because = because.as_str();
        let rule = key.rule.as_str();
        tracing::info!(rule, service = key.service, env = key.env, because, "alert");
    }
    if no_room > 0 {
        tracing::error!(no_room, "more alerts than are kept; the rest waits until one ends");
    }
}

/// The notification about an alert; the alert remembers that it was told.
fn tell(
    key: &Key,
    alert: &mut Instance,
    because: Because,
    links: &str,
    now_us: i64,
) -> Result<Notification, StoreError> {
    // Later than the one before, whatever the clock says: they are sent in this order.
    let after_us = alert.told.as_ref().map_or(i64::MIN, |told| told.at_us.saturating_add(1));
    let created_us = now_us.max(after_us);
    alert.told = Some(Told { at_us: created_us, state: alert.state, seen: alert.seen.clone() });
    Ok(Notification {
        id: delivery_id(created_us),
        receiver: WEBHOOK.into(),
        key: key.stored(),
        because: because.as_str().into(),
        created_us,
        payload: notify::render(key, alert, WEBHOOK, links).map_err(unreadable)?,
        attempts: 0,
    })
}

/// A UUID of version 7: in the order of time, by the clock that is handed in.
fn delivery_id(at_us: i64) -> String {
    let at_us = at_us.max(0).unsigned_abs();
    let nanos = u32::try_from(at_us % 1_000_000).unwrap_or(0) * 1_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, at_us / 1_000_000, nanos)).to_string()
}

/// Where the alerts stand. A row of a rule that is no more is left as it is.
async fn read(transaction: &mut AlertTransaction<'_>) -> Result<Alerts, StoreError> {
    let mut alerts = Alerts::new();
    for row in transaction.alerts().await? {
        if let Some(rule) = Rule::parse(&row.rule) {
            let alert = serde_json::from_str(&row.body).map_err(unreadable)?;
            alerts.insert(Key { rule, service: row.service, env: row.env }, alert);
        }
    }
    Ok(alerts)
}

fn row_of(key: &Key, alert: &Instance) -> Result<AlertRow, StoreError> {
    Ok(AlertRow {
        rule: key.rule.as_str().into(),
        service: key.service.clone(),
        env: key.env.clone(),
        state: alert.state.as_str().into(),
        severity: alert.seen.severity.as_str().into(),
        started_us: alert.started_us,
        ended_us: alert.ended_us,
        body: serde_json::to_string(alert).map_err(unreadable)?,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Unreadable { table: "alerts", detail: error.to_string() }
}
