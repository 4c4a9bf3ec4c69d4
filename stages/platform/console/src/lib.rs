//! The console of the platform: what its people see of every application, in a browser.
//!
//! takes: [`Fleets`] (what is known, as somebody sees it) and the accounts of a store (who may see it) - gives: a router of pages, rendered here
//! calls: nobody - fails: a store that does not answer is a page that says so (503), never an empty list

mod assets;
mod console;
mod filter;
mod fleet;
mod installation;
mod page;
mod routes;
mod session;
mod stored;
mod time;
mod view;

pub use console::{Console, OidcSignIn, Settings};
pub use filter::Filter;
pub use fleet::{Changes, Fleet, Fleets, Side, Steps, Unavailable, Window};
pub use installation::{Installation, Left};
pub use routes::{Who, table};
pub use session::link::SignInLink;
pub use stored::StoredFleet;
pub use view::application::{
    Application, ApplicationRow, Cause, Change, Drift, DriftedResource, Life, ManifestSource, Problem, Span,
    Transition,
};
pub use view::cluster::ClusterRow;
pub use view::commit::{BroughtCommit, CommitFiles};
pub use view::deployment::{Deployment, ImageChange, Outcome};
pub use view::home::{Activity, Day, Home, Need, Said, Subject};
pub use view::listing::{Group, Listing};
pub use view::matrix::{Matrix, MatrixRow};
pub use view::resource::{Resource, ResourceKey, ResourceRow};
pub use view::runtime::{Added, RuntimeProblem, RuntimeRow};
pub use view::shipping::{Shipping, Trend};
pub use view::state::{Health, SyncStatus};
