//! The text of a query, read once: it is bounded before anything reads it, and what is read is kept for what carries it out.
//!
//! takes: a request - gives: the same, read - calls: nothing - fails: with a sentence for whoever asked, without a word of the query

use async_graphql::{Pos, Request};
use stages_client::check_query;

/// Reads the query of a request. What a parser says of one quotes it, and a token may stand there: where the fault is, is all that
/// is told of it.
pub(crate) fn read_query(request: &mut Request) -> Result<(), String> {
    check_query(&request.query).map_err(|fault| fault.to_string())?;
    request.parsed_query().map(drop).map_err(|error| unread(error.locations.first().copied()))
}

fn unread(at: Option<Pos>) -> String {
    match at {
        Some(at) => format!("the query cannot be read: line {}, column {}", at.line, at.column),
        None => "the query cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cannot_be_read_the_place_is_told_and_nothing_else() {
        let read = |text: &str| read_query(&mut Request::new(text));
        assert_eq!(read("{ a }"), Ok(()));
        assert_eq!(read("{ a\n  ghp-canary }"), Err("the query cannot be read: line 2, column 6".to_owned()));
        let said = "a string of the query has no end: close it with the quotation marks that it begins with";
        assert_eq!(read("{ a(b: \"ghp_canary) }"), Err(said.to_owned()));
    }
}
