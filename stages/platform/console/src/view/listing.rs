//! A page of a filtered list.

use super::application::ApplicationRow;

/// A group of a list.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How many of the filter stand in it.
    pub count: u64,
}

/// A page of the applications that a filter leaves.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The groups, what needs attention first; one without a name where nothing is grouped.
    pub groups: Vec<Group>,
    /// The rows of this page, in the order of the groups.
    pub rows: Vec<ApplicationRow>,
    /// How many the filter leaves.
    pub matching: u64,
    /// How many there are at all.
    pub total: u64,
    /// How many runtimes are known.
    pub runtimes: u64,
}
