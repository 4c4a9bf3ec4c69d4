//! The changes of the tables, in their order: how each database is told of them stands in a folder of its own.

/// A change of the tables: its version and its name, which together name its file in the folder of each database.
macro_rules! migration {
    ($version:literal, $digits:literal, $name:literal) => {
        (
            $version,
            $name,
            include_str!(concat!("../migrations/sqlite/", $digits, "_", $name, ".sql")),
            include_str!(concat!("../migrations/postgres/", $digits, "_", $name, ".sql")),
        )
    };
}

/// Every migration: its version, its name, SQLite's text, Postgres's text.
pub(crate) const MIGRATIONS: &[(i64, &str, &str, &str)] = &[
    migration!(1, "0001", "reports"),
    migration!(2, "0002", "fleet"),
    migration!(3, "0003", "accounts"),
    migration!(4, "0004", "access"),
    migration!(5, "0005", "retention"),
    migration!(6, "0006", "seen"),
    migration!(7, "0007", "acts"),
    migration!(8, "0008", "identities"),
    migration!(9, "0009", "numbers"),
    migration!(10, "0010", "changes"),
    migration!(11, "0011", "admins"),
    migration!(12, "0012", "places"),
    migration!(13, "0013", "reported"),
    migration!(14, "0014", "versions"),
    migration!(15, "0015", "diffs"),
    migration!(16, "0016", "saved_views"),
    migration!(17, "0017", "since"),
    migration!(18, "0018", "owners"),
    migration!(19, "0019", "namesakes"),
    migration!(20, "0020", "heard"),
    migration!(21, "0021", "public_ids"),
    migration!(22, "0022", "places_of_rows"),
    migration!(23, "0023", "pods"),
    migration!(24, "0024", "deployed_before"),
    migration!(25, "0025", "told"),
    migration!(26, "0026", "lists"),
    migration!(27, "0027", "workflows"),
    migration!(28, "0028", "account_uids"),
    migration!(29, "0029", "retried"),
    migration!(30, "0030", "last_deployed"),
    migration!(31, "0031", "eras"),
    migration!(32, "0032", "given"),
    migration!(33, "0033", "signed_in"),
    migration!(34, "0034", "ranges"),
    migration!(35, "0035", "reporter_heard"),
];

/// The newest of them.
pub(crate) const NEWEST: i64 = match MIGRATIONS.last() {
    Some((version, ..)) => *version,
    None => 0,
};

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;

    #[test]
    fn both_folders_have_the_same_numbers() {
        let folder = |name: &str| {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(name);
            let files = std::fs::read_dir(path).unwrap();
            let mut names: Vec<String> =
                files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let listed: Vec<String> =
            MIGRATIONS.iter().map(|(version, name, ..)| format!("{version:04}_{name}.sql")).collect();
        assert_eq!((folder("sqlite"), folder("postgres")), (listed.clone(), listed));
    }
}
