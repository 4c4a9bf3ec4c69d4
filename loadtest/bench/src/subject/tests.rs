use super::*;

fn command(text: &str) -> anyhow::Result<Command> {
    text.parse()
}

#[test]
fn a_command_line_is_split_as_a_shell_does_and_keeps_its_text() {
    let text = "A=1 B_2='two words' ./reporter --at {argocd} 'x y' C=3";
    let command = command(text).unwrap();
    assert_eq!(command.text, text);
    assert_eq!(Subject::Given(command).name(), text);
}

#[test]
fn a_command_line_that_cannot_be_run_is_refused() {
    for (text, told) in [
        ("./reporter 'open", "split the command line: a quote is not closed"),
        ("", "the command line names no program"),
        ("A=1 B=2", "the command line names no program"),
        (
            "A={argo} ./reporter",
            "there is no placeholder {argo}; there are {kubeconfig}, {argocd}, {argocd_host}, {argocd_token}, \
             {platform}, {token}, {port}, {state}, {replica}, {replicas}",
        ),
    ] {
        assert_eq!(command(text).unwrap_err().to_string(), told, "{text}");
    }
    // Braces that are no placeholder stay.
    assert!(command("./reporter '{\"a\": 1}' {} {A}").is_ok());
}

#[test]
fn what_is_told_is_summed_over_shards() {
    let busy = Figures { observed: 5, queued: 2, waiting: 1, in_flight: 1, acked: 1, ..Figures::default() };
    let idle = Figures { observed: 7, acked: 7, ..Figures::default() };
    let told = Told { shards: vec![busy, idle] };
    assert_eq!((told.idle(), told.observed()), (false, 12));
    assert!(Told { shards: vec![idle] }.idle());
}
