//! The line that is completed, as far as it is typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Command as Parser, Subcommand as _};

use crate::arguments::app::AppNameArgs;
use crate::arguments::git::GitCommand;
use crate::arguments::{AppProxyArgs, Command, PlatformArgs};

/// The arguments of the command that is typed.
pub(super) struct Line(ArgMatches);

impl Line {
    /// That of this process, which a shell has complete it; `None`: it is none of these commands.
    pub(super) fn typed() -> Option<Self> {
        // What the shell asks stands before it.
        Self::read(std::env::args_os().skip_while(|word| word != "--").skip(1))
    }

    fn read(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let git = GitCommand::augment_subcommands(Parser::new("git"));
        let parser = Command::augment_subcommands(Parser::new("gitops-runtime")).subcommand(git);
        // A line that is completed lacks something.
        let mut matches = parser.ignore_errors(true).try_get_matches_from(words).ok()?;
        while let Some((_, inner)) = matches.remove_subcommand() {
            matches = inner;
        }
        Some(Self(matches))
    }

    /// What is typed for an argument.
    pub(super) fn text(&self, argument: &str) -> Option<String> {
        let text = self.0.try_get_one::<String>(argument).ok().flatten();
        text.filter(|text| !text.is_empty()).cloned()
    }

    /// The application, if one is typed.
    pub(super) fn application(&self) -> Option<AppNameArgs> {
        Some(AppNameArgs { name: self.text("name")?, runtime: self.text("runtime") })
    }

    /// Which way an act goes.
    pub(super) fn way(&self) -> AppProxyArgs {
        let ca_file = self.0.try_get_one::<PathBuf>("app_proxy_ca_file").ok().flatten();
        AppProxyArgs {
            place: PlatformArgs { context: self.text("context") },
            app_proxy: self.text("app_proxy"),
            app_proxy_ca_file: ca_file.cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_found_however_little_of_the_line_there_is() {
        let of = |line: &str| {
            let line = Line::read(line.split(' ').map(Into::into)).unwrap();
            ["name", "resource", "runtime", "context"].map(|argument| line.text(argument).unwrap_or_default())
        };
        assert_eq!(of("gitops-runtime app logs shop Dep"), ["shop", "Dep", "", ""]);
        assert_eq!(of("gitops-runtime app logs --runtime prod shop "), ["shop", "", "prod", ""]);
        assert_eq!(of("gitops-runtime app get --runtime=prod --context eu sh"), ["sh", "", "prod", "eu"]);
        assert_eq!(of("gitops-runtime app get --runtime"), ["", "", "", ""]);
        assert_eq!(of("gitops-runtime app list --runtime prod --none"), ["", "", "prod", ""]);
        assert_eq!(of("gitops-runtime git integration edit --context eu --name "), ["", "", "", "eu"]);
        assert_eq!(of("gitops-runtime"), [""; 4]);
    }
}
