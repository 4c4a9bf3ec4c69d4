//! The schema as it is published.

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.graphql");

#[test]
fn the_published_schema_is_the_one_that_is_served() {
    let served = stages_proxy::sdl();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PUBLISHED, &served).unwrap();
    }
    let published = std::fs::read_to_string(PUBLISHED).unwrap();
    assert!(published == served, "schema.graphql is not what is served: UPDATE=1 writes it");
}
