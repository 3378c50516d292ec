//! Findings as the API and the pages read them.
//!
//! Newest first, by keyset (`last_us`, `id`): page 1,000 costs what page 1 costs. A filter that
//! matches little would make the database walk the whole table, so one request looks at a bounded
//! number of rows and says how far it got.

use super::db::{Connection, Row, query, query_as, query_scalar};
use super::gauges::read_amount;
use super::step::part;
use super::{Store, StoreError};
use crate::audit::Finding;
use crate::limits;
use crate::outcome::Amounts;

/// A finding as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingRow {
    /// The verdict.
    pub finding: Finding,
    /// When the judge first wrote it.
    pub opened_us: i64,
    /// When it last gained a confirmed occurrence.
    pub gained_us: Option<i64>,
}

/// Which findings; what is `None` is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingFilter {
    /// Which rule.
    pub kind: Option<String>,
    /// Which service.
    pub service: Option<String>,
    /// Which env.
    pub env: Option<String>,
    /// Which book.
    pub ledger: Option<String>,
    /// Whose money.
    pub player: Option<String>,
    /// How sure.
    pub state: Option<String>,
    /// How bad.
    pub severity: Option<String>,
    /// With an occurrence at or after this moment.
    pub from_us: Option<i64>,
    /// With an occurrence at or before this moment.
    pub to_us: Option<i64>,
}

/// The place of a finding in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingKey {
    /// Its newest occurrence.
    pub last_us: i64,
    /// Its id.
    pub id: String,
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingPage {
    /// What matched.
    pub rows: Vec<FindingRow>,
    /// Where to go on; `None` at the end.
    pub next: Option<FindingKey>,
    /// The number of the last change to any finding: parts, and sums, of one number are of one
    /// instant.
    pub as_of: i64,
}

/// Sums of findings, of one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSums {
    /// By ledger, service, env and kind.
    pub sums: Vec<FindingSum>,
    /// As [`FindingPage::as_of`].
    pub as_of: i64,
}

/// Sums over the confirmed and open findings of one kind, service, env and ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSum {
    /// Which rule.
    pub kind: String,
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// Which book; empty where the kind has none.
    pub ledger: String,
    /// Rows that were ever confirmed.
    pub confirmed_ever: i64,
    /// Rows that are confirmed now.
    pub open_confirmed: i64,
    /// Rows that are suspected now.
    pub open_suspected: i64,
    /// What the confirmed and open ones come to.
    pub amounts: Amounts,
}

/// The end of what one request looks at: read from the index alone.
const HORIZON: &str = "SELECT last_us, id, count(*) OVER () FROM \
     (SELECT last_us, id FROM findings WHERE (last_us, id) < ($1, $2) AND last_us >= $3 \
      ORDER BY last_us DESC, id DESC LIMIT $4) AS seen ORDER BY last_us, id LIMIT 1";

const LIST: &str = "SELECT body, opened_us, gained_us FROM findings \
     WHERE (last_us, id) < ($1, $2) AND (last_us, id) >= ($3, $4) \
     AND ($5 IS NULL OR kind = $5) AND ($6 IS NULL OR service = $6) \
     AND ($7 IS NULL OR env = $7) AND ($8 IS NULL OR ledger = $8) \
     AND ($9 IS NULL OR player = $9) AND ($10 IS NULL OR state = $10) \
     AND ($11 IS NULL OR severity = $11) AND ($12 IS NULL OR first_us <= $12) \
     ORDER BY last_us DESC, id DESC LIMIT $13";

/// Above every id: ids are lower-case hexadecimal.
const ABOVE_EVERY_ID: &str = "~";

impl Store {
    /// Findings that match, newest first, from `after` on, all of one instant; looks at
    /// `limits::SCAN_ROWS_MAX` rows at most.
    pub async fn findings(
        &self,
        filter: &FindingFilter,
        after: Option<&FindingKey>,
        limit: u32,
    ) -> Result<FindingPage, StoreError> {
        let newest = FindingKey { last_us: i64::MAX, id: ABOVE_EVERY_ID.into() };
        let start = after.unwrap_or(&newest);
        let mut snapshot = self.readers().begin().await?;
        let as_of = as_of(&mut snapshot).await?;
        let Some((end, is_last)) = horizon(&mut snapshot, start, filter.from_us).await? else {
            return Ok(FindingPage { rows: Vec::new(), next: None, as_of });
        };
        let rows = between(&mut snapshot, filter, start, &end, limit).await?;
        let reached = match rows.last() {
            Some(row) if rows.len() >= limit as usize => key_of(&row.finding),
            _ => end.clone(),
        };
        let next = (!is_last || reached != end).then_some(reached);
        Ok(FindingPage { rows, next, as_of })
    }
}

/// The last row that a request from `start` on may look at, and whether it is the last of all;
/// `None` if there is no row.
async fn horizon(
    snapshot: &mut Connection,
    start: &FindingKey,
    from_us: Option<i64>,
) -> Result<Option<(FindingKey, bool)>, StoreError> {
    let row: Option<(i64, String, i64)> = query_as(HORIZON)
        .bind(start.last_us)
        .bind(&start.id)
        .bind(from_us.unwrap_or(i64::MIN))
        .bind(limits::SCAN_ROWS_MAX)
        .fetch_optional(snapshot)
        .await?;
    Ok(row.map(|(last_us, id, seen)| {
        (FindingKey { last_us, id }, seen < i64::from(limits::SCAN_ROWS_MAX))
    }))
}

/// Findings that match, below `start` and down to `end`.
async fn between(
    snapshot: &mut Connection,
    filter: &FindingFilter,
    start: &FindingKey,
    end: &FindingKey,
    limit: u32,
) -> Result<Vec<FindingRow>, StoreError> {
    let rows = query(LIST)
        .bind(start.last_us)
        .bind(&start.id)
        .bind(end.last_us)
        .bind(&end.id)
        .bind(&filter.kind)
        .bind(&filter.service)
        .bind(&filter.env)
        .bind(&filter.ledger)
        .bind(&filter.player)
        .bind(&filter.state)
        .bind(&filter.severity)
        .bind(filter.to_us)
        .bind(limit)
        .fetch_all(snapshot)
        .await?;
    rows.iter().map(read_row).collect()
}

const AS_OF: &str = "SELECT CAST(body AS BIGINT) FROM audit_state WHERE part = $1 AND name = ''";

/// The number of the last change to any finding.
async fn as_of(snapshot: &mut Connection) -> Result<i64, StoreError> {
    let change = query_scalar(AS_OF).bind(part::CHANGE).fetch_optional(snapshot).await?;
    Ok(change.unwrap_or(0))
}

fn key_of(finding: &Finding) -> FindingKey {
    FindingKey { last_us: finding.last_us, id: finding.id.clone() }
}

const ONE: &str = "SELECT body, opened_us, gained_us FROM findings WHERE id = $1";

impl Store {
    /// One finding.
    pub async fn finding(&self, id: &str) -> Result<Option<FindingRow>, StoreError> {
        let row = query(ONE).bind(id).fetch_optional(self.readers()).await?;
        row.as_ref().map(read_row).transpose()
    }
}

const OPEN: &str = "SELECT body, opened_us, gained_us FROM findings \
     WHERE state <> 'closed' AND severity = $1 \
     AND ($2 IS NULL OR service = $2) ORDER BY last_us DESC, id DESC LIMIT $3";

impl Store {
    /// Open findings of one severity, newest first, of one service if it is given.
    pub async fn open_findings(
        &self,
        severity: &str,
        service: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FindingRow>, StoreError> {
        let rows = query(OPEN)
            .bind(severity)
            .bind(service)
            .bind(limit.min(limits::LIST_ROWS_MAX))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_row).collect()
    }
}

const OF_PLAYER: &str = "SELECT body, opened_us, gained_us FROM findings \
     WHERE ledger = $1 AND player = $2 ORDER BY last_us DESC, id DESC LIMIT $3";

impl Store {
    /// The newest findings about one player of one ledger.
    pub async fn findings_of_player(
        &self,
        ledger: &str,
        player: &str,
        limit: u32,
    ) -> Result<Vec<FindingRow>, StoreError> {
        let rows = query(OF_PLAYER)
            .bind(ledger)
            .bind(player)
            .bind(limit.min(limits::LIST_ROWS_MAX))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_row).collect()
    }
}

const SUMS: &str = "SELECT kind, service, env, ledger, confirmed_ever, open_confirmed, \
     open_suspected, overpaid, overcharged, underpaid, undercharged, exposure FROM finding_sums \
     WHERE ($1 IS NULL OR service = $1) AND open_confirmed + open_suspected > 0 \
     ORDER BY ledger, service, env, kind LIMIT $2";

impl Store {
    /// The sums of all open findings, of one service if it is given. `limits::SCAN_ROWS_MAX` of
    /// them may not be all.
    pub async fn finding_sums(&self, service: Option<&str>) -> Result<FindingSums, StoreError> {
        let mut snapshot = self.readers().begin().await?;
        let as_of = as_of(&mut snapshot).await?;
        let rows =
            query(SUMS).bind(service).bind(limits::SCAN_ROWS_MAX).fetch_all(&mut snapshot).await?;
        let sums: Result<_, _> = rows.iter().map(read_sum).collect();
        Ok(FindingSums { sums: sums?, as_of })
    }
}

fn read_row(row: &Row) -> Result<FindingRow, StoreError> {
    let body: &str = row.try_get(0)?;
    let finding = serde_json::from_str(body)
        .map_err(|error| StoreError::Unreadable { table: "findings", detail: error.to_string() })?;
    Ok(FindingRow { finding, opened_us: row.try_get(1)?, gained_us: row.try_get(2)? })
}

fn read_sum(row: &Row) -> Result<FindingSum, StoreError> {
    Ok(FindingSum {
        kind: row.try_get(0)?,
        service: row.try_get(1)?,
        env: row.try_get(2)?,
        ledger: row.try_get(3)?,
        confirmed_ever: row.try_get(4)?,
        open_confirmed: row.try_get(5)?,
        open_suspected: row.try_get(6)?,
        amounts: Amounts {
            overpaid: amount(row, 7)?,
            overcharged: amount(row, 8)?,
            underpaid: amount(row, 9)?,
            undercharged: amount(row, 10)?,
            exposure: amount(row, 11)?,
        },
    })
}

fn amount(row: &Row, column: usize) -> Result<i128, StoreError> {
    read_amount(row.try_get(column)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Kind, Severity, State};
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(
        lists_newest_first_and_goes_on_by_key,
        a_filter_that_matches_little_looks_at_a_bounded_part_and_says_how_far_it_got,
        each_filter_filters,
        finds_one_by_id_open_ones_and_those_of_a_player,
        sums_beyond_64_bits_come_back_exact
    );

    async fn ids(store: &Store, filter: &FindingFilter) -> Vec<String> {
        let page = store.findings(filter, None, 100).await.unwrap();
        page.rows.into_iter().map(|row| row.finding.id).collect()
    }

    async fn lists_newest_first_and_goes_on_by_key(Fixture { store, _folder }: Fixture) {
        for n in 1..=5_i64 {
            let mut finding = fixtures::leak(&format!("{n:032x}"), 100);
            // Two of one moment: the id tells them apart.
            finding.last_us = if n < 3 { 7 } else { n * 10 };
            fixtures::insert_finding(&store, &finding).await;
        }
        let mut after = None;
        let mut seen = Vec::new();
        loop {
            let filter = FindingFilter::default();
            let page = store.findings(&filter, after.as_ref(), 2).await.unwrap();
            seen.extend(page.rows.into_iter().map(|row| row.finding.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1].map(|n| format!("{n:032x}")));
    }

    async fn a_filter_that_matches_little_looks_at_a_bounded_part_and_says_how_far_it_got(
        Fixture { store, _folder }: Fixture,
    ) {
        fixtures::insert_finding(&store, &fixtures::leak("00", 100)).await;
        fixtures::run(
            &store,
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10500) \
             INSERT INTO findings SELECT 'x' || (n + 100000), 'other', 'info', 'closed', 's', 'e', \
             NULL, NULL, 0, 1796050000000000 + n, 'never read', 0, NULL, 0 FROM n",
        )
        .await;
        let kind = Some("duplicate_leak".to_owned());
        let filter = FindingFilter { kind, ..FindingFilter::default() };
        let first = store.findings(&filter, None, 10).await.unwrap();
        let reached = FindingKey { last_us: 1_796_050_000_000_501, id: "x100501".into() };
        assert_eq!((first.rows.len(), first.next.as_ref()), (0, Some(&reached)));
        let second = store.findings(&filter, first.next.as_ref(), 10).await.unwrap();
        assert_eq!((second.rows.len(), second.next), (1, None));
    }

    async fn each_filter_filters(Fixture { store, _folder }: Fixture) {
        let one = fixtures::leak("01", 100);
        let mut other = fixtures::leak("02", 100);
        other.kind = Kind::FalseBlock;
        other.service = "other".into();
        other.env = "stage".into();
        other.ledger = Some("gold".into());
        other.player = Some(crate::outcome::Id::parse("p-2").unwrap());
        other.state = State::Closed;
        other.severity = Severity::Warning;
        other.first_us = one.last_us + 10;
        other.last_us = one.last_us + 20;
        fixtures::insert_finding(&store, &one).await;
        fixtures::insert_finding(&store, &other).await;
        let all = FindingFilter::default;
        let text = |text: &str| Some(text.to_owned());
        for filter in [
            FindingFilter { kind: text("false_block"), ..all() },
            FindingFilter { service: text("other"), ..all() },
            FindingFilter { env: text("stage"), ..all() },
            FindingFilter { ledger: text("gold"), ..all() },
            FindingFilter { player: text("p-2"), ..all() },
            FindingFilter { state: text("closed"), ..all() },
            FindingFilter { severity: text("warning"), ..all() },
            FindingFilter { from_us: Some(one.last_us + 1), ..all() },
        ] {
            assert_eq!(ids(&store, &filter).await, ["02"], "{filter:?}");
        }
        let until = FindingFilter { to_us: Some(one.last_us + 9), ..all() };
        assert_eq!(ids(&store, &until).await, ["01"]);
        let none = FindingFilter { kind: text("false_block"), state: text("open"), ..all() };
        assert_eq!(ids(&store, &none).await, [""; 0]);
    }

    async fn finds_one_by_id_open_ones_and_those_of_a_player(Fixture { store, _folder }: Fixture) {
        let one = fixtures::leak("01", 100);
        let closed = Finding { id: "02".into(), state: State::Closed, ..one.clone() };
        let minor = Finding { id: "03".into(), severity: Severity::Info, ..one.clone() };
        for finding in [&one, &closed, &minor] {
            fixtures::insert_finding(&store, finding).await;
        }
        assert_eq!(store.finding("01").await.unwrap().unwrap().finding, one);
        assert_eq!(store.finding("zz").await.unwrap(), None);
        let open = store.open_findings("critical", None, 10).await.unwrap();
        assert_eq!(open.iter().map(|row| &row.finding.id).collect::<Vec<_>>(), ["01"]);
        assert_eq!(store.open_findings("critical", Some("nobody"), 10).await.unwrap(), []);
        let of_player = store.findings_of_player("chips", "p-1001", 10).await.unwrap();
        assert_eq!(of_player.len(), 3);
        assert_eq!(store.findings_of_player("gold", "p-1001", 10).await.unwrap(), []);
    }

    async fn sums_beyond_64_bits_come_back_exact(Fixture { store, _folder }: Fixture) {
        let big = i128::from(i64::MAX) * 3;
        fixtures::insert_sum(&store, "duplicate_leak", "settle", "chips", big).await;
        let sums = store.finding_sums(Some("settle")).await.unwrap().sums;
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[0].amounts.overpaid, big);
        assert_eq!(store.finding_sums(Some("nobody")).await.unwrap().sums, []);
        assert_eq!(store.finding_sums(None).await.unwrap().sums, sums);
        fixtures::run(&store, "UPDATE finding_sums SET open_confirmed = 0").await;
        assert_eq!(store.finding_sums(None).await.unwrap().sums, [], "nothing of it is open");
    }
}
