//! What the source server answers, described for programs.

use serde_json::{Value, json};

/// The document of the API, OpenAPI 3.1.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Source Server", "version": env!("CARGO_PKG_VERSION"),
            "description": "What Git says of applications: the file that makes each object, the versions that they package, and commits. \
                Over a bus the same is asked, on PREFIX.ask.source, with JSON of one member: manifests, changes or appVersion with the body, commit or files (of two revisions) with the query; and {status, answer} or {status, error} is answered."},
        "security": [{"bearer": []}],
        "paths": paths(),
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer",
                "description": "The token of a ServiceAccount that may ask, or the one of sourceServer.callers.tokenFile."}},
            "schemas": schemas(),
        },
    })
}

fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

/// A parameter of the query.
fn query(name: &str, required: bool, what: &str) -> Value {
    json!({"name": name, "in": "query", "required": required, "description": what, "schema": {"type": "string"}})
}

fn body(schema: &Value) -> Value {
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

fn refused(what: &str) -> Value {
    json!({"description": what, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}})
}

/// The answers of an operation that gives a `schema`.
fn responses(schema: &str, cached: bool) -> Value {
    let mut all = json!({
        "200": {"description": "The answer.", "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}}},
        "400": refused("It cannot be asked."),
        "401": refused("No token was sent."),
        "403": refused("Whoever has this token may not ask, or not for this, or the repository may not be fetched."),
        "404": refused("The repository is not configured, is not there, or has no such revision."),
        "502": refused("The repository's server did not give it: wrong credentials, an unknown certificate or host, too large."),
        "503": refused("It takes too long, or there is too much to do: ask again after Retry-After."),
    });
    if cached {
        all["304"] = json!({"description": "It is what If-None-Match names."});
    }
    all
}

fn paths() -> Value {
    let repo = query("repoURL", true, "The repository, as an Application names it.");
    let mut version = responses("AppVersion", false);
    version["422"] = refused("The version cannot be told.");
    json!({
        "/getAppVersion": {"post": {"operationId": "getAppVersion", "summary": "Which version an application packages.",
            "requestBody": body(&json!({"oneOf": [
                {"type": "object", "required": ["app"], "properties": {
                    "app": {"type": "object", "description": "The Application."}, "revision": text("The commit of its only source.")}},
                {"type": "object", "description": "The Application itself."},
            ]})),
            "responses": version}},
        "/v1/manifests": {
            "get": {"operationId": "listManifests", "summary": "The objects that the files of a source make.",
                "parameters": [repo, query("revision", false, "A branch, a tag or a commit's id; HEAD without one."),
                    query("path", false, "The directory."), query("chart", false, "The chart of a Helm repository."),
                    query("helm", false, "spec.source.helm as JSON."), query("kustomize", false, "spec.source.kustomize as JSON."),
                    query("directory", false, "spec.source.directory as JSON.")],
                "responses": responses("ManifestsResponse", true)},
            "post": {"operationId": "describeManifests", "summary": "Which file makes each compiled manifest, and what the application packages.",
                "requestBody": body(&json!({"$ref": "#/components/schemas/Asked"})),
                "responses": responses("ManifestsResponse", false)},
        },
        "/v1/commit": {"get": {"operationId": "getCommit", "summary": "What a commit says of itself.",
            "parameters": [repo, query("revision", false, "A branch, a tag or a commit's id; HEAD without one.")],
            "responses": responses("Commit", true)}},
        "/v1/changes": {"post": {"operationId": "describeChanges", "summary": "The commits that changed an application between two revisions, and its files that differ between them.",
            "requestBody": body(&json!({"$ref": "#/components/schemas/AskedChange"})),
            "responses": responses("Change", false)},
            "get": {"operationId": "listChanges", "summary": "The files that differ between two revisions.",
            "parameters": [repo, query("from", true, "The older revision."), query("to", true, "The newer revision."),
                query("paths", false, "Directories or files, with ; between them; all without any.")],
            "responses": responses("Changes", true)}},
    })
}

fn schemas() -> Value {
    json!({
        "Refusal": {"type": "object", "required": ["error"], "properties": {"error": text("Why, and what to do next.")}},
        "Asked": {"type": "object", "required": ["sources"], "additionalProperties": false, "properties": {
            "metadata": {"type": "object", "description": "The application's metadata."},
            "project": text("The application's spec.project; default where none is said. Whose credentials are used, and which repositories, its AppProject says."),
            "namespace": text("The namespace that the application deploys to."),
            "sources": {"type": "array", "maxItems": 64, "items": {"type": "object", "required": ["source"], "properties": {
                "source": {"type": "object", "description": "As spec.source says it."},
                "revision": text("A branch, a tag or a commit's id."),
                "elsewhere": {"type": "boolean", "description": "Somebody else tells of its repository: it is not looked at."}}}},
            "compiled": {"type": "array", "maxItems": 20000, "items": text("A manifest as Argo CD compiled it, JSON or YAML.")}}},
        "ManifestsResponse": {"type": "object", "properties": {
            "revisions": {"type": "array", "items": text("The commit of a source.")},
            "objects": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/Origin"},
                {"type": "object", "required": ["unknown"], "properties": {"unknown": text("Why it is not known.")}}]}},
            "listed": {"type": "array", "items": {"$ref": "#/components/schemas/Origin"}},
            "files": {"type": "array", "items": {"type": "object", "properties": {
                "source": {"type": "integer"}, "path": text("From the root."), "text": text("All that stands in it.")}}},
            "gaps": {"type": "array", "items": text("Why there may be more than is known.")},
            "versions": {"type": "object", "description": "appVersion, and the texts of Chart.yaml (deps), Chart.lock (lock) and requirements.yaml (requirements)."},
            "versionError": text("Why the versions are not known.")}},
        "Origin": {"type": "object", "required": ["path", "source"], "properties": {
            "group": text("Of listed ones."), "kind": text("Of listed ones."), "namespace": text("Of listed ones."), "name": text("Of listed ones."),
            "source": {"type": "integer", "description": "The position of the source."},
            "tool": {"enum": ["directory", "helm", "kustomize", "plugin", "reference"]},
            "path": text("The file, from the root of the repository."),
            "firstLine": {"type": "integer", "description": "0 where it is not known."}, "lastLine": {"type": "integer"},
            "manifest": text("The text of those lines."),
            "values": {"type": "array", "items": {"type": "object", "properties": {
                "path": text("A file of values; the strongest is the last."), "reference": text("The source that it is taken of.")}}}}},
        "Commit": {"type": "object", "properties": {
            "revision": text("Its id."), "author": text("Name and address."), "date": {"type": "string", "format": "date-time"},
            "message": text("What it says."), "tags": {"type": "array", "items": {"type": "string"}},
            "signed": {"type": "boolean", "description": "It carries a signature, which is not verified."},
            "commitUrl": text("Where its provider shows it."), "profileUrl": text("Its author."), "avatarUrl": text("A picture of its author.")}},
        "Changes": {"type": "object", "properties": {
            "from": text("The older commit."), "to": text("The newer one."),
            "files": {"type": "array", "maxItems": 100, "items": {"type": "string"}}, "more": {"type": "integer"}}},
        "AskedChange": {"type": "object", "required": ["app", "to"], "additionalProperties": false, "properties": {
            "app": {"type": "object", "description": "The Application."},
            "source": {"type": "integer", "minimum": 0, "description": "The position of the source; 0 without it."},
            "from": text("The older revision; without it everything is new."), "to": text("The newer revision.")}},
        "Change": {"type": "object", "required": ["to", "files", "more", "commits", "moreCommits"], "properties": {
            "from": text("The older commit; none where everything is new."),
            "fromUnknown": {"type": "boolean", "description": "The repository does not have the older revision any more, so that everything is new."},
            "to": text("The newer commit."),
            "files": {"type": "array", "maxItems": 100, "items": text("A file of the application that differs between the two.")},
            "more": {"type": "integer", "description": "How many more there are."},
            "commits": {"type": "array", "maxItems": 100, "items": {"type": "object", "properties": {
                "revision": text("Its id."), "author": text("Name and address."), "date": {"type": "string", "format": "date-time"},
                "message": text("What it says."), "files": {"type": "array", "maxItems": 100, "items": {"type": "string"}}, "more": {"type": "integer"}}}},
            "moreCommits": {"type": "boolean", "description": "There are more commits than are told."},
            "noneIsNew": {"type": "boolean", "description": "None of the commits is new: the newest that there is at all is told."}}},
        "AppVersion": {"type": "object", "properties": {"appVersion": text("The version; empty where the file says none."),
            "dependencies": {"type": "object", "properties": {"helm/Chart.lock": {"type": "string"},
                "helm/dependencies": text("Chart.yaml."), "helm/requirements.yaml": {"type": "string"}}}}},
    })
}
