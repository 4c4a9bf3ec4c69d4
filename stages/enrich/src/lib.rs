//! enrich.
