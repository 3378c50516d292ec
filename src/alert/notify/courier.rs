//! Delivers what waits, at least once. A repeat only if the process dies or the answer is lost
//! between the receiver's answer and the note about it; then with the same delivery id, so that
//! the receiver can tell.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;

use crate::client::http;
use crate::clock::Clock;
use crate::config::Webhook;
use crate::limits::{DAY_US, MINUTE_US, SECOND_US};
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

/// What a step of the courier did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing is due.
    Nothing,
    /// Something was sent: delivered, or refused at once.
    Answered,
    /// The receiver kept it waiting in vain.
    Unanswered,
}

/// Why something was not delivered.
struct Failure {
    /// In words.
    told: String,
    /// Whether the receiver did not answer in time.
    hung: bool,
}

/// Delivers to the webhook.
pub struct Courier {
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    client: reqwest::Client,
    webhook: Webhook,
    answer_within: Duration,
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
        Ok(Self { store, metrics, client, webhook, answer_within: ANSWER_WITHIN, not_noted: None })
    }

    /// A test has less patience.
    #[cfg(test)]
    pub(in crate::alert) fn answer_within(&mut self, answer_within: Duration) {
        self.answer_within = answer_within;
    }

    /// Sends one notification that is due.
    pub async fn step(&mut self, clock: &Clock) -> Result<Sent, StoreError> {
        self.note().await?;
        let Some(notification) = self.store.due_notification(clock.now_us()).await? else {
            return Ok(Sent::Nothing);
        };
        let answer = self.send(&notification).await;
        let hung = answer.as_ref().is_err_and(|failure| failure.hung);
        let attempt = attempt(&notification, answer, clock.now_us());
        self.not_noted = Some((notification.id, attempt));
        self.note().await?;
        Ok(if hung { Sent::Unanswered } else { Sent::Answered })
    }

    /// Any answer but 2xx is a failure that is tried again, 4xx too: a receiver that is set up
    /// wrong today is mended by somebody tomorrow. What is said of it never names the URL, which
    /// may hold a secret.
    async fn send(&self, notification: &Notification) -> Result<(), Failure> {
        let request = self
            .client
            .post(&self.webhook.url)
            .timeout(self.answer_within)
            .header(CONTENT_TYPE, "application/json")
            .header(DELIVERY_HEADER, &notification.id)
            .body(notification.payload.clone());
        let error = match request.send().await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => {
                let told = format!("the receiver answered {}", response.status());
                return Err(Failure { told, hung: false });
            }
            Err(error) => error,
        };
        let hung = error.is_timeout();
        let told = if hung {
            "the receiver did not answer in time".into()
        } else if error.is_connect() {
            "the receiver can't be reached".into()
        } else {
            error.without_url().to_string()
        };
        Err(Failure { told, hung })
    }

    async fn note(&mut self) -> Result<(), StoreError> {
        let Some((id, attempt)) = &self.not_noted else { return Ok(()) };
        let result = match attempt {
            Attempt::Delivered { .. } => "delivered",
            Attempt::Failed { .. } => "failed",
            Attempt::GivenUp { .. } => "given_up",
        };
        let counted = self.metrics.count_notified(WEBHOOK, result, 1);
        let mut transaction = alerts::begin(&self.store).await?;
        transaction.note_attempt(id, attempt).await?;
        transaction.add_totals(counted.totals()).await?;
        transaction.commit().await?;
        self.metrics.notified(&counted);
        if let Attempt::Failed { error, .. } | Attempt::GivenUp { error } = attempt {
            tracing::warn!(delivery = %id, result, error, "a notification was not delivered");
        }
        self.not_noted = None;
        Ok(())
    }
}

/// What comes of this answer.
fn attempt(notification: &Notification, answer: Result<(), Failure>, now_us: i64) -> Attempt {
    match answer {
        Ok(()) => Attempt::Delivered { at_us: now_us },
        Err(Failure { told: error, .. })
            if now_us >= notification.created_us.saturating_add(GIVE_UP_AFTER_US) =>
        {
            Attempt::GivenUp { error }
        }
        Err(Failure { told: error, .. }) => {
            let next_attempt_us = now_us.saturating_add(backoff_us(notification.attempts));
            Attempt::Failed { next_attempt_us, error }
        }
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
