//! What may be asked of an application, and as which SQL: built of constants and numbered parameters, with nothing that anybody
//! typed in its text.

use std::collections::BTreeSet;

use crate::own_cluster::spellings;
use crate::report::Millis;
use crate::statement::{Value, parameter};

/// Different letters of what is typed, beside those of ASCII, whose capitals are looked for.
const LETTERS: usize = 32;

/// What may be one of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Where it runs.
    Environment,
    /// Who reports it.
    Runtime,
    /// Its Argo CD project.
    Project,
    /// Its health.
    Health,
    /// The status of its sync.
    Sync,
    /// The cluster that it is deployed to.
    Cluster,
    /// The product that it belongs to.
    Product,
}

/// One condition; all of them hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Somewhere in its names, commit, labels or images: in the first 64 KiB of all of it. [`Condition::Image`] looks through all
    /// images, and [`Condition::Label`] through all labels.
    Text(String),
    /// One of these values.
    AnyOf(Field, Vec<String>),
    /// It has this label, of this value where one is given.
    Label(String, Option<String>),
    /// Part of an image's name or version.
    Image(String),
    /// Part of the name of a resource of its that is there, or of `Kind/name`.
    Resource(String),
    /// The beginning of its revision.
    Commit(String),
    /// Part of the name of who wrote its commit.
    Author(String),
    /// It was deployed at this moment or later, or an operation to do so ended otherwise then, or goes on.
    DeployedSince(Millis),
}

impl Condition {
    /// As SQL about the tables `a` and `r`, with what that is compared to behind other values.
    pub(crate) fn sql(&self, values: &mut Vec<Value>) -> String {
        match self {
            Self::Text(text) => {
                let like = like(values, "%", text, "%");
                // In capitals or not: one of the two databases tells them apart.
                format!("(a.search {like} OR lower(r.name) {like} OR lower(a.environment) {like})")
            }
            Self::AnyOf(field, all) => {
                let all = if *field == Field::Cluster { spellings(all) } else { all.clone() };
                let field = match field {
                    Field::Environment => "a.environment",
                    Field::Runtime => "r.name",
                    Field::Project => "a.project",
                    Field::Health => "a.health",
                    Field::Sync => "a.sync",
                    Field::Cluster => "a.cluster",
                    Field::Product => "a.product",
                };
                let all: Vec<String> = all.iter().map(|one| parameter(values, &**one)).collect();
                if all.is_empty() {
                    return "1 = 0".to_owned();
                }
                format!("{field} IN ({})", all.join(", "))
            }
            Self::Label(key, value) => {
                let text = value.as_ref().map_or(format!("{key}="), |value| format!("{key}={value}\n"));
                format!("lower(a.labels) {}", like(values, "%\n", &text, "%"))
            }
            Self::Image(text) => format!("lower(a.images) {}", like(values, "%", text, "%")),
            Self::Resource(text) => {
                let like = like(values, "%", text, "%");
                format!(
                    "EXISTS (SELECT 1 FROM entities e WHERE e.application_id = a.id AND e.kind <> '' AND e.gone = 0 \
                     AND lower(e.kind || '/' || e.name) {like})"
                )
            }
            Self::Commit(text) => {
                // Of an application of several sources any of its revisions.
                let (first, other) = (like(values, "", text, "%"), like(values, "%,", text, "%"));
                format!("(lower(a.revision) {first} OR lower(a.revision) {other})")
            }
            Self::Author(text) => {
                let author = lower(values, "a.author", text);
                format!("{author} {}", like(values, "%", text, "%"))
            }
            Self::DeployedSince(at) => {
                let at = parameter(values, *at);
                format!(
                    "(a.deployed_at >= {at} OR a.phase_at >= {at} OR a.phase IN ('Running', 'Terminating'))"
                )
            }
        }
    }
}

fn like(values: &mut Vec<Value>, before: &str, text: &str, after: &str) -> String {
    let pattern = format!("{before}{}{after}", literal(text));
    format!("LIKE {} ESCAPE '!'", parameter(values, Value::Text(pattern)))
}

/// A column in lower case, as far as a text has letters: by itself SQLite, and Postgres where it is told no language, knows no other
/// capitals than those of ASCII.
fn lower(values: &mut Vec<Value>, column: &str, text: &str) -> String {
    let lower = text.to_lowercase();
    let others: BTreeSet<char> = lower.chars().filter(|letter| !letter.is_ascii()).collect();
    let mut column = format!("lower({column})");
    for letter in others.into_iter().take(LETTERS) {
        let mut capital = letter.to_uppercase();
        if let (Some(capital), None) = (capital.next().filter(|one| *one != letter), capital.next()) {
            let [capital, letter] =
                [capital, letter].map(|one| parameter(values, Value::Text(one.to_string())));
            column = format!("replace({column}, {capital}, {letter})");
        }
    }
    column
}

/// Text that means itself within a pattern; what is searched is kept in lower case.
pub(crate) fn literal(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}
