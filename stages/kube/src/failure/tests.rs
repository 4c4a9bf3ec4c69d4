use super::*;

const ACT: Act = Act { verb: "get", what: "widget" };

#[test]
fn what_may_pass_is_retried_and_what_cannot_is_rejected() {
    let of = |code| StageError::from(Failure::Status { act: ACT, code, after: None });
    for code in [401, 403, 404, 408, 410, 429, 500, 503, 504] {
        let retried = of(code).is_retry();
        assert_eq!(retried, code != 410, "{code}");
    }
    assert!(!of(400).is_retry());
    assert!(!of(307).is_retry());
    assert_eq!(of(403).to_string(), "get widget: the api server answered 403");
    assert_eq!(of(504).reason(), Reason::Timeout);
}

#[test]
fn a_version_is_blamed_only_by_a_server_that_has_seen_it() {
    let of = |code| Failure::Status { act: ACT, code, after: None }.may_blame_version();
    assert!([400, 404, 410, 500, 504].into_iter().all(of));
    assert!(![401, 403, 429, 503].into_iter().any(of));
    let wrapped = |kind| kube::Error::Service(Box::new(io::Error::from(kind)));
    assert!(!broken(ACT, wrapped(io::ErrorKind::ConnectionRefused)).may_blame_version());
    assert!(broken(ACT, wrapped(io::ErrorKind::UnexpectedEof)).may_blame_version());
}

#[test]
fn the_cause_is_found_under_layers() {
    let wrapped = |error: io::Error| kube::Error::Service(Box::new(io::Error::other(error)));
    let tls = io::Error::other(rustls::Error::HandshakeNotComplete);
    assert_eq!(broken(ACT, wrapped(tls)).reason(), Reason::Tls);
    let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
    assert_eq!(broken(ACT, wrapped(cut)).reason(), Reason::CutShort);
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    assert_eq!(broken(ACT, wrapped(refused)).reason(), Reason::Unreachable);
}
