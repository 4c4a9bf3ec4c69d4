//! Signing in, and the contexts that are kept of it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use loadtest::sim::certificate::Identity;
use loadtest::sim::{Setup, Simulation};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::desk::{Desk, told};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_key_is_taken_of_a_file_or_standard_input_and_kept_where_nobody_else_reads_it() {
    let desk = Desk::start().await;
    let url = desk.platform.url();
    let host = url.strip_prefix("http://").unwrap();
    let signed = format!("signed in to {url} as ada, an admin; the context is {host}\n");
    assert_eq!(desk.typed(&["login", &url], &format!("{}\n", desk.key)).await.done(), signed);
    let contexts = desk.file("config/gitops-runtime/contexts.yaml");
    assert_eq!(mode(&contexts), 0o600);
    assert_eq!(mode(contexts.parent().unwrap()), 0o700);
    assert!(std::fs::read_to_string(&contexts).unwrap().contains(&desk.key));

    let file = desk.file("key");
    std::fs::write(&file, format!("\u{feff}{}\r\n", desk.key)).unwrap();
    let file = file.display().to_string();
    let again = desk.run(&["login", &url, "--token-file", &file, "--name", "other"]).await;
    assert_eq!(again.done(), format!("signed in to {url} as ada, an admin; the context is other\n"));
    // Without an address it is a new key for the current one.
    let renewed = desk.typed(&["login"], &desk.key).await;
    assert_eq!(renewed.done(), format!("signed in to {url} as ada, an admin; the context is other\n"));

    let listed = desk.run(&["context", "list"]).await.done();
    let mut lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            vec!["*", "other", &url, "ada"],
            vec![host, &url, "ada"],
            vec!["CURRENT", "NAME", "PLATFORM", "USER"],
        ]
    );
    assert_eq!(desk.run(&["context", "current"]).await.done(), "other\n");
    assert_eq!(
        desk.run(&["context", "use", host]).await.done(),
        format!("{host} is the current context: {url}\n")
    );
    assert_eq!(desk.run(&["context", "list", "-o", "name"]).await.done(), format!("{host}\nother\n"));
    let from_environment = [("GITOPS_RUNTIME_CONTEXT", "other")];
    assert_eq!(desk.with(&["context", "current"], "", &from_environment).await.done(), "other\n");
    let used = desk.with(&["context", "use", host], "", &from_environment).await;
    assert_eq!(used.err, told("GITOPS_RUNTIME_CONTEXT=other stands above it while it is set"));
    let removed = desk.run(&["context", "remove", "other"]).await.done();
    let expected = format!(
        "other is forgotten, with its key; {url} still takes that key until it is taken back at {url}/settings\n"
    );
    assert_eq!(removed, expected);
    assert_eq!(
        (mode(&contexts), desk.run(&["context", "list", "-o", "name"]).await.done()),
        (0o600, format!("{host}\n"))
    );
    desk.stop().await;
}

#[tokio::test]
async fn whoever_cannot_sign_in_is_told_why_and_nothing_is_kept() {
    let desk = Desk::start().await;
    let url = desk.platform.url();
    let host = url.strip_prefix("http://").unwrap();
    let none = "there is no key: make one on the platform's page Settings, API keys; it is asked for on a terminal, else read from standard input, or give --token-file";
    let no_key =
        "this is no API key: a key is one word, which is made on the platform's page Settings, API keys";
    let argument = "a key does not belong on the command line, where others on this machine and its history see it: it is \
                    asked for, or give --token-file";
    let unknown = format!("cannot sign in at {host}: this key, token or session is not known, or has ended");
    let nobody =
        "nobody is signed in: `gitops-runtime login URL` signs you in to the platform at that address";
    let long = "k".repeat(5_000);
    let cases: [(&[&str], &str, i32, &str); 12] = [
        (&["login", &url], "", 1, none),
        (&["login", &url], "two words", 1, no_key),
        (&["login", &url], &long, 1, no_key),
        (&["login", &url], "goak_0000", 1, &unknown),
        (&["login", &url, &desk.key], "", 2, argument),
        (&["login", &desk.key], "", 2, argument),
        (&["login"], &desk.key, 1, nobody),
        (&["login", "ftp://a"], &desk.key, 2, "the address must begin with `http://` or `https://`"),
        (&["login", "http://a:b@c"], &desk.key, 2, "the address must not hold a user name or a password"),
        (
            &["login", &url, "--name", "a b"],
            &desk.key,
            2,
            "the name of a context has 1 to 100 letters, digits and - _ . : @",
        ),
        (
            &["login", &url, "--token-file", "none"],
            "",
            1,
            "cannot read the key from none: No such file or directory (os error 2)",
        ),
        (&["app", "list"], "", 1, nobody),
    ];
    for (arguments, input, code, said) in cases {
        assert_eq!(desk.typed(arguments, input).await.refused(), (code, told(said)), "{code}");
    }
    // Something else answers there.
    let elsewhere = format!("{url}/elsewhere");
    let said = format!(
        "cannot sign in at {host}: it answered 404: there is no such page: look whether that is the address of a platform"
    );
    assert_eq!(desk.typed(&["login", &elsewhere], &desk.key).await.refused(), (1, told(&said)));
    // So do the pages of health and metrics, which are beside it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pages = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"}") {
            assert!(stream.read_buf(&mut asked).await.unwrap() > 0, "it ended before its body");
        }
        let said = "no page takes a request body";
        let head = format!(
            "HTTP/1.1 413 Payload Too Large\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            said.len()
        );
        stream.write_all(format!("{head}{said}").as_bytes()).await.unwrap();
    });
    let said = format!(
        "cannot sign in at {pages}: it answered 413: no page takes a request body: look whether that is the address of a platform"
    );
    let refused = desk.typed(&["login", &format!("http://{pages}")], &desk.key).await.refused();
    assert_eq!(refused, (1, told(&said)));
    // The token of a runtime is none of a person.
    let token = desk.platform.token_file().display().to_string();
    let of_runtime = format!(
        "this is the token of the runtime prod: a person signs in with an API key, which is made at {url}/settings"
    );
    let refused = desk.run(&["login", &url, "--token-file", &token]).await.refused();
    assert_eq!(refused, (1, told(&of_runtime)));
    assert!(!desk.file("config/gitops-runtime/contexts.yaml").exists(), "nothing was kept");

    desk.typed(&["login", &url, "--name", "here"], &desk.key).await.done();
    let other = desk.run(&["app", "list", "--context", "there"]).await.refused();
    assert_eq!(other, (1, told("there is no context 'there': there are here")));
    let other = desk.with(&["app", "list"], "", &[("GITOPS_RUNTIME_CONTEXT", "there")]).await.refused();
    assert_eq!(other, (1, told("there is no context 'there': there are here")));
    for command in ["use", "remove"] {
        let other = desk.run(&["context", command, "there"]).await.refused();
        assert_eq!(other, (1, told("there is no context 'there': there are here")));
    }
    desk.stop().await;
}

#[tokio::test]
async fn a_platform_that_is_away_is_told_with_its_address() {
    let mut desk = Desk::signed_in().await;
    let url = desk.platform.url();
    let host = url.strip_prefix("http://").unwrap();
    desk.platform.stop().await;
    let said = desk.run(&["app", "list"]).await;
    let begin = format!(
        "gitops-runtime: cannot list applications at {host}: the connection failed: is it running there? \
         `gitops-runtime context list` shows the addresses of platforms: "
    );
    assert!(said.err.starts_with(&begin), "{said:?}");
    assert_eq!((said.code, said.out.as_str()), (1, ""));
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_told_with_the_flag_that_names_its_authority() {
    let tls = [None, None, Some(Identity::Good)];
    let simulation = Simulation::start(Setup { tls, ..Setup::default() }).await.unwrap();
    let desk = Desk::start().await;
    let url = simulation.platform.url();
    let host = url.strip_prefix("https://").unwrap();
    let refused = async |url: &str| {
        let said = desk.typed(&["login", url], &desk.key).await;
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        said.err
    };
    let begin = format!(
        "gitops-runtime: cannot sign in at {host}: its certificate does not verify: name the file of the authority that signs \
         it, with `gitops-runtime login --ca-file`, or of an app proxy with --app-proxy-ca-file: "
    );
    let said = refused(&url).await;
    assert!(said.starts_with(&begin), "{said}");
    // One that speaks no TLS.
    let url = desk.platform.url().replace("http://", "https://");
    let host = url.strip_prefix("https://").unwrap();
    let begin = format!(
        "gitops-runtime: cannot sign in at {host}: the TLS handshake failed: does it speak TLS there? an address that begins \
         with http:// is asked without: "
    );
    let said = refused(&url).await;
    assert!(said.starts_with(&begin), "{said}");
    desk.stop().await;
}

#[tokio::test]
async fn a_key_is_in_no_argument_of_a_process_that_uses_it() {
    let desk = Desk::signed_in().await;
    let mut watching = desk.command(crate::platform::PROGRAM);
    let watching = watching.args(["app", "list", "--watch"]).stdout(std::process::Stdio::piped());
    let mut watching = watching.spawn().unwrap();
    let process = format!("/proc/{}", watching.id().unwrap());
    // It has asked by the time that it says anything.
    use tokio::io::AsyncReadExt as _;
    let mut first = [0; 16];
    watching.stdout.take().unwrap().read_exact(&mut first).await.unwrap();
    for name in ["cmdline", "environ"] {
        let text = std::fs::read(format!("{process}/{name}")).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!text.contains("goak_"), "{name} holds a key");
    }
    watching.kill().await.unwrap();
    desk.stop().await;
}
