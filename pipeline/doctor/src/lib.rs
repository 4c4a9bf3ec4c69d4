//! The doctor: judges a file of values of the chart before it is installed, and makes values of the incumbent's.
//!
//! takes: files of values - gives: every finding at once, each with a stable code, file, line and path, what was
//! found and what is wanted; or the values that mean the same here, and what has no meaning here
//! calls: nothing by itself: a cluster is asked through [`Cluster`], peers through [`Network`], and what nobody could tell is said to be not
//! measured - fails: never; what cannot be read is a finding

mod access;
mod chart;
mod convert;
mod finding;
mod installation;
mod report;
mod rules;
mod tree;
mod unreadable;

pub use self::access::{Access, Hop, Side, Upgraded, Verdict, Visitor, Wanted, access};
pub use self::chart::{Chart, Value as ChartValue};
pub use self::convert::{Converted, Note, convert, convert_all};
pub use self::finding::{Finding, MASKED, Severity, Unmeasured, nearest};
pub use self::installation::{Installation, Looked, Part, installation};
pub use self::report::{Format, Report};
pub use self::rules::{
    Around, Certificate, Cluster, Network, PeerResponse, Proxies, Request, Tiers, Unreached, Way, codes,
    is_own_volume, validate,
};
pub use self::tree::{Dependency, File, Node, Value};
pub use self::unreadable::Unreadable;
