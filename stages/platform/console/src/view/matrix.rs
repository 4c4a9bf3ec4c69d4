//! The same application in each environment.

use std::collections::BTreeMap;

use super::application::ApplicationRow;

/// Environments that have a column of their own.
const COLUMNS: usize = 12;

/// A page of a matrix.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    /// The environments, as changes usually pass through them.
    pub environments: Vec<String>,
    /// The names of this page.
    pub rows: Vec<MatrixRow>,
    /// How many names the filter leaves.
    pub names: u64,
    /// How many applications the filter leaves.
    pub matching: u64,
    /// How many there are at all.
    pub total: u64,
    /// How many runtimes are known.
    pub runtimes: u64,
    /// There are more of these names than are shown.
    pub is_cut: bool,
}

/// An application by the name that it has without its environment.
#[derive(Debug, Clone)]
pub struct MatrixRow {
    /// The name.
    pub name: String,
    /// Those that have it, for each environment.
    pub cells: Vec<Vec<ApplicationRow>>,
    /// How many have it in environments without a column.
    pub elsewhere: u64,
}

impl Matrix {
    /// Rows whose group is their name without their environment become one for each name, in their order. Of many environments
    /// those with the most applications have a column.
    #[must_use]
    pub fn of(applications: Vec<ApplicationRow>) -> Self {
        let mut counts = BTreeMap::<String, usize>::new();
        for one in &applications {
            *counts.entry(one.environment.clone()).or_default() += 1;
        }
        let mut environments: Vec<(String, usize)> = counts.into_iter().collect();
        environments.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        environments.truncate(COLUMNS);
        let mut environments: Vec<String> = environments.into_iter().map(|(name, _)| name).collect();
        environments.sort_by_key(|name| (stage(name), name.clone()));
        let mut rows: Vec<MatrixRow> = Vec::new();
        for one in applications {
            if rows.last().is_none_or(|row| row.name != one.group) {
                let cells = vec![Vec::new(); environments.len()];
                rows.push(MatrixRow { name: one.group.clone(), cells, elsewhere: 0 });
            }
            let Some(row) = rows.last_mut() else { continue };
            let column = environments.iter().position(|name| *name == one.environment);
            match column.and_then(|column| row.cells.get_mut(column)) {
                Some(cell) => cell.push(one),
                None => row.elsewhere += 1,
            }
        }
        Self { environments, rows, ..Self::default() }
    }
}

/// How far from users an environment usually is, by how it is called.
fn stage(environment: &str) -> u8 {
    let name = environment.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    // `preprod` and `pre-production` are none yet.
    if is(&["stag", "uat", "pre"]) {
        3
    } else if is(&["prod", "prd", "live"]) {
        4
    } else if is(&["dev"]) {
        0
    } else if is(&["test", "qa", "int"]) {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests {
    use stages_platform_store::ApplicationName;

    use super::*;
    use crate::view::state::{Health, SyncStatus};

    fn row(name: &str, environment: &str) -> ApplicationRow {
        ApplicationRow {
            id: ApplicationName {
                runtime: "eu-1".to_owned(),
                namespace: "argocd".to_owned(),
                name: format!("{name}-{environment}"),
            },
            health: Health::Healthy,
            sync: SyncStatus::Synced,
            environment: environment.to_owned(),
            project: String::new(),
            version: None,
            change: None,
            deployed: None,
            group: name.to_owned(),
        }
    }

    #[test]
    fn environments_stand_as_changes_pass_through_them_and_names_in_their_order() {
        let pairs = [
            ("pay", "production"),
            ("pay", "dev"),
            ("pay", "dev"),
            ("mail", "qa"),
            ("mail", "staging"),
            ("mail", "eu"),
        ];
        let matrix = Matrix::of(pairs.map(|(name, environment)| row(name, environment)).into());
        assert_eq!(matrix.environments, ["dev", "qa", "eu", "staging", "production"]);
        let counts: Vec<(&str, Vec<usize>)> =
            matrix.rows.iter().map(|row| (&*row.name, row.cells.iter().map(Vec::len).collect())).collect();
        assert_eq!(counts, [("pay", vec![2, 0, 0, 0, 1]), ("mail", vec![0, 1, 1, 1, 0])]);
    }

    #[test]
    fn of_many_environments_those_with_the_most_have_a_column_and_the_others_are_counted() {
        let mut all: Vec<ApplicationRow> =
            (0..20).map(|number| row("pay", &format!("n{number:02}"))).collect();
        all.push(row("pay", "n19"));
        let matrix = Matrix::of(all);
        assert_eq!((matrix.environments.len(), matrix.rows.len(), matrix.rows[0].elsewhere), (COLUMNS, 1, 8));
        assert!(matrix.environments.contains(&"n19".to_owned()));
    }
}
