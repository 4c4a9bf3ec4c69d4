//! Whom the client trusts.

use crate::support::{Authority, chain, client, get, host, serve};
use axum::Router;
use axum::routing::get as on_get;
use pipeline_core::Reason;
use stages_client::{Client, Config, Target};
use std::time::Duration;

fn app() -> Router {
    Router::new().route("/thing", on_get(async || "there"))
}

/// A file that holds `pem`, deleted with the folder that is given with it.
fn file(pem: &str) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    (folder, Config { ca_file: Some(path), ..crate::support::config() })
}

#[tokio::test]
async fn a_certificate_of_nobody_known_does_not_verify() {
    let authority = Authority::new("127.0.0.1");
    let address = authority.serve(app()).await;
    // Of the machine where it has any, else of somebody else: neither signed it.
    let (_folder, other) = file(&Authority::new("127.0.0.1").pem);
    let client = client(&address, other).await;
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Tls, "{:?}", chain(&error));
    let host = host(&address);
    assert_eq!(
        error.to_string(),
        format!("cannot read the thing at {host}: its certificate does not verify")
    );
    assert!(
        chain(&error).iter().any(|text| text.contains("invalid peer certificate")),
        "{:?}",
        chain(&error)
    );
}

#[tokio::test]
async fn the_authority_of_a_file_is_trusted() {
    let authority = Authority::new("127.0.0.1");
    let address = authority.serve(app()).await;
    let (_folder, config) = file(&authority.pem);
    assert_eq!(get(&client(&address, config).await).await.unwrap().into_body().unwrap(), "there");
}

#[tokio::test]
async fn a_server_is_trusted_whose_own_certificate_was_given_as_an_authority_and_for_its_names_and_dates_alone()
 {
    let asked = async |served: &Authority, given: &str| {
        let address = served.serve(app()).await;
        let (_folder, config) = file(given);
        get(&client(&address, config).await).await.map_err(|error| (error.reason(), chain(&error).join(": ")))
    };
    let own = Authority::itself("127.0.0.1", |_| {});
    let authority = Authority::new("127.0.0.1");
    for given in [own.pem.clone(), format!("{}{}", authority.pem, own.pem)] {
        assert_eq!(asked(&own, &given).await.unwrap().into_body().unwrap(), "there");
    }
    // Those of authorities that were given beside are verified as ever.
    let both = format!("{}{}", own.pem, authority.pem);
    assert_eq!(asked(&authority, &both).await.unwrap().into_body().unwrap(), "there");
    let elsewhere = Authority::itself("elsewhere.example", |_| {});
    let over = Authority::itself("127.0.0.1", |own| own.not_after = rcgen::date_time_ymd(2021, 1, 1));
    let early = Authority::itself("127.0.0.1", |own| own.not_before = rcgen::date_time_ymd(4000, 1, 1));
    let same = Authority::itself("127.0.0.1", |_| {});
    for (served, given, why) in [
        (&elsewhere, &elsewhere, "not valid for name"),
        (&over, &over, "expired"),
        (&early, &early, "not valid yet"),
        // Of the same names, and another one.
        (&own, &same, ""),
        (&own, &authority, "CaUsedAsEndEntity"),
    ] {
        let (reason, said) = asked(served, &given.pem).await.unwrap_err();
        assert_eq!(reason, Reason::Tls, "{said}");
        assert!(said.contains("invalid peer certificate") && said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn the_file_of_authorities_is_followed_while_there_are_calls() {
    let (old, new) = (Authority::new("127.0.0.1"), Authority::new("127.0.0.1"));
    let (folder, config) = file(&old.pem);
    let path = folder.path().join("ca.pem");
    // Each call looks at the file.
    let config = Config { look: Duration::ZERO, ..config };
    let client_of = async |address: &str| client(address, config.clone()).await;
    let (at_old, at_new) =
        (client_of(&old.serve(app()).await).await, client_of(&new.serve(app()).await).await);
    let refused = async |client: &Client| get(client).await.err().map(|error| error.reason());
    assert_eq!(refused(&at_old).await, None);
    assert_eq!(refused(&at_new).await, Some(Reason::Tls));
    std::fs::write(&path, format!("{}{}", old.pem, new.pem)).unwrap();
    assert_eq!(refused(&at_new).await, None);
    assert_eq!(refused(&at_old).await, None);
    // What cannot be used leaves in force what was.
    for broken in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        std::fs::write(&path, broken).unwrap();
        assert_eq!(refused(&at_new).await, None);
    }
    std::fs::write(&path, &new.pem).unwrap();
    assert_eq!(refused(&at_new).await, None);
    // A connection that was made under the old authority does not outlive it.
    assert_eq!(refused(&at_old).await, Some(Reason::Tls));
}

#[tokio::test]
async fn a_certificate_of_another_name_does_not_verify_unless_nothing_has_to() {
    let authority = Authority::new("elsewhere.example");
    let address = authority.serve(app()).await;
    let (_folder, config) = file(&authority.pem);
    let error = get(&client(&address, config.clone()).await).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Tls, "{:?}", chain(&error));
    for config in [config, crate::support::config()] {
        let careless = Config { insecure_skip_verify: true, ..config };
        assert_eq!(get(&client(&address, careless).await).await.unwrap().into_body().unwrap(), "there");
    }
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_told_from_a_bad_certificate() {
    let address = serve(app()).await.replace("http://", "https://");
    let (_folder, config) = file(&Authority::new("127.0.0.1").pem);
    let error = get(&client(&address, config).await).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Tls, "{:?}", chain(&error));
    let host = host(&address);
    assert_eq!(error.to_string(), format!("cannot read the thing at {host}: the TLS handshake failed"));
}

#[tokio::test]
async fn a_file_without_authorities_is_refused() {
    let (folder, config) = file("no certificate at all");
    let path = folder.path().join("ca.pem");
    let shown = path.display().to_string();
    let refusal = async |config: Config| {
        config.build(Target::new("https://a.example", "").unwrap()).await.unwrap_err().to_string()
    };
    assert_eq!(refusal(config.clone()).await, format!("{shown} holds no certificate in PEM"));
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert_eq!(refusal(config.clone()).await, format!("{shown} holds a certificate that cannot be read"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(refusal(config).await, format!("cannot read the certificate authorities of {shown}"));
}

/// Runs one of the ignored tests below in a process whose system has no certificate authorities.
fn on_a_bare_machine(test: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .env("SSL_CERT_FILE", "/dev/null")
        .env("SSL_CERT_DIR", "/nowhere")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_machine_without_authorities_can_do_what_needs_none() {
    on_a_bare_machine("tls::bare_machine");
}

#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn bare_machine() {
    assert_eq!(
        get(&client(&serve(app()).await, crate::support::config()).await).await.unwrap().status(),
        200
    );
    let authority = Authority::new("127.0.0.1");
    let address = authority.serve(app()).await;
    let (_folder, config) = file(&authority.pem);
    assert_eq!(get(&client(&address, config).await).await.unwrap().status(), 200);
    let error = crate::support::config().build(Target::new(&address, "").unwrap()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "this machine has no certificate authorities to verify {} with: name a file that holds them",
            host(&address)
        )
    );
}
