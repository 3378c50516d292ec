-- The log and what the ack writes beside it. All else is a fold of `records`.

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE collectors (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- (collector, n) is the position: n without holes, given by that collector's one writer.
CREATE TABLE records (
    collector INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    received_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (collector, n)
) WITHOUT ROWID;

-- One row for each guard instance.
CREATE TABLE sources (
    id INTEGER NOT NULL PRIMARY KEY,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    source TEXT NOT NULL,
    -- Receipt of the newest push or heartbeat.
    last_push_us INTEGER NOT NULL,
    -- Receipt of the newest heartbeat; NULL until the first: not watched.
    last_heartbeat_us INTEGER,
    -- 'open', 'silent', 'closed' (said goodbye).
    state TEXT NOT NULL,
    UNIQUE (service, env, source)
);

-- One row for each run of a source. The sets are JSON arrays of [first, last].
CREATE TABLE boots (
    id INTEGER NOT NULL PRIMARY KEY,
    source_id INTEGER NOT NULL REFERENCES sources (id),
    boot TEXT NOT NULL,
    first_received_us INTEGER NOT NULL,
    last_received_us INTEGER NOT NULL,
    -- Highest number that a heartbeat named.
    last_seq_named INTEGER NOT NULL,
    closing INTEGER NOT NULL,
    received TEXT NOT NULL,
    refused TEXT NOT NULL,
    lost TEXT NOT NULL,
    given_up TEXT NOT NULL,
    -- From which number on holes are waited for: 1, or where the first boot was first heard.
    heard_from INTEGER NOT NULL,
    -- Content hashes of the newest heartbeats, by which a repeat is seen: a JSON array.
    heartbeats TEXT NOT NULL,
    UNIQUE (source_id, boot)
);

-- The ledgers that records name.
CREATE TABLE ledgers (
    name TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- 8 bytes an event, by which a repeat with other content is seen: a row for each run of
-- numbers that one group wrote.
CREATE TABLE hashes (
    boot_id INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (boot_id, first_seq)
) WITHOUT ROWID;

CREATE TABLE event_ids (
    id BLOB NOT NULL PRIMARY KEY,
    content INTEGER NOT NULL,
    day INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX event_ids_by_day ON event_ids (day);

-- Refusals and conflicts that became a record, so that each becomes one once.
CREATE TABLE noted (
    id BLOB NOT NULL PRIMARY KEY,
    day INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX noted_by_day ON noted (day);

-- The newest groups, looked up after an unclear error.
CREATE TABLE commits (
    id TEXT NOT NULL PRIMARY KEY,
    collector INTEGER NOT NULL,
    last_n INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    -- JSON: counts for each request of the group.
    answers TEXT NOT NULL
) WITHOUT ROWID;

-- Outcomes by minute of occurrence.
CREATE TABLE rollups (
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    minute INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (service, env, minute, outcome)
) WITHOUT ROWID;

-- For the pages, which ask for a span of time over all services.
CREATE INDEX rollups_by_minute ON rollups (minute);

-- Latencies by minute of occurrence: metric is 'check' or 'response', buckets a JSON array of
-- counts in the order of `limits::LATENCY_BUCKETS_US`, the last one without an upper bound.
CREATE TABLE latencies (
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    minute INTEGER NOT NULL,
    metric TEXT NOT NULL,
    buckets TEXT NOT NULL,
    sum_us INTEGER NOT NULL,
    PRIMARY KEY (service, env, minute, metric)
) WITHOUT ROWID;

-- What the counters go on from after a restart; `collector` 0 is the judge's.
CREATE TABLE totals (
    collector INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- JSON array of label values.
    labels TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (collector, name, labels)
) WITHOUT ROWID;
