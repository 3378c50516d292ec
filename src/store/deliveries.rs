//! What is delivered next, and notes about how that went. Apart from the alerts: the courier goes
//! at the pace of the receiver, an evaluation at that of the findings.

use super::alerts::{AlertTransaction, Attempt, Notification};
use super::db::{query, query_as};
use super::{Store, StoreError};

pub(super) const DUE: &str = "SELECT n.id, n.receiver, n.rule, n.service, n.env, n.because, \
     n.created_us, n.payload, n.attempts FROM notifications AS n LEFT JOIN alerts AS a \
     ON a.rule = n.rule AND a.service = n.service AND a.env = n.env \
     WHERE n.state = 'waiting' AND n.next_attempt_us <= $1 \
     AND NOT EXISTS (SELECT 1 FROM notifications AS earlier WHERE earlier.state = 'waiting' \
     AND earlier.rule = n.rule AND earlier.service = n.service AND earlier.env = n.env \
     AND (earlier.created_us, earlier.id) < (n.created_us, n.id)) \
     ORDER BY a.severity IS DISTINCT FROM 'critical', n.created_us, n.id LIMIT 1";

impl Store {
    /// What is to be sent next: what is about a critical alert first, then the oldest; of one
    /// alert only the oldest, so that nobody hears of an end before its beginning.
    pub async fn due_notification(&self, now_us: i64) -> Result<Option<Notification>, StoreError> {
        type Row = (String, String, String, String, String, String, i64, String, i64);
        let row: Option<Row> = query_as(DUE).bind(now_us).fetch_optional(self.readers()).await?;
        Ok(row.map(|row| {
            let (id, receiver, rule, service, env, because, created_us, payload, attempts) = row;
            let key = (rule, service, env);
            Notification { id, receiver, key, because, created_us, payload, attempts }
        }))
    }
}

/// What was superseded while it was under way, and got there, is delivered.
const NOTE: &str = "UPDATE notifications SET state = $2, attempts = attempts + 1, \
     next_attempt_us = COALESCE($3, next_attempt_us), last_error = $4, delivered_us = $5 \
     WHERE id = $1 AND (state = 'waiting' OR $2 = 'delivered')";
pub(super) const WAKE: &str = "UPDATE notifications SET next_attempt_us = $2 \
     WHERE state = 'waiting' AND next_attempt_us > $2 \
     AND receiver = (SELECT receiver FROM notifications WHERE id = $1)";

impl AlertTransaction<'_> {
    /// Notes how an attempt went. A delivery shows that the receiver is back: what waits for it
    /// is due.
    pub async fn note_attempt(&mut self, id: &str, attempt: &Attempt) -> Result<(), StoreError> {
        let (state, next_attempt_us, error, delivered_us) = match attempt {
            Attempt::Delivered { at_us } => ("delivered", None, None, Some(*at_us)),
            Attempt::Failed { next_attempt_us, error } => {
                ("waiting", Some(*next_attempt_us), Some(error), None)
            }
            Attempt::GivenUp { error } => ("given_up", None, Some(error), None),
        };
        query(NOTE)
            .bind(id)
            .bind(state)
            .bind(next_attempt_us)
            .bind(error)
            .bind(delivered_us)
            .execute(&mut *self.inner)
            .await?;
        if let Some(at_us) = delivered_us {
            query(WAKE).bind(id).bind(at_us).execute(&mut *self.inner).await?;
        }
        Ok(())
    }
}
