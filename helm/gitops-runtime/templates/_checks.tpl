{{/* Everything that is wrong with the values and that their schema cannot tell, a line each; nothing where all is well. */}}
{{- define "gitops-runtime.problems" -}}
{{- $problems := list -}}
{{- $foreign := list -}}
{{- range $key := list "anchors" "app-proxy" "argo-gateway" "argo-workflows" "cf-argocd-extras" "codefreshWorkflowLogStoreCM" "event-reporters" "gitops-operator" "installer" "internal-router" "redis" "redis-ha" "redis-secret-init" "sealed-secrets" "tunnel-client" -}}
{{- if hasKey $.Values $key -}}{{- $foreign = append $foreign $key -}}{{- end -}}
{{- end -}}
{{- range $key := list "event-reporters" "external-argo-cd" -}}
{{- if hasKey $.Values.global $key -}}{{- $foreign = append $foreign (printf "global.%s" $key) -}}{{- end -}}
{{- end -}}
{{- if $foreign -}}
{{- $problems = append $problems (printf "%s: of another chart's values; run `gitops-runtime values convert FILE`" (join ", " $foreign)) -}}
{{- end -}}
{{- $codefresh := .Values.global.codefresh -}}
{{- $runtime := .Values.global.runtime -}}
{{- $server := (index .Values.global.integrations "argo-cd").server -}}
{{- if not $runtime.name -}}
{{- $problems = append $problems "global.runtime.name: must be given" -}}
{{- end -}}
{{- $reserved := list "codefresh-token" -}}
{{- if has $codefresh.userToken.secretKeyRef.name $reserved -}}
{{- $problems = append $problems "global.codefresh.userToken.secretKeyRef.name: codefresh-token is a reserved name; use another Secret" -}}
{{- end -}}
{{- if and $codefresh.tls.caCerts.secret.create (not $codefresh.tls.caCerts.secret.content) -}}
{{- $problems = append $problems "global.codefresh.tls.caCerts.secret.content: must be given where `create` is set" -}}
{{- end -}}
{{- if eq (include "gitops-runtime.authType" .) "password" -}}
{{- if not $server.auth.username -}}
{{- $problems = append $problems "global.integrations.argo-cd.server.auth.username: must be given for the type password" -}}
{{- end -}}
{{- if and (not $server.auth.password) (not (and $server.auth.passwordSecretKeyRef.name $server.auth.passwordSecretKeyRef.key)) -}}
{{- $problems = append $problems "global.integrations.argo-cd.server.auth.passwordSecretKeyRef: needs name and key" -}}
{{- end -}}
{{- else if and (not $server.auth.token) (not (and $server.auth.tokenSecretKeyRef.name $server.auth.tokenSecretKeyRef.key)) -}}
{{- $problems = append $problems "global.integrations.argo-cd.server.auth.tokenSecretKeyRef: needs name and key" -}}
{{- end -}}
{{- if and (not $server.url) (not $server.svc) -}}
{{- $problems = append $problems "global.integrations.argo-cd.server.svc: must be given, or url" -}}
{{- end -}}
{{- range $path, $ref := dict "global.codefresh.runtimeToken.secretKeyRef" $codefresh.runtimeToken.secretKeyRef -}}
{{- if not (and $ref.name $ref.key) -}}
{{- $problems = append $problems (printf "%s: needs name and key" $path) -}}
{{- end -}}
{{- end -}}
{{- range $path, $ref := dict
  "global.codefresh.tls.caCerts.secretKeyRef" $codefresh.tls.caCerts.secretKeyRef
  "global.integrations.argo-cd.server.tls.caSecretKeyRef" $server.tls.caSecretKeyRef
  "nats.auth.credentialsSecretKeyRef" .Values.nats.auth.credentialsSecretKeyRef
  "nats.auth.tokenSecretKeyRef" .Values.nats.auth.tokenSecretKeyRef
  "nats.tls.caSecretKeyRef" .Values.nats.tls.caSecretKeyRef
  "platform.postgres.secretKeyRef" .Values.platform.postgres.secretKeyRef
  "reporter.redactionKey.secretKeyRef" .Values.reporter.redactionKey.secretKeyRef -}}
{{- if and $ref (not (and $ref.name $ref.key)) -}}
{{- $problems = append $problems (printf "%s: needs name and key" $path) -}}
{{- end -}}
{{- end -}}
{{- if and $runtime.singleNamespace .Values.reporter.applicationNamespaces -}}
{{- $problems = append $problems "reporter.applicationNamespaces: excluded by global.runtime.singleNamespace" -}}
{{- end -}}
{{- if eq .Values.nats.mode "none" -}}
{{- if gt (int .Values.reporter.replicaCount) 1 -}}
{{- $problems = append $problems "reporter.replicaCount: more than one replica needs a bus; set nats.mode" -}}
{{- end -}}
{{- if .Values.reporter.autoscaling.enabled -}}
{{- $problems = append $problems "reporter.autoscaling.enabled: replicas that come and go need a bus; set nats.mode" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.nats.mode "existing") (not .Values.nats.url) -}}
{{- $problems = append $problems "nats.url: must be given for existing servers" -}}
{{- end -}}
{{- if and (eq .Values.nats.mode "embedded") .Values.nats.auth.credentialsSecretKeyRef -}}
{{- $problems = append $problems "nats.auth.credentialsSecretKeyRef: embedded servers know no credentials files; give tokenSecretKeyRef" -}}
{{- end -}}
{{- with .Values.reporter.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $problems = append $problems "reporter.autoscaling.minReplicas: is more than maxReplicas" -}}
{{- end -}}
{{- end -}}
{{- with .Values.reporter.pdb -}}
{{- if and .enabled (eq (toString .minAvailable) "") (eq (toString .maxUnavailable) "") -}}
{{- $problems = append $problems "reporter.pdb: needs minAvailable or maxUnavailable" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.platform.ingress.enabled (not .Values.platform.ingress.host) -}}
{{- $problems = append $problems "platform.ingress.host: must be given for an Ingress" -}}
{{- end -}}
{{- with .Values.platform.config.platformServer -}}
{{- if and (kindIs "map" .) (kindIs "map" .store) -}}
{{- if .store.postgresUrl -}}
{{- $problems = append $problems "platform.config.platformServer.store.postgresUrl: a secret does not belong in a ConfigMap; give platform.postgres.secretKeyRef" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $path := list "kubernetes.token" "argocd.token" "platform.token" "bus.password" "bus.token" "admin.token" "traces.otlp.token" "traces.otlp.headers" -}}
{{- $found := $.Values.reporter.config -}}
{{- range $part := splitList "." $path -}}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) $part) "" (kindIs "map" $found) -}}
{{- end -}}
{{- if $found -}}
{{- $problems = append $problems (printf "reporter.config.%s: a secret does not belong in a ConfigMap; mount a Secret by reporter.extraVolumes and give the file" $path) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $problems -}}
{{- end }}
