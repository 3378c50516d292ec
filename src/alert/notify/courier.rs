//! Delivers what waits, at least once. A repeat only if the process dies or the answer is lost
//! between the receiver's answer and the note about it; then with the same delivery id, so that
//! the receiver can tell.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;

use crate::client::http;
use crate::config::Webhook;
use crate::limits::{DAY_US, MINUTE_US, NOTIFICATIONS_AT_A_TIME, SECOND_US};
use crate::metrics::Metrics;
use crate::store::alerts::{self, Attempt, Notification};
use crate::store::{Store, StoreError};

/// The name of the receiver, in payloads, metrics and the log of deliveries.
pub const WEBHOOK: &str = "webhook";
/// Carries the delivery id.
pub const DELIVERY_HEADER: &str = "X-Dedupwatch-Delivery";

/// How long a receiver may take to answer: as long as Prometheus gives an Alertmanager.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The wait after the first failure; it doubles with each.
const BACKOFF_FIRST_US: i64 = SECOND_US;
/// The longest wait: somebody who mends the receiver wants to see it work.
const BACKOFF_MAX_US: i64 = 5 * MINUTE_US;
/// After this long the news is old; the pages have it.
const GIVE_UP_AFTER_US: i64 = DAY_US;

/// Why there is no courier.
#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    /// The HTTP client can't be built.
    #[error("can't build the HTTP client of the webhook: {0}")]
    Client(String),
}

/// Delivers to the webhook.
pub struct Courier {
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    client: reqwest::Client,
    webhook: Webhook,
    /// Delivered, but the database was away: noted before anything else is sent.
    not_noted: Option<(String, Attempt)>,
}

impl Courier {
    /// A courier to this webhook.
    pub fn new(
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        webhook: Webhook,
    ) -> Result<Self, CourierError> {
        let told = |error: reqwest::Error| CourierError::Client(error.without_url().to_string());
        let client = http(ANSWER_WITHIN).map_err(told)?;
        metrics.announce_receiver(WEBHOOK);
        Ok(Self { store, metrics, client, webhook, not_noted: None })
    }

    /// Sends what is due, one after the other. Returns how many were tried.
    pub async fn step(&mut self, now_us: i64) -> Result<usize, StoreError> {
        self.note().await?;
        let due = self.store.due_notifications(now_us, NOTIFICATIONS_AT_A_TIME).await?;
        for notification in &due {
            let attempt = self.attempt(notification, now_us).await;
            self.not_noted = Some((notification.id.clone(), attempt));
            self.note().await?;
        }
        Ok(due.len())
    }

    async fn attempt(&self, notification: &Notification, now_us: i64) -> Attempt {
        match self.send(notification).await {
            Ok(()) => Attempt::Delivered { at_us: now_us },
            Err(error) if now_us >= notification.created_us.saturating_add(GIVE_UP_AFTER_US) => {
                Attempt::GivenUp { error }
            }
            Err(error) => {
                let next_attempt_us = now_us.saturating_add(backoff_us(notification.attempts));
                Attempt::Failed { next_attempt_us, error }
            }
        }
    }

    /// Any answer but 2xx is a failure that is tried again, 4xx too: a receiver that is set up
    /// wrong today is mended by somebody tomorrow. What is said of it never names the URL, which
    /// may hold a secret.
    async fn send(&self, notification: &Notification) -> Result<(), String> {
        let request = self
            .client
            .post(&self.webhook.url)
            .header(CONTENT_TYPE, "application/json")
            .header(DELIVERY_HEADER, &notification.id)
            .body(notification.payload.clone());
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("the receiver answered {}", response.status())),
            Err(error) if error.is_timeout() => Err("the receiver did not answer in 10 s".into()),
            Err(error) if error.is_connect() => Err("the receiver can't be reached".into()),
            Err(error) => Err(error.without_url().to_string()),
        }
    }

    async fn note(&mut self) -> Result<(), StoreError> {
        let Some((id, attempt)) = &self.not_noted else { return Ok(()) };
        let result = match attempt {
            Attempt::Delivered { .. } => "delivered",
            Attempt::Failed { .. } => "failed",
            Attempt::GivenUp { .. } => "given_up",
        };
        let counted = self.metrics.count_notified(WEBHOOK, result, 1);
        let mut writer = self.store.writer().await;
        let mut transaction = alerts::begin(&mut writer).await?;
        transaction.note_attempt(id, attempt).await?;
        transaction.add_totals(counted.totals()).await?;
        transaction.commit().await?;
        drop(writer);
        self.metrics.notified(&counted);
        if let Attempt::Failed { error, .. } | Attempt::GivenUp { error } = attempt {
            tracing::warn!(delivery = %id, result, error, "a notification was not delivered");
        }
        self.not_noted = None;
        Ok(())
    }
}

/// The wait after so many earlier attempts.
fn backoff_us(attempts: i64) -> i64 {
    let doubled = u32::try_from(attempts).ok().and_then(|attempts| 2_i64.checked_pow(attempts));
    doubled
        .and_then(|factor| BACKOFF_FIRST_US.checked_mul(factor))
        .map_or(BACKOFF_MAX_US, |wait_us| wait_us.min(BACKOFF_MAX_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let seconds = [0, 1, 2, 8, 9, 62, 63, i64::MAX].map(|n| backoff_us(n) / SECOND_US);
        assert_eq!(seconds, [1, 2, 4, 256, 300, 300, 300, 300]);
    }
}
