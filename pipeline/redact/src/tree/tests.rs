//! What two readers would read differently is not read; what is written reads back.

use serde_json::json;

use super::*;

#[test]
fn json_that_two_readers_read_differently_is_not_read() {
    assert_eq!(json(r#"{"a":1,"a":2}"#), Err(Unreadable));
    assert_eq!(json(r#"{"a":1} {"b":2}"#), Err(Unreadable));
    assert_eq!(json(&"[".repeat(100_000)), Err(Unreadable));
    assert_eq!(json(r#"{"a":[1,-2,1.5,null,true,"x"]}"#), Ok(json!({"a": [1, -2, 1.5, null, true, "x"]})));
}

#[test]
fn yaml_bombs_and_deep_nesting_are_not_read() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in
        ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        let aliases = vec![format!("*{before}"); 10].join(",");
        bomb.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    assert_eq!(yaml(&bomb), Err(Unreadable));
    assert_eq!(yaml(&"[".repeat(100_000)), Err(Unreadable));
    assert_eq!(yaml(&"- ".repeat(5_000)), Err(Unreadable));
}

#[test]
fn merge_keys_and_aliases_are_expanded() {
    let read = yaml("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n8080: *x\n").unwrap();
    assert_eq!(read, [json!({"x": {"a": 1, "b": 2}, "y": {"a": 1, "b": 3}, "8080": {"a": 1, "b": 2}})]);
}

#[test]
fn what_is_written_reads_back() {
    let odd = [
        json!({"a": "yes", "b": "0644", "c": "1e3", "d": "~", "e": "line\nline\n", "f": " x ", "g": "#", "h": ""}),
        json!({"é": ["- x", {"k": null}, [], {}], "n": 1.5, "m": 0o644, "t": true, "s": "on", "u": "a: b"}),
    ];
    assert_eq!(yaml(&write_yaml(&odd)).unwrap(), odd);
}
