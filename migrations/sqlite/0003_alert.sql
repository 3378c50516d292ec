-- Alerts and the log of what was sent about them.

CREATE TABLE alerts (
    rule TEXT NOT NULL,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    -- 'pending', 'firing', 'resolved'.
    state TEXT NOT NULL,
    severity TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    ended_us INTEGER,
    -- The instance as JSON (`alert::Instance`).
    body TEXT NOT NULL,
    PRIMARY KEY (rule, service, env)
) WITHOUT ROWID;

-- One row for each notification; kept as the log of deliveries.
CREATE TABLE notifications (
    id TEXT NOT NULL PRIMARY KEY,
    receiver TEXT NOT NULL,
    rule TEXT NOT NULL,
    service TEXT NOT NULL,
    env TEXT NOT NULL,
    -- Why it was sent: 'fired', 'resolved', 'grew', 'severity_rose', 'amount_grew'.
    because TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    payload TEXT NOT NULL,
    -- 'waiting', 'delivered', 'given_up'.
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_us INTEGER NOT NULL,
    last_error TEXT,
    delivered_us INTEGER
) WITHOUT ROWID;

CREATE INDEX notifications_waiting ON notifications (next_attempt_us) WHERE state = 'waiting';
CREATE INDEX notifications_of_alert ON notifications (rule, service, env, created_us)
    WHERE state = 'waiting';
CREATE INDEX notifications_by_delivery ON notifications (delivered_us)
    WHERE delivered_us IS NOT NULL;
CREATE INDEX notifications_by_time ON notifications (created_us);

-- How far the engine has read the changes of the findings.
CREATE TABLE alert_cursor (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    change INTEGER NOT NULL
);
