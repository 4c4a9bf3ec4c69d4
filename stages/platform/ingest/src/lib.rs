//! What the platform answers over HTTP to those who report.
