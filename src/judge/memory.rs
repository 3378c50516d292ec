//! What the judge keeps in memory: read back at the start, and let go of beyond a bound.

use crate::audit::{Advice, Audit, Group, Ledger, Opened, Row, Service, Settings, Source, Waiting};
use crate::store::{Store, StoreError, part};

/// Players kept between steps: 5 KiB each, 100 MB.
const PLAYERS_MAX: usize = 20_000;
/// Settlements kept between steps, and as many refs, rooms and messages: under 1 KiB each, 50 MB.
const SETTLEMENTS_MAX: usize = 50_000;

/// The audit as it was after the last stored step. `settings` hold from the first record on; later
/// ones are records themselves.
pub(crate) async fn restore(store: &Store, settings: &Settings) -> Result<Audit, StoreError> {
    store.begin_audit(settings).await?;
    let mut stored: Vec<Settings> = store.read_part_by_name(part::SETTINGS, &[""]).await?;
    let settings = stored.pop().unwrap_or_else(|| settings.clone());
    let mut audit = Audit::new(settings, store.hash());
    let mut sources: Vec<Source> = store.read_part(part::SOURCE).await?;
    sources.sort_by_key(|source| source.id);
    sources.into_iter().for_each(|source| audit.sources.restore(source));
    for ledger in store.read_part::<Ledger>(part::LEDGER).await? {
        audit.ledgers.restore(ledger, &audit.sources);
    }
    for service in store.read_part::<Service>(part::SERVICE).await? {
        audit.restore_service(service);
    }
    for advice in store.read_part::<Advice>(part::ADVICE).await? {
        audit.restore_advice(advice);
    }
    for group in store.read_part::<Group>(part::GROUP).await? {
        audit.restore_group(group);
    }
    for more in store.read_part::<Row>(part::MORE).await? {
        audit.book.restore_more(more);
    }
    for opened in store.read_part::<Opened>(part::OPENED).await? {
        audit.book.restore_opened(opened);
    }
    for waiting in store.read_part::<Waiting>(part::WAIT).await? {
        audit.waits.restore(waiting);
    }
    for (key, sums) in store.read_sums().await? {
        audit.book.restore_sums(key, sums);
    }
    if let Some(received_us) = store.read_part(part::RECEIVED).await?.pop() {
        audit.restore_received(received_us);
    }
    Ok(audit)
}

/// Lets go of stored facts beyond the bound.
pub(crate) fn bound(audit: &mut Audit) {
    audit.facts.forget_beyond(PLAYERS_MAX, SETTLEMENTS_MAX);
}
