PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'reports','2026-11-25 10:33:13',1,X'6dd827ea105568d26d62ecec8258a556aa29000c0f81befc24298eface55a436c1067c6b21a91697438654fe33f0d149',6062846);
INSERT INTO _sqlx_migrations VALUES(2,'fleet','2026-11-25 10:33:13',1,X'53858c9f2f48ac3407eb57551b6f5999379849102a33be421749bdd47556325ff77aafa8cc790660b980cdb8b722a335',5329746);
INSERT INTO _sqlx_migrations VALUES(3,'accounts','2026-11-25 10:33:13',1,X'44731640fb4b7b69cdc0191f3468bebd450a2b00c8980f003e6cf069da5b900b569277e0ec02b109dba3f3eb3149bd6f',1155526);
INSERT INTO _sqlx_migrations VALUES(4,'access','2026-11-25 10:33:13',1,X'0f2b846c41f1aba955c932664ae0012a4974439f7d628fef6c166db9d38318979246ac64300c84d24b8a0c3577cba908',2028573);
INSERT INTO _sqlx_migrations VALUES(5,'retention','2026-11-25 10:33:13',1,X'33e298b1389874b7149abe5e5eab7259508e379f89f38b1f6f9d364aec516a9e23deb9c1af02b4b48eb65cc9faaf7e0d',921288);
INSERT INTO _sqlx_migrations VALUES(6,'seen','2026-11-25 10:33:13',1,X'06c421b06b4328337d8cc393259b50edeef383e843656c975174cf6615762e36cda9edbeb40aa4485e6d60b5145438b2',1307662);
INSERT INTO _sqlx_migrations VALUES(7,'acts','2026-11-25 10:33:13',1,X'5b20ef420c364bb3c062b04d53341f13c6e3cf167df160687276605afcfb21131650434b5de52bb6adbad5e84ebc1ef9',4838056);
INSERT INTO _sqlx_migrations VALUES(8,'identities','2026-11-25 10:33:13',1,X'a3efd6f44ebaf09d34015c97ede460934d4d8368ee4e736cdacf57e846f5503e0c1943a7b538e648b59e7accd1f2aa0a',1000);
CREATE TABLE runtimes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
, seen_at INTEGER, lag INTEGER);
INSERT INTO runtimes VALUES(1,'prod',1795602793598,NULL,NULL);
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL
);
INSERT INTO tokens VALUES(1,1,'57bfe976',X'04e50ca6b652989939a8f551c46387daab1f04174848cb5b443f09b8bc40de35',1795602793598);
CREATE TABLE reports (
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    key BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (runtime_id, key)
) WITHOUT ROWID;
CREATE TABLE applications (
    id INTEGER PRIMARY KEY,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    held_uid TEXT NOT NULL DEFAULT '',
    listed BLOB NOT NULL DEFAULT x'', project TEXT NOT NULL DEFAULT '', environment TEXT NOT NULL DEFAULT '', cluster TEXT NOT NULL DEFAULT '', destination TEXT NOT NULL DEFAULT '', repository TEXT NOT NULL DEFAULT '', path TEXT NOT NULL DEFAULT '', images TEXT NOT NULL DEFAULT '[]', version TEXT NOT NULL DEFAULT '', revision TEXT NOT NULL DEFAULT '', author TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', search TEXT NOT NULL DEFAULT '', health TEXT NOT NULL DEFAULT 'Unknown', health_since INTEGER NOT NULL DEFAULT 0, health_message TEXT NOT NULL DEFAULT '', sync TEXT NOT NULL DEFAULT 'Unknown', sync_since INTEGER NOT NULL DEFAULT 0, phase TEXT NOT NULL DEFAULT '', phase_at INTEGER NOT NULL DEFAULT 0, phase_message TEXT NOT NULL DEFAULT '', deployed_at INTEGER, reported_at INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0, product TEXT NOT NULL DEFAULT '', labels TEXT NOT NULL DEFAULT '',
    UNIQUE (runtime_id, namespace, name)
);
CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL REFERENCES applications (id),
    api_version TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    listing BLOB NOT NULL,
    current INTEGER,
    latest INTEGER,
    content BLOB NOT NULL DEFAULT x'',
    held_key BLOB,
    uid TEXT NOT NULL DEFAULT '',
    version INTEGER,
    object_created_at INTEGER,
    at INTEGER NOT NULL DEFAULT 0,
    UNIQUE (application_id, kind, name, namespace, api_version)
);
CREATE TABLE transitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    entity_id INTEGER NOT NULL REFERENCES entities (id),
    at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    reports INTEGER NOT NULL DEFAULT 1,
    uid TEXT NOT NULL,
    version INTEGER,
    deleted INTEGER NOT NULL,
    sync TEXT,
    health TEXT,
    health_message TEXT,
    revision TEXT,
    object_is_json INTEGER NOT NULL,
    object BLOB,
    actual BLOB,
    desired BLOB,
    git BLOB,
    details BLOB
);
CREATE TABLE blobs (
    digest BLOB PRIMARY KEY,
    refs INTEGER NOT NULL,
    size INTEGER NOT NULL,
    zstd BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE deployments (
    id INTEGER PRIMARY KEY,
    application_id INTEGER NOT NULL REFERENCES applications (id),
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    phase TEXT NOT NULL,
    revision TEXT NOT NULL,
    initiated_by TEXT NOT NULL,
    commit_author TEXT NOT NULL,
    commit_message TEXT NOT NULL,
    commit_date TEXT NOT NULL,
    images TEXT NOT NULL, message TEXT NOT NULL DEFAULT '',
    UNIQUE (application_id, started_at)
);
CREATE TABLE drifts (
    id INTEGER PRIMARY KEY,
    entity_id INTEGER NOT NULL REFERENCES entities (id),
    onset INTEGER NOT NULL,
    ended INTEGER,
    repeats INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL
, disabled INTEGER NOT NULL DEFAULT 0);
INSERT INTO users VALUES(1,'ada','$argon2id$made-up','admin',1795000000000,0);
INSERT INTO users VALUES(2,'lin','$argon2id$other','member',1795000000000,0);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
INSERT INTO sessions VALUES(1,X'7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed',2,1795000000000,1795000060000);
CREATE TABLE links (
    digest BLOB PRIMARY KEY,
    until INTEGER NOT NULL
, user_id INTEGER REFERENCES users (id) ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE members (
    team TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, team)
);
INSERT INTO members VALUES('shop',2);
CREATE TABLE rules (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
INSERT INTO rules VALUES(1,'{"entityType":"gitopsApplications","teams":["shop"],"tags":[],"actions":["VIEW"],"attributes":[]}',1795000000000);
INSERT INTO rules VALUES(2,'{"entityType":"gitopsApplications","teams":["ops"],"tags":[],"actions":["VIEW"],"attributes":[]}',1795000000000);
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
INSERT INTO keys VALUES(1,2,'abababab',X'5273e2199718b4c553ca73fd2a4dac1d44c728d12902545db31c7cf954e0216c','ci','read',1795000000000,1795000060000);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    how TEXT NOT NULL,
    act TEXT NOT NULL,
    subject TEXT NOT NULL
);
INSERT INTO audit VALUES(1,1795000000000,'ada','link','user.add','ada');
INSERT INTO audit VALUES(2,1795000000000,'ada','session','user.add','lin');
INSERT INTO audit VALUES(3,1795000000000,'ada','session','rule.add','{"entityType":"gitopsApplications","teams":["shop"],"tags":[],"actions":["VIEW"],"attributes":[]}');
INSERT INTO audit VALUES(4,1795000000000,'ada','session','rule.add','{"entityType":"gitopsApplications","teams":["ops"],"tags":[],"actions":["VIEW"],"attributes":[]}');
INSERT INTO audit VALUES(5,1795000000000,'ada','session','rule.add','{"entityType":"gitopsApplications","teams":["gone"],"tags":[],"actions":["VIEW"],"attributes":[]}');
INSERT INTO audit VALUES(6,1795000000000,'lin','session','key.add','ci');
INSERT INTO audit VALUES(7,1795000000000,'lin','session','key.add','old');
INSERT INTO audit VALUES(8,1795000000000,'ada','session','rule.change','3: {"entityType":"gitopsApplications","teams":["gone"],"tags":[],"actions":["VIEW"],"attributes":[]}');
INSERT INTO audit VALUES(9,1795000000000,'ada','session','rule.remove','3');
INSERT INTO audit VALUES(10,1795000000000,'lin','session','key.remove','2');
CREATE TABLE registrations (
    runtime_id INTEGER PRIMARY KEY REFERENCES runtimes (id),
    body TEXT NOT NULL,
    store_key TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE problems (
    runtime_id INTEGER PRIMARY KEY REFERENCES runtimes (id),
    body TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE passes (
    digest BLOB PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    runtime_id INTEGER NOT NULL REFERENCES runtimes (id),
    how TEXT NOT NULL,
    scope TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (user_id, issuer)
) WITHOUT ROWID;
INSERT INTO identities VALUES('https://provider.example','0001',2,1795000000000);
DELETE FROM sqlite_sequence;
CREATE INDEX reports_received ON reports (received_at);
CREATE INDEX entities_object ON entities (name, kind, namespace);
CREATE INDEX transitions_entity ON transitions (entity_id, id);
CREATE INDEX drifts_entity ON drifts (entity_id, ended);
CREATE INDEX transitions_at ON transitions (entity_id, at, id);
CREATE INDEX deployments_started ON deployments (started_at);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_until ON sessions (until);
CREATE INDEX keys_user ON keys (user_id);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX drifts_ended ON drifts (ended) WHERE ended IS NOT NULL;
CREATE INDEX deployments_finished ON deployments (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX deployments_unfinished ON deployments (started_at) WHERE finished_at IS NULL;
CREATE INDEX passes_until ON passes (until);
CREATE INDEX passes_user ON passes (user_id);
COMMIT;
