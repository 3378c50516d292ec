//! What is known of each service, put together from sources, rates and findings; for the overview
//! and for `/api/v1/services`.

use std::collections::BTreeMap;

use crate::alert::rule::SILENT_US;
use crate::audit::{Advice, Measured};
use crate::limits::{self, DAY_US, MINUTE_US};
use crate::outcome::Amounts;
use crate::store::{FindingSum, FindingSums, SourceCount, Store, StoreError};

/// Minutes that rates look back: the last hour.
pub(super) const RATE_MINUTES: i64 = 60;

/// A silent source is gone after this long: no alert fires for it either.
pub(super) const GONE_US: i64 = SILENT_US;
/// A source that sends no heartbeats is told as not heard lately when the rates know nothing of it.
pub(super) const QUIET_US: i64 = RATE_MINUTES * MINUTE_US;

/// One service in one env.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceSummary {
    /// Outcomes of the last [`RATE_MINUTES`] by name.
    pub(super) outcomes: BTreeMap<String, i64>,
    /// Sources by state.
    pub(super) sources: BTreeMap<String, i64>,
    /// When any of its sources was last heard.
    pub(super) last_push_us: Option<i64>,
    /// (confirmed, suspected) open findings by kind.
    pub(super) findings: BTreeMap<String, (i64, i64)>,
    /// What the confirmed ones come to, by ledger; only ledgers with money at stake.
    pub(super) ledgers: BTreeMap<String, Amounts>,
}

impl ServiceSummary {
    /// Open findings: confirmed, suspected.
    pub(super) fn open(&self) -> (i64, i64) {
        self.findings.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}

/// Services by (service, env).
pub(super) type Services = BTreeMap<(String, String), ServiceSummary>;

/// What is known of the services.
pub(super) struct Summary {
    /// By (service, env).
    pub(super) services: Services,
    /// Whether there are more sums of open findings than are read.
    pub(super) is_cut: bool,
    /// The number of the last change to any finding that the sums know.
    pub(super) as_of: i64,
}

/// Reads all services, or the one that is named in all its envs.
pub(super) async fn read(
    store: &Store,
    now_us: i64,
    service: Option<&str>,
) -> Result<Summary, StoreError> {
    let minute = now_us.div_euclid(MINUTE_US);
    let mut services = Services::new();
    for count in store.source_counts(service, now_us - GONE_US, now_us - QUIET_US).await? {
        add_sources(&mut services, count);
    }
    let first = minute - RATE_MINUTES + 1;
    for row in store.outcomes_by_service(first, minute, service).await? {
        let summary = services.entry((row.service, row.env)).or_default();
        summary.outcomes.insert(row.outcome, row.count);
    }
    let FindingSums { sums, as_of } = store.finding_sums(service).await?;
    let is_cut = sums.len() >= limits::SCAN_ROWS_MAX as usize;
    sums.into_iter().for_each(|sum| add_findings(&mut services, sum));
    Ok(Summary { services, is_cut, as_of })
}

fn add_sources(services: &mut Services, count: SourceCount) {
    let summary = services.entry((count.service, count.env)).or_default();
    summary.last_push_us = summary.last_push_us.max(Some(count.last_push_us));
    summary.sources.insert(count.state, count.count);
}

fn add_findings(services: &mut Services, sum: FindingSum) {
    let summary = services.entry((sum.service, sum.env)).or_default();
    if sum.open_confirmed > 0 || sum.open_suspected > 0 {
        let count = summary.findings.entry(sum.kind).or_default();
        count.0 += sum.open_confirmed;
        count.1 += sum.open_suspected;
    }
    if sum.amounts != Amounts::default() {
        let amounts = summary.ledgers.entry(sum.ledger).or_default();
        *amounts = amounts.plus(sum.amounts);
    }
}

/// How long the histograms of the window advisor look back.
const MEASURED_US: i64 = DAY_US;

/// What the window advisor says of each service and env, or of the one that is named; with what
/// was measured in the last day, where the moment is given.
pub(super) async fn advice(
    store: &Store,
    service: Option<&str>,
    now_us: Option<i64>,
) -> Result<Vec<(Advice, Measured)>, StoreError> {
    let mut all = Vec::new();
    for advice in store.read_advice().await? {
        if service.is_some_and(|service| service != advice.service) {
            continue;
        }
        let measured = match now_us {
            None => Measured::default(),
            Some(now_us) => {
                let since = (now_us - MEASURED_US).div_euclid(MINUTE_US);
                store.measured_since(&advice.service, &advice.env, since).await?
            }
        };
        all.push((advice, measured));
    }
    Ok(all)
}
