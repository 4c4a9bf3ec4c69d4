use std::path::Path;

use pipeline_bus::jetstream::Credentials;

use super::*;
use crate::config::Config;
use crate::config::layers::Layers;
use crate::config::problem::Origin;
use crate::config::tests::{host, resolve, setting, wrong};

const URL: (&str, &str) = ("bus.url", "nats://nats:4222");

/// With a bus, and more.
fn with(flags: &[(&str, &str)]) -> Config {
    resolve(&[&[URL], flags].concat(), &host()).unwrap()
}

/// What is wrong with a bus, and more.
fn refused(flags: &[(&str, &str)]) -> String {
    wrong(&[&[URL], flags].concat())
}

/// As [`with`], where some of it are secrets, which no flag may hold.
fn secretly(settings: &[(&str, &str)]) -> Result<Bus, String> {
    let mut layers = Layers::default();
    let needed = [("argocd.tokenFile", "/argocd"), ("platform.tokenFile", "/platform"), URL];
    for (path, text) in needed.iter().chain(settings) {
        layers.text(setting(path), text, Origin::Variable("X".to_owned()));
    }
    match Config::resolve(&mut layers, &host()) {
        Ok(config) => Ok(config.bus.unwrap()),
        Err(problems) => Err(problems.to_string().lines().next().unwrap().to_owned()),
    }
}

#[test]
fn without_an_address_there_is_no_bus_and_nothing_is_as_with_one() {
    let config = resolve(&[], &host()).unwrap();
    assert!(config.bus.is_none());
    assert_eq!((config.reporter.sharding.shards(), config.reporter.sharding.shard()), (5, None));
    assert_eq!(*config.platform.timeout, Duration::from_secs(30));
}

#[test]
fn with_an_address_shards_are_owned_by_leases_and_the_ledger_is_a_bucket() {
    let config = with(&[]);
    let bus = config.bus.unwrap();
    assert_eq!(
        (&bus.urls.0, bus.prefix.0.as_str()),
        (&vec!["nats://nats:4222".to_owned()], "gitops-runtime")
    );
    assert_eq!((bus.copies, bus.max_bytes.0, bus.reports), (1, 1 << 30, true));
    assert_eq!(bus.reports_max_bytes.0, 256 << 20);
    assert_eq!((*bus.ack_wait, *bus.timeout), (Duration::from_secs(10), Duration::from_secs(5)));
    let access = bus.access();
    assert!(matches!(access.credentials(), Some(Credentials::None)) && access.tls().is_none());
    assert_eq!(access.inbox_prefix, Some("_INBOX"));
    assert_eq!(bus.replica.0, "event-reporter-3");
    let leases = bus.leases.unwrap();
    assert_eq!(leases.shards().get(), 32);
    assert_eq!((*leases.ttl, *leases.renew), (Duration::from_secs(10), Duration::from_secs(3)));
    let steps = (leases.ownership(7).tick, leases.ownership(7).answer);
    assert_eq!(steps, (Duration::from_millis(500), Duration::from_secs(2)));
    assert!(bus.bucket && !config.state.keep_ledger);
    assert_eq!((config.reporter.sharding.shards(), config.reporter.sharding.shard()), (32, None));
}

#[test]
fn servers_are_addresses_without_secrets() {
    let urls = |text| resolve(&[("bus.url", text)], &host()).unwrap().bus.unwrap().urls.0.clone();
    assert_eq!(urls("nats://a:1, tls://b"), ["nats://a:1", "tls://b"]);
    assert_eq!(urls("a:1,"), ["a:1"]);
    let from = "(from --set)";
    for text in ["https://a", "nats://a:x", "nats://a,b c"] {
        let said = "bus.url: must be addresses such as nats://nats:4222 or tls://nats:4222, with commas between them";
        assert_eq!(wrong(&[("bus.url", text)]), format!("{said} {from}"), "{text}");
    }
    for text in ["nats://canary:canary@a", "nats://a,nats://canary@b"] {
        let said =
            "bus.url: must hold no user and no password; give user and passwordFile, or tokenFile, beside it";
        assert_eq!(wrong(&[("bus.url", text)]), format!("{said} {from}"));
    }
}

#[test]
fn figures_have_bounds() {
    for (path, text, said) in [
        ("bus.copies", "2", "bus.copies: must be 1 or 3, not 2"),
        ("bus.maxBytes", "1023Ki", "bus.maxBytes: must be from 1Mi to 1048576Gi"),
        ("bus.reportsMaxBytes", "1023Ki", "bus.reportsMaxBytes: must be from 1Mi to 1048576Gi"),
        ("bus.maxBytes", "1048577Gi", "bus.maxBytes: must be from 1Mi to 1048576Gi"),
        ("bus.ackWait", "99ms", "bus.ackWait: must be from 100ms to 24h"),
        ("bus.timeout", "25h", "bus.timeout: must be from 100ms to 24h"),
        ("bus.leases.renew", "99ms", "bus.leases.renew: must be at least 100ms"),
        (
            "bus.prefix",
            "a.*",
            "bus.prefix: must be 1 to 128 letters, digits, - and _, in parts between dots (from --set)",
        ),
        (
            "bus.replica",
            "a b",
            "bus.replica: must be 1 to 200 letters, digits, -, _ and ., neither beginning nor ending with . (from \
             --set)",
        ),
    ] {
        assert_eq!(refused(&[(path, text)]), said);
    }
    let most =
        with(&[("bus.copies", "3"), ("bus.maxBytes", "1048576Gi"), ("bus.ackWait", "24h")]).bus.unwrap();
    assert_eq!((most.copies, most.max_bytes.0), (3, *BYTES.end()));
}

#[test]
fn one_kind_of_credentials_is_given_and_all_of_it() {
    let is = |given: Result<Bus, String>| format!("{:?}", given.unwrap().access().credentials().unwrap());
    let password = "Password { user: \"u\", password: File(\"/p\") }";
    assert_eq!(is(secretly(&[("bus.user", "u"), ("bus.passwordFile", "/p")])), password);
    assert_eq!(is(secretly(&[("bus.tokenFile", "/t")])), "Token(File(\"/t\"))");
    assert_eq!(is(secretly(&[("bus.credentialsFile", "/c")])), "File(\"/c\")");
    assert_eq!(is(secretly(&[("bus.nkeyFile", "/n")])), "Nkey(File(\"/n\"))");
    for secret in [&[("bus.user", "u"), ("bus.password", "canary")][..], &[("bus.token", "canary")]] {
        let printed = is(secretly(secret));
        assert!(!printed.contains("canary") && printed.contains("Value"), "{printed}");
    }
    for (given, said) in [
        (&[("bus.user", "u")][..], "bus.password: not set, and bus.user needs it; set bus.passwordFile"),
        (&[("bus.passwordFile", "/p")], "bus.user: not set, and bus.password needs it"),
        (
            &[("bus.user", "u"), ("bus.password", "p"), ("bus.passwordFile", "/p")],
            "bus.password: excludes bus.passwordFile: give one of them",
        ),
        (
            &[("bus.token", "t"), ("bus.tokenFile", "/t")],
            "bus.token: excludes bus.tokenFile: give one of them",
        ),
        (
            &[("bus.user", "u"), ("bus.passwordFile", "/p"), ("bus.tokenFile", "/t")],
            "bus.tokenFile: excludes bus.user: give one kind of credentials",
        ),
        (
            &[("bus.nkeyFile", "/n"), ("bus.credentialsFile", "/c")],
            "bus.nkeyFile: excludes bus.credentialsFile: give one kind of credentials",
        ),
    ] {
        assert_eq!(secretly(given).unwrap_err(), format!("config: {said}"));
    }
    assert_eq!(
        wrong(&[("bus.tokenFile", "/t")]),
        "bus.tokenFile: is for bus.url, which is not set; set it (--bus nats://nats:4222)"
    );
}

#[test]
fn a_stronger_source_replaces_the_credentials_of_a_weaker_one() {
    let mut layers = Layers::default();
    for path in ["argocd.tokenFile", "platform.tokenFile", "bus.tokenFile"] {
        layers.text(setting(path), "/token", Origin::Variable("X".to_owned()));
    }
    layers.flag("bus.url", "--bus", URL.1);
    layers.flag("bus.credentialsFile", "--set", "/credentials");
    let bus = Config::resolve(&mut layers, &host()).unwrap().bus.unwrap();
    assert!(
        matches!(bus.access().credentials(), Some(Credentials::File(path)) if path == Path::new("/credentials"))
    );
}

#[test]
fn a_certificate_has_its_key() {
    let pair = [("bus.certificateFile", "/c"), ("bus.keyFile", "/k")];
    let tls = with(&pair).bus.unwrap().access().tls().unwrap();
    assert_eq!((tls.ca, tls.identity), (None, Some(("/c".into(), "/k".into()))));
    let tls = with(&[("bus.caFile", "/ca")]).bus.unwrap().access().tls().unwrap();
    assert_eq!((tls.ca, tls.identity), (Some("/ca".into()), None));
    assert_eq!(refused(&pair[..1]), "bus.certificateFile: needs its key; set bus.keyFile");
    assert_eq!(refused(&pair[1..]), "bus.keyFile: needs its certificate; set bus.certificateFile");
}

#[test]
fn a_lease_leaves_time_for_reports_and_they_take_no_more() {
    let timeout = |flags: &[(&str, &str)]| {
        let config = with(flags);
        let leases = config.bus.unwrap().leases.unwrap();
        assert_eq!(*config.platform.timeout, leases.post_timeout);
        leases.ownership(0).check(leases.post_timeout).unwrap();
        leases.post_timeout
    };
    assert_eq!(timeout(&[]), Duration::from_secs(4));
    assert_eq!(timeout(&[("platform.timeout", "2s")]), Duration::from_secs(2));
    assert_eq!(timeout(&[("bus.leases.ttl", "1m")]), Duration::from_secs(30));
    assert_eq!(timeout(&[("bus.leases.ttl", "7s")]), Duration::from_secs(1));
    let short = [("bus.leases.ttl", "2s"), ("bus.leases.renew", "400ms")];
    assert_eq!(timeout(&short), Duration::from_millis(1_200));
    let brief = [("bus.leases.ttl", "300ms"), ("bus.leases.renew", "100ms"), ("platform.timeout", "50ms")];
    assert_eq!(timeout(&brief), Duration::from_millis(50));
    for (ttl, renew, most) in
        [("6900ms", "3s", "7s"), ("3s", "3s", "7s"), ("0s", "3s", "7s"), ("10s", "5s", "11s")]
    {
        let [ttl_of, renew_of] = [ttl, renew].map(|text| pipeline_core::read_duration(text).unwrap());
        assert_eq!(
            refused(&[("bus.leases.ttl", ttl), ("bus.leases.renew", renew)]),
            format!(
                "bus.leases.ttl: a lease of {ttl_of:?} that is renewed every {renew_of:?} is too short for reports that \
                 may take 1s: it is to last two renewals and a report, {most}; raise it, or lower bus.leases.renew"
            )
        );
    }
    let fixed = with(&[("reporter.sharding.shard", "0"), ("bus.leases.ttl", "0s")]);
    assert_eq!(*fixed.platform.timeout, Duration::from_secs(30), "what nobody uses bounds nothing");
}

#[test]
fn who_owns_what_may_be_said_with_a_bus_as_well() {
    for (text, shard) in [("all", None), ("hostname", Some(3)), ("4", Some(4))] {
        let config = with(&[("reporter.sharding.shard", text)]);
        let bus = config.bus.unwrap();
        assert!(bus.leases.is_none() && !bus.bucket && config.state.keep_ledger, "{text}");
        assert_eq!((config.reporter.sharding.shards(), config.reporter.sharding.shard()), (5, shard));
    }
    let leases = with(&[("reporter.sharding.shard", "leases"), ("reporter.sharding.shards", "7")]);
    assert_eq!((leases.reporter.sharding.shards(), leases.reporter.sharding.shard()), (7, None));
    assert_eq!(leases.bus.unwrap().leases.unwrap().shards().get(), 7);
    let bucket = with(&[("reporter.sharding.shard", "all"), ("reporter.ledger.storage", "bucket")]);
    assert!(bucket.bus.unwrap().bucket && !bucket.state.keep_ledger);
    for text in ["0", "1025", "many"] {
        assert_eq!(
            wrong(&[("reporter.sharding.shards", text)]),
            format!(
                "reporter.sharding.shards: '{text}' is not a number of shards from 1 to 1024, nor auto (from --set)"
            )
        );
    }
}

#[test]
fn leases_need_a_bus_and_a_ledger_that_is_shared() {
    assert_eq!(
        wrong(&[("reporter.sharding.shard", "leases")]),
        "reporter.sharding.shard: leases are for replicas on a bus, and bus.url is not set; set it (--bus \
         nats://nats:4222), or take all"
    );
    assert_eq!(
        wrong(&[("reporter.ledger.storage", "bucket")]),
        "reporter.ledger.storage: a bucket is on the bus, and bus.url is not set; set it (--bus nats://nats:4222), or \
         take file"
    );
    for storage in ["file", "memory"] {
        assert_eq!(
            refused(&[("reporter.ledger.storage", storage)]),
            "reporter.ledger.storage: replicas that come and go share a ledger: take bucket or auto, or give each \
             replica shards of its own by reporter.sharding.shard"
        );
    }
    assert_eq!(
        refused(&[("reporter.ledger.path", "/l")]),
        "reporter.ledger.path: replicas that come and go share a ledger, which is a bucket of the bus and no file: \
         leave it empty"
    );
}

#[test]
fn a_replica_is_named_after_its_host() {
    let name = |host: &str| ReplicaName::of_host(host).0;
    assert_eq!(name("event-reporter-0"), "event-reporter-0");
    assert_eq!(name(".a b/ä."), "a-b--");
    assert_eq!(name("..."), "replica");
    assert_eq!(name(""), "replica");
    assert_eq!(name(&"x".repeat(300)).len(), 200);
    assert_eq!(with(&[("bus.replica", "mine")]).bus.unwrap().replica.0, "mine");
}

#[test]
fn answers_come_below_a_prefix_of_plain_parts() {
    let bus = with(&[("bus.inboxPrefix", "_INBOX.runtime")]).bus.unwrap();
    assert_eq!(bus.access().inbox_prefix, Some("_INBOX.runtime"));
    let said =
        "bus.inboxPrefix: must be 1 to 128 letters, digits, - and _, in parts between dots (from --set)";
    assert_eq!(refused(&[("bus.inboxPrefix", "_INBOX.>")]), said);
}
