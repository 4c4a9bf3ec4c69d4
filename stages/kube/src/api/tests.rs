use super::*;

#[test]
fn segments_are_escaped() {
    assert_eq!(segment("a b?c#d"), "a%20b%3Fc%23d");
    assert_eq!(segment("store-1.x_y~z%"), "store-1.x_y~z%25");
}

#[test]
fn only_a_status_speaks_of_the_object() {
    assert!(says_not_found(br#"{"kind":"Status","reason":"NotFound","code":404}"#));
    assert!(!says_not_found(b"404 page not found"));
    assert!(!says_not_found(br#"{"message":"no route"}"#));
}
