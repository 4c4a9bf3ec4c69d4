use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// The words of a command of this program in a line of a shell, up to where another one begins.
fn words(line: &str) -> Option<Vec<String>> {
    let (before, text) = line.split_once("gitops-runtime ")?;
    let (mut words, mut quote) = (vec![String::new()], None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => words.last_mut()?.push(c),
            (None, '\'' | '"') if before.contains('\'') => break,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '>' | '<' | ';' | '&' | ')' | '#' | '`') => break,
            // Behind two spaces stands what is said beside a command.
            (None, ' ') if text.get(at..).is_some_and(|rest| rest.starts_with("  ")) => break,
            (None, ' ') => words.push(String::new()),
            (None, _) => words.last_mut()?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let is_other = before.trim_start().starts_with("helm ");
    (!is_other).then(|| [vec!["gitops-runtime".to_owned()], words].concat())
}

/// The examples of a command and of all below it.
fn examples(command: &clap::Command, found: &mut Vec<String>) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut goes_on = false;
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        let (line, next) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        match found.last_mut() {
            Some(before) if goes_on => before.push_str(line.trim_start()),
            _ => found.push(line.to_owned()),
        }
        goes_on = next;
    }
    command.get_subcommands().for_each(|one| examples(one, found));
}

#[test]
fn every_example_and_every_command_of_the_readme_is_taken_as_it_is_printed() {
    let mut lines = Vec::new();
    examples(&Cli::command(), &mut lines);
    let blocks = include_str!("../../README.md").split("```").skip(1).step_by(2);
    lines.extend(
        blocks.filter_map(|block| block.strip_prefix("sh\n")).flat_map(str::lines).map(str::to_owned),
    );
    let commands: Vec<_> = lines.iter().filter_map(|line| Some((line, words(line)?))).collect();
    assert!(commands.len() > 250, "{}", commands.len());
    for (line, words) in commands {
        if let Err(error) = Cli::command().try_get_matches_from(&words) {
            panic!("{line}: {words:?}: {error}");
        }
    }
}

/// Without one it is the runtime's name that is looked in.
#[test]
fn every_example_of_files_that_a_cluster_is_asked_about_names_the_namespace() {
    let mut lines = Vec::new();
    examples(&Cli::command(), &mut lines);
    lines.retain(|line| line.contains("gitops-runtime validate -f") && !line.contains("--skip cluster"));
    assert!(lines.len() > 2, "{lines:?}");
    for line in lines {
        assert!(line.contains("--namespace "), "{line}");
    }
}

#[test]
fn a_path_that_leaves_the_repository_is_wrong_use() {
    for command in ["commits", "manifests"] {
        let line = format!("x git {command} --path apps/../../shop");
        let error = Cli::command().try_get_matches_from(line.split_whitespace()).unwrap_err();
        let said = "error: invalid value 'apps/../../shop' for '--path <PATH>': it is to begin at the root of the repository, \
                    such as apps/shop\n";
        assert!(error.to_string().starts_with(said), "{line}: {error}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn a_check_of_no_place_or_in_a_shape_that_it_has_not_is_wrong_use() {
    for (line, said) in [
        (
            "x check access",
            "error: the following required arguments were not provided:\n  <--namespace <NAME>|--url <URL>>\n",
        ),
        (
            "x check http://a --format json",
            "error: the argument '[URL]' cannot be used with '--format <FORMAT>'\n",
        ),
    ] {
        let error = Cli::command().try_get_matches_from(line.split_whitespace()).unwrap_err();
        assert!(error.to_string().starts_with(said), "{line}: {error}");
        assert_eq!(error.exit_code(), 2);
    }
    for line in ["x check -n a --format json", "x check http://a", "x check access -n a --url http://a"] {
        assert!(Cli::command().try_get_matches_from(line.split_whitespace()).is_ok(), "{line}");
    }
}

#[test]
fn every_flag_names_a_setting() {
    let line = "x reporter --sink stdout --kubeconfig k --context c --namespace n --application-namespaces a \
                --argocd-url http://a --argocd-token-file t --argocd-ca-file f --argocd-insecure \
                --platform-url http://p --platform-token-file t --bus nats://n --ledger l --state s --listen 127.0.0.1:1 \
                --log-level info --log-format text";
    let Command::Reporter(settings) = Cli::parse_from(line.split_whitespace()).command else {
        panic!("not the reporter");
    };
    let known = crate::config::setting_paths();
    for (path, flag, _) in settings.given().flags {
        assert!(known.contains(&path), "{flag} sets {path}, which there is not");
    }
    let line = "x router --listen 127.0.0.1:1 --app-proxy-url http://a --workflows-url http://w";
    let Command::Router(router) = Cli::parse_from(line.split_whitespace()).command else {
        panic!("not the router");
    };
    assert!(router.given().flags.iter().all(|(path, ..)| known.contains(path)));
    let line = "x app-proxy --listen 127.0.0.1:1 --platform-url http://p --platform-token-file t --argocd-url http://a \
                --argocd-token-file t --kubeconfig k";
    let Command::AppProxy(proxy) = Cli::parse_from(line.split_whitespace()).command else {
        panic!("not the app proxy");
    };
    assert!(proxy.given().flags.iter().all(|(path, ..)| known.contains(path)));
    let line = "x source-server --listen 127.0.0.1:1 --token-file t --repository https://a/b=/c";
    let Command::SourceServer(given) = Cli::parse_from(line.split_whitespace()).command else {
        panic!("not the source server");
    };
    assert!(given.given().flags.iter().all(|(path, ..)| known.contains(path)));
    let line = ["x", "/usr/local/bin/event-reporter-server"];
    assert!(matches!(Cli::parse_from(line).command, Command::Reporter(_)));
}
