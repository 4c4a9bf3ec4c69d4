//! Work on text is bounded.

use super::*;

#[test]
fn values_within_values_are_looked_at_a_bounded_number_of_times() {
    let nested = r#""enc_key":{"a":"#.repeat(20_000) + &"}".repeat(20_000);
    let flat = [
        r#""enc_key":{"api_key":1,"#,
        r#""enc_key":["token":null,"#,
        r#""signing_key": {"api_key": "a","#,
        r#""auth_key":{ "hook_url": 1,"#,
        "'enc_key':{'api_key':1,",
        "a_key=",
    ];
    for text in flat.map(|one| one.repeat(400_000 / one.len())).into_iter().chain([nested]) {
        let marks = Marks::of(&text);
        assert!(!marks.is_empty());
        let scan = Scan::new(&text);
        let mut found = Vec::new();
        scan.names(&marks.names, &mut found);
        let most = (LOOKS + 1) * text.len();
        assert!(scan.looked.get() <= most, "{} of {}", scan.looked.get(), text.len());
    }
}
