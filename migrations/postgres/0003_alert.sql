-- Alerts and the log of what was sent about them.

CREATE TABLE alerts (
    rule TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    -- 'pending', 'firing', 'resolved'.
    state TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL,
    started_us BIGINT NOT NULL,
    ended_us BIGINT,
    -- The instance as JSON (`alert::Instance`).
    body TEXT NOT NULL,
    PRIMARY KEY (rule, service, env)
);

-- One row for each notification; kept as the log of deliveries.
CREATE TABLE notifications (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    receiver TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C" NOT NULL,
    env TEXT COLLATE "C" NOT NULL,
    -- Why it was sent: 'fired', 'resolved', 'grew', 'severity_rose', 'amount_grew'.
    because TEXT COLLATE "C" NOT NULL,
    created_us BIGINT NOT NULL,
    payload TEXT NOT NULL,
    -- 'waiting', 'delivered', 'given_up'.
    state TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_us BIGINT NOT NULL,
    last_error TEXT,
    delivered_us BIGINT
);

CREATE INDEX notifications_waiting ON notifications (next_attempt_us) WHERE state = 'waiting';
CREATE INDEX notifications_of_alert ON notifications (rule, service, env, created_us)
    WHERE state = 'waiting';
CREATE INDEX notifications_by_delivery ON notifications (delivered_us)
    WHERE delivered_us IS NOT NULL;
CREATE INDEX notifications_by_time ON notifications (created_us);

-- How far the engine has read the changes of the findings.
CREATE TABLE alert_cursor (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    change BIGINT NOT NULL
);
