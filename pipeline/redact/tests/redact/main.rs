//! Every shape in which a secret was ever seen to travel, one test each. The shapes are data
//! (`cases/redact/<name>/in.{json,yaml,txt}`, with canaries to be filled in), so that others can send them
//! through the whole program; `UPDATE=1` rewrites what is expected of them.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use loadtest_judge::canary::{self, Canary, FIRST, SECOND};
use pipeline_redact::Redactor;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

fn cases(name: &str) -> BTreeSet<String> {
    let names: BTreeSet<String> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.is_empty(), "no case in {name}");
    names
}

/// The case's extension and text.
fn read(case: &Path) -> (&'static str, String) {
    let found: Vec<_> = ["json", "yaml", "txt"]
        .into_iter()
        .filter_map(|kind| Some((kind, fs::read_to_string(case.join(format!("in.{kind}"))).ok()?)))
        .collect();
    let [found] = <[_; 1]>::try_from(found).expect("one in.json, in.yaml or in.txt");
    found
}

fn redact<'t>(kind: &str, text: &'t str) -> Cow<'t, str> {
    let redactor = Redactor::new(b"the key of the tests");
    match kind {
        "json" => redactor.manifest(text),
        "yaml" => redactor.raw(text),
        _ => redactor.text(text),
    }
}

fn check(name: &str) {
    let case = folder("redact").join(name);
    let (kind, text) = read(&case);
    let with = |canary: &Canary| redact(kind, &canary::fill(&text, canary)).into_owned();
    let (first, second) = (with(&FIRST), with(&SECOND));
    canary::assert_absent(name, &first, &FIRST);
    assert_ne!(first, second, "a changed secret is not seen to have changed");
    assert_eq!(first, with(&FIRST), "an equal secret gives another text");
    assert_eq!(redact(kind, &first), first, "what is redacted changes when it is redacted again");
    if kind == "json" {
        serde_json::from_str::<serde_json::Value>(&first).expect("what was JSON is JSON");
        let raw = Redactor::new(b"the key of the tests").raw(&canary::fill(&text, &FIRST)).into_owned();
        canary::assert_absent(name, &raw, &FIRST);
    }
    let expected = case.join(format!("out.{kind}"));
    if env::var_os("UPDATE").is_some() {
        fs::write(&expected, &first).unwrap();
    }
    assert_eq!(first, fs::read_to_string(&expected).unwrap_or_default(), "{name}: UPDATE=1 rewrites");
}

macro_rules! shapes {
    ($($name:ident,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_shape_has_its_test() {
            let tests: BTreeSet<String> = [$(stringify!($name)),*].into_iter().map(str::to_owned).collect();
            assert_eq!(cases("redact"), tests);
            assert!(tests.len() >= 30);
        }
    };
}

shapes! {
    application_last_applied,
    auth_field,
    bearer_in_annotation,
    checksum_of_secret,
    command_curl_user,
    command_flag_apart,
    command_flag_joined,
    command_shell_line,
    configmap_block_in_template,
    configmap_broken_json_file,
    configmap_env_template,
    configmap_ini,
    configmap_json_file,
    configmap_kubeconfig,
    configmap_named_key,
    configmap_netrc,
    configmap_nginx,
    configmap_npmrc,
    configmap_pgpass,
    configmap_properties,
    configmap_script,
    configmap_secret_template,
    configmap_xml,
    configmap_yaml_file,
    connection_string,
    container_env,
    custom_resource_field,
    definition_default,
    docker_config,
    docker_config_in_base64,
    env_of_header,
    external_secret_template,
    go_dsn,
    helm_parameters,
    helm_values_file,
    helm_values_object,
    helm_values_of_sources,
    helm_values_one_line,
    helm_values_text,
    history,
    init_container_env,
    issuer_token,
    json_in_git,
    json_patch,
    jwt_in_annotation,
    kustomize_patch_document,
    kustomize_patch_of_secret,
    kustomize_secret_generator,
    member_twice,
    message_assignment,
    message_dump_of_secret,
    message_flag,
    message_header,
    message_invalid_data,
    message_invalid_env_value,
    message_json,
    message_query,
    message_quoted_argument,
    message_url,
    nested_too_deep,
    nested_under_secret_name,
    operation,
    plugin_env,
    plugin_parameters,
    private_key_in_base64,
    private_key_pem,
    private_key_unended,
    probe_header,
    properties_in_git,
    reference_that_is_none,
    scalar_json,
    sealed_secret_template,
    secret_data_not_a_map,
    secret_escaped_json,
    secret_in_another_object,
    secret_in_list,
    secret_in_nested_list,
    secret_kind_in_odd_case,
    secret_last_applied,
    secret_last_applied_unparsable,
    secret_list_without_kinds,
    secret_live_data,
    secret_live_string_data,
    secret_manifest_in_base64,
    secret_named_list,
    secret_of_another_group,
    secret_rollout_annotation,
    secret_store_value,
    secret_with_unknown_member,
    secret_without_kind,
    secret_without_metadata,
    slack_webhook,
    storage_connection_string,
    sync_compared_to,
    sync_result_message,
    token_as_object_key,
    unparsable_json,
    url_token_as_user,
    url_with_odd_password,
    url_with_user_in_env,
    workflow_parameter,
    workflow_resource_manifest,
    yaml_alias_elsewhere,
    yaml_block_scalar,
    yaml_comment,
    yaml_commented_out_secret,
    yaml_data,
    yaml_escaped,
    yaml_flow_style,
    yaml_helm_template,
    yaml_in_json_in_yaml,
    yaml_list,
    yaml_member_twice,
    yaml_merge_key,
    yaml_multi_document,
    yaml_numeric_alias,
    yaml_string_data,
    yaml_tagged,
    yaml_unparsable,
    yaml_windows_lines,
}

#[test]
fn what_holds_no_secret_comes_back_to_the_byte() {
    for name in cases("redact-keep") {
        let (kind, text) = read(&folder("redact-keep").join(&name));
        let text = canary::fill(&text, &FIRST);
        match redact(kind, &text) {
            Cow::Borrowed(same) => assert_eq!(same, text),
            Cow::Owned(other) => panic!("{name} was changed:\n{text}\n->\n{other}"),
        }
    }
}
