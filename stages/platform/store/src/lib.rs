//! The store of the platform: SQLite or Postgres, behind one enum and with one set of statements.
//!
//! Postgres is 13 or newer: an older one is refused when the store is opened.
//!
//! Of SQLite one process writes, and a second one is refused. Of Postgres several may: each transaction that writes has a turn, and what is
//! set or kept by one the others read. What is kept in memory, such as limits, is each process' own.

mod accounts;
mod audit;
mod backup;
mod believed_clock;
mod change;
mod cluster;
mod columns;
mod connection;
mod database;
mod error;
mod file_lock;
mod fleet;
mod group;
mod heard;
mod held;
mod identity;
mod key;
mod limits;
mod lock_wait;
mod metrics;
mod migrations;
mod own_cluster;
mod pass;
mod people;
mod phase;
mod placement;
#[cfg(test)]
mod plan;
mod read;
mod registration;
mod report;
mod retention;
mod rows;
mod rule;
mod runtime_name;
mod saved_view;
mod sealing_key;
mod secret;
mod sequence;
mod server;
mod settings;
mod shared_configuration;
mod statement;
mod store;
mod subject;
mod texts;
mod token;
mod version_source;
mod visible;
mod waiting;
mod writer;

pub use accounts::{Account, Link, Role};
pub use audit::{Act, By, RecordedAct};
pub use backup::{backup, restore};
pub use change::{CommitOf, FileDiff, MadeFrom, SourceChange};
pub use cluster::{TOLD_CLUSTERS, ToldCluster};
pub use database::Place;
pub use error::StoreError;
pub use fleet::{
    ApplicationName, BLAMED_FOR, Changed, ChangedNames, Condition, DRIFT_TOGETHER, DayOfDeployments,
    DriftManifests, DriftOf, Drifting, DriftingResource, Field, Figures, FleetCluster, FleetDeployment,
    FleetMatrix, FleetMover, FleetNeed, FleetRuntime, FoundResource, GroupBy, KnownApplication,
    ListedApplication, MATRIX_CELLS, MOST_DRIFTS, MOST_OF_LIFE, MOST_SHIPPED, MOST_STEPS, ManifestsAt,
    Mistyped, ObjectAt, Page, Position, ResourceAt, SeenWorkflow, Selection, Shipped, SortBy, StateOf,
    StepOf, Term, WhichWorkflows, Within,
};
pub use heard::{HeardRole, RefusedReports, SILENT};
pub use held::{HeldApplication, NumberedApplication, ObjectState};
pub use identity::{Identified, Identity, PROVIDED_LASTS, Provided};
pub use key::{API_KEYS, Key, KnownKey, Scope};
pub use limits::Limits;
pub use own_cluster::{OWN_CLUSTER, OWN_CLUSTER_SERVER};
pub use pass::{PASS_LASTS, Pass};
pub use people::{Person, RULES, Session};
pub use phase::{PhaseHealth, Phased};
pub use placement::{Placement, version};
pub use read::{Application, Deployment, Drift, Transition};
pub use registration::Registration;
pub use report::{
    Commit, DAY, Delivery, EntityName, Listing, Millis, Operation, Outcome, Pods, Report, ResourceName, Text,
    group_of,
};
pub use retention::Retention;
pub use rule::{
    Access, Action, Attribute, AttributeName, Decision, Entity, Rule, Subject, View, check_team, name_of,
};
pub use runtime_name::{is_new_runtime_name, runtime_id};
pub use saved_view::{SAVED_VIEWS, SavedView};
pub use sealing_key::{SEALING_KEYS, SealingKey};
pub use sequence::{Sequence, Waited};
pub use settings::{RetentionDays, TooOld};
pub use shared_configuration::SharedConfiguration;
pub use store::{Store, StoreConfig, Writing, adopt, create_token, revoke_token, tokens};
pub use subject::KnownSubject;
pub use token::{Runtime, Token};
pub use version_source::VersionSource;
pub use visible::{ChangedApplications, SeenApplication, Which};
