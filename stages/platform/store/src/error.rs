//! Why the store could not do what it was asked.

use pipeline_core::Reason;

/// Why the store could not do what it was asked. Nothing of what was to be kept stands in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room for it.
    #[error("the store's disk is full: make room, or shorten platformServer.retention")]
    Full(#[source] sqlx::Error),
    /// Its file is not what was written.
    #[error(
        "the store is damaged: stop the platform, and restore a backup with `gitops-runtime platform restore`"
    )]
    Damaged(#[source] sqlx::Error),
    /// The server or the disk does not answer.
    #[error("the store cannot be reached")]
    Away(#[source] sqlx::Error),
    /// Postgres reads and does not write.
    #[error(
        "Postgres takes nothing that is written: it is a standby, as after a fail-over, or read-only, as some providers make it while its \
         disk is nearly full"
    )]
    ReadOnly(#[source] sqlx::Error),
    /// Postgres is asked for by a URL of another kind, or by one that cannot be read.
    #[error(
        "the URL of the store (platformServer.store.postgresUrl, or its file) is to be postgres://user:password@host/name, \
         with what is special in the password percent-encoded, such as %2F for /"
    )]
    Url(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// Postgres is asked for at more than one host.
    #[error(
        "the URL of the store (platformServer.store.postgresUrl, or its file) names several hosts, and one is connected to: name the \
         address that leads to whichever takes writes, as of a cluster, a Service or a proxy"
    )]
    Hosts,
    /// Postgres cannot be connected to.
    #[error("cannot connect to Postgres at {address}")]
    Unconnected {
        /// Its host and port, or its socket.
        address: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Postgres knows nobody of this name, or not by this password. What it says of that names them.
    #[error(
        "Postgres at {address} does not let this user in ({code}): see user and password of platformServer.store.postgresUrl, \
         and its pg_hba.conf"
    )]
    NotLetIn {
        /// Its host and port, or its socket.
        address: String,
        /// Its word for why.
        code: String,
    },
    /// The file of the URL names another server, or another database of it, while the one before lets nobody in.
    #[error(
        "the store is in {from}, which lets this user in no longer, and the file of its URL names {to} now: restart the platform to \
         open the store that is there"
    )]
    Moved {
        /// Where it is.
        from: String,
        /// What the file names.
        to: String,
    },
    /// Postgres lacks what the tables are made of.
    #[error("Postgres at {address} is of version {version}: 13 or newer is needed")]
    OldPostgres {
        /// Its host and port, or its socket.
        address: String,
        /// Its version, without the part behind the dot.
        version: u32,
    },
    /// The database has not every character that may be reported.
    #[error(
        "the database {name} is encoded as {encoding}, which has not every character that may be reported: make one with \
         CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding {
        /// Its server and what it is called.
        name: String,
        /// Its encoding.
        encoding: String,
    },
    /// Whoever is let in has no right to the tables, or to make them.
    #[error(
        "Postgres does not let the user of platformServer.store.postgresUrl make, change and use the tables of the store: make it the \
         owner of the tables that there are, and GRANT USAGE, CREATE ON SCHEMA public TO it, which since version 15 only the owner \
         of the database has without that"
    )]
    NoRight(#[source] sqlx::Error),
    /// Whoever stands between gives each transaction another connection to Postgres.
    #[error(
        "Postgres is reached through a pooler that gives each transaction another connection: let it keep one for each session \
         (PgBouncer: pool_mode = session), or connect to Postgres itself"
    )]
    Pooled(#[source] sqlx::Error),
    /// Somebody else has it.
    #[error("another process has the store {0} open: stop it first")]
    InUse(String),
    /// The file system of its file has no locks.
    #[error(
        "cannot lock {path}: the store is to be on a disk of this machine, as network file systems may have no locks, or in Postgres"
    )]
    NoLock {
        /// Which file was to be locked.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A newer version wrote it.
    #[error(
        "the store was written by a newer version of gitops-runtime: run that one, or restore an earlier backup"
    )]
    Newer,
    /// The same, with the copy beside it that the newer version made before it changed the tables.
    #[error(
        "the store was written by a newer version of gitops-runtime: run that one, or go back to how it was before that with \
         `gitops-runtime platform restore {0}`"
    )]
    NewerWithCopy(String),
    /// A newer version wrote a backup.
    #[error(
        "the backup {0} was written by a newer version of gitops-runtime: restore an earlier one, or run that version"
    )]
    NewerBackup(String),
    /// The copy that is made before the tables change could not be written.
    #[error(
        "the store is as it was: before its tables change it is copied to {path}, which takes {mebibytes} MiB of room there, \
         and the copy cannot be written"
    )]
    NotCopied {
        /// Where to.
        path: String,
        /// How large the store is.
        mebibytes: u64,
        /// Why not.
        source: Box<Self>,
    },
    /// The tables could not be brought to this version's shape.
    #[error("cannot migrate the store")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// A file could not be read or written.
    #[error("cannot {act} {path}")]
    File {
        /// What was to be done.
        act: &'static str,
        /// With which file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The system gives no random bytes.
    #[error("cannot make a secret")]
    Random(#[source] getrandom::Error),
    /// What is kept is not what it should be.
    #[error("the store holds something that cannot be read")]
    Unreadable(#[source] std::io::Error),
    /// Postgres is backed up by its own tools.
    #[error(
        "this store is in Postgres: back it up with pg_dump, restore it with pg_restore, and before the platform starts run \
         SELECT setval('transitions_id_seq', nextval('transitions_id_seq') + 1000000 + floor(extract(epoch FROM now()))::bigint - 1767225600), \
         so that nobody takes what comes for what they were told before"
    )]
    ForSqliteAlone,
    /// The backup is to be a new file.
    #[error("{0} exists: name a file that does not")]
    Exists(String),
    /// There is nowhere to put the backup.
    #[error("there is no folder {0} for the backup: make it, or name a file in another")]
    NoFolder(String),
    /// The backup cannot be put where it is to be.
    #[error("cannot write the backup {path}: name a file that can be written")]
    Target {
        /// Where.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// What is to be restored is none.
    #[error("{0} is no backup of a store, or is damaged")]
    NoBackup(String),
    /// A name that no runtime may have.
    #[error("'{0}' is no name of a runtime: lower-case letters and digits, a letter first, at most 38")]
    Name(String),
    /// A name that no runtime of an adopter has either.
    #[error(
        "'{0}' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins and ends with one of the first \
         two, and has at most 63"
    )]
    AdoptedName(String),
    /// A runtime would be told by what another is told by.
    #[error("'{name}' would have the id '{id}', which '{of}' has: choose another name")]
    SameId {
        /// What it was to be called.
        name: String,
        /// What it would be told by.
        id: String,
        /// Which runtime is told by that.
        of: String,
    },
    /// Somebody has as many keys as they may have.
    #[error("you have {0} keys: take one back first")]
    ManyKeys(usize),
    /// What was to be changed is not as it was when that was asked for.
    #[error("what was to be changed is not there any more: nothing was changed")]
    Gone,
    /// It no longer takes anything.
    #[error("the store is closed")]
    Closed,
    /// One that must migrate it first has not run.
    #[error(
        "the store was written by an older version of gitops-runtime: start the platform once, which migrates it"
    )]
    Older,
    /// A report has what the database can hold in no row.
    #[error("the store cannot hold a report like this")]
    Unfit(#[source] sqlx::Error),
    /// Nothing was kept there yet.
    #[error("there is no store {0}: start the platform, or make a token")]
    NoStore(String),
    /// No such token.
    #[error("there is no token {0}: `gitops-runtime platform token list` shows those that there are")]
    NoToken(String),
    /// What names a token is something else, which may be a token itself.
    #[error("a token is named as `gitops-runtime platform token list` shows it, such as gort_0123abcd")]
    TokenName,
    /// Anything else that the database said.
    #[error("the store refused a statement")]
    Refused(#[source] sqlx::Error),
}

impl StoreError {
    /// A row that all others rely on is not there.
    pub(crate) fn missing() -> Self {
        Self::Unreadable(std::io::ErrorKind::NotFound.into())
    }

    /// Whether it may be the fault of what was to be kept rather than of the store.
    pub(crate) fn may_be_of_one_report(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unfit(_))
    }

    /// Whether it may be the fault of the connection, so that another one may do better.
    pub(crate) const fn may_be_of_the_connection(&self) -> bool {
        matches!(self, Self::Away(_) | Self::ReadOnly(_) | Self::NoRight(_) | Self::Pooled(_))
    }

    /// For metrics.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Away(_)
            | Self::ReadOnly(_)
            | Self::Unconnected { .. }
            | Self::NotLetIn { .. }
            | Self::Moved { .. } => Reason::Unreachable,
            Self::Closed => Reason::Stopping,
            _ => Reason::Io,
        }
    }
}

/// Whether Postgres refuses a statement to this user: a table is not theirs, or there is no schema that they may make one in.
pub(crate) fn has_no_right(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(said) = error else { return false };
    matches!(said.code().as_deref(), Some("42501" | "3F000"))
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(database) => database.code().unwrap_or_default().into_owned(),
            sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => {
                return Self::Away(error);
            }
            _ => return Self::Refused(error),
        };
        // SQLite gives the extended result code, whose low byte is the kind; Postgres five letters.
        match (code.len() < 5).then(|| code.parse::<u32>().map(|code| code & 0xff)) {
            Some(Ok(13)) => Self::Full(error),
            Some(Ok(11 | 26)) => Self::Damaged(error),
            Some(Ok(5 | 6 | 8 | 10 | 14)) => Self::Away(error),
            // Too large, and of the wrong type.
            Some(Ok(18 | 20)) => Self::Unfit(error),
            Some(_) => Self::Refused(error),
            None if has_no_right(&error) => Self::NoRight(error),
            // A statement that this connection prepared is not there, or one that it did not is.
            None if ["26000", "42P05"].contains(&&*code) => Self::Pooled(error),
            None => match &*code {
                "25006" => Self::ReadOnly(error),
                "53100" => Self::Full(error),
                // Of its class these two alone say so: the rest is whatever whoever stands between has no other word for.
                "XX001" | "XX002" => Self::Damaged(error),
                _ => match code.get(..2) {
                    // A datum that is none of its type, and a limit of a row or of an index.
                    Some("22" | "54") => Self::Unfit(error),
                    Some("08" | "25" | "40" | "53" | "55" | "57") => Self::Away(error),
                    _ => Self::Refused(error),
                },
            },
        }
    }
}
