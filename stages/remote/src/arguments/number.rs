//! Numbers, as they are typed.

use std::str::FromStr;

/// A whole number of a kind: from 1 on where that has no 0.
pub(crate) fn number<T: FromStr + TryFrom<u32>>(text: &str) -> Result<T, String> {
    let least = u8::from(T::try_from(0).is_err());
    text.parse().map_err(|_| match text.parse::<u128>() {
        Ok(number) if number > 0 => format!("'{text}' is too large a number"),
        _ => format!("'{text}' is no whole number from {least} on"),
    })
}

#[cfg(test)]
mod tests {
    use clap::{Command, Subcommand as _};

    use crate::arguments::app::AppCommand;
    use crate::arguments::rollout::RolloutCommand;
    use crate::arguments::workflow::WorkflowCommand;

    fn refused(line: &str) -> String {
        let app = AppCommand::augment_subcommands(Command::new("app"));
        let rollout = RolloutCommand::augment_subcommands(Command::new("rollout"));
        let workflow = WorkflowCommand::augment_subcommands(Command::new("workflow"));
        let all = Command::new("test").subcommands([app, rollout, workflow]);
        let error = all.try_get_matches_from(["test"].into_iter().chain(line.split(' '))).unwrap_err();
        error.to_string().lines().next().unwrap().to_owned()
    }

    #[test]
    fn what_is_no_number_is_refused_with_what_is_wanted() {
        let (one, none) = ("is no whole number from 1 on", "is no whole number from 0 on");
        for (line, value, flag, said) in [
            ("app list --limit 0", "0", "--limit <NUMBER>", one),
            ("app history shop --limit abc", "abc", "--limit <NUMBER>", one),
            ("app events shop --limit=-1", "-1", "--limit <NUMBER>", one),
            ("app logs shop --tail abc", "abc", "--tail <NUMBER>", one),
            ("app logs shop --tail 5000000000", "5000000000", "--tail <NUMBER>", "is too large a number"),
            ("app rollback shop abc", "abc", "[ID]", none),
            ("app sync shop --retry 70000", "70000", "--retry <NUMBER>", "is too large a number"),
            ("app sync shop --retry 1.5", "1.5", "--retry <NUMBER>", none),
            ("rollout rollback Rollout/web --to abc", "abc", "--to <REVISION>", none),
            ("workflow list --limit 0", "0", "--limit <NUMBER>", one),
        ] {
            assert_eq!(
                refused(line),
                format!("error: invalid value '{value}' for '{flag}': '{value}' {said}"),
                "{line}"
            );
        }
    }
}
