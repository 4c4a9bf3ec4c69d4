//! What Git says of an application: the file that makes each of its objects, and the versions that it packages.
//!
//! takes: the sources of an application, each with the files of its commit - gives: a [`Provenance`] for each compiled object,
//! and [`Versions`] - calls: nothing - fails: when a repository cannot be read
//!
//! Nothing is rendered here: Argo CD does that. "Don't know" is an answer, with why; a guess is none.

mod accounts;

mod callers;
mod changed;
mod compiled;
mod describe;
mod directory;
mod fetched;
mod helm;
mod json_path;
mod kustomize;
mod library;
mod made;
mod manifests;
mod object_name;
mod openapi;
mod operation;
mod over_bus;
mod provenance;
mod provider;
mod question;
mod refusal;
mod remote;
mod repositories;
mod serve;
mod templates;
#[cfg(test)]
mod testing;
mod tool;
mod version_sources;
mod versions;

pub use accounts::{Accounts, Review, ReviewError};
pub use callers::{Admission, Callers, NoCallers, TokenFile};
pub use changed::{ChangesRequest, ChangesResponse, ChangingCommit};
pub use compiled::Compiled;
pub use describe::{Checkout, Described, describe};
pub use fetched::FetchedRepositories;
pub use helm::Values;
pub use library::{CommitResponse, FilesResponse, Library, LibraryConfig, SourceError};
pub use made::Origin;
pub use manifests::{
    ManifestFile, ManifestsRequest, ManifestsResponse, ReceivedManifests, ReceivedObject, RequestedSource,
};
pub use openapi::document;
pub use operation::{Operation, Operations};
pub use over_bus::{AskError, OverBus, SUBJECT, serve_over};
pub use provenance::{ListedObject, Provenance, Provenances, SourceFiles, listed, provenances};
pub use provider::Links;
pub use question::{CommitRequest, FilesRequest, Question, SourceApi};
pub use repositories::{Directories, LocalCommit, Repositories, RepositoryError};
pub use serve::{ServeBounds, routes};
pub use templates::PromotionTemplates;
pub use tool::Tool;
pub use version_sources::{FixedVersionSource, VersionSources};
pub use versions::{Dependencies, VersionError, VersionSource, Versions, versions};
