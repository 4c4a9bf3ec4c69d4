{{- define "gitops-runtime.notes" -}}
{{- $codefresh := .Values.global.codefresh }}
{{- $runtime := .Values.global.runtime }}
{{- $argocd := index .Values.global.integrations "argo-cd" }}
{{- $name := include "gitops-runtime.fullname" . -}}
The runtime {{ $runtime.name }} is installed as release {{ .Release.Name }} in namespace {{ .Release.Namespace }}.

See whether every part of it is well, and whether it reports:
  gitops-runtime check --namespace {{ .Release.Namespace }} --release {{ .Release.Name }} --within 5m
  helm test {{ .Release.Name }} --namespace {{ .Release.Namespace }}
{{- if .Values.reporter.enabled }}
  kubectl --namespace {{ .Release.Namespace }} exec deploy/{{ $name }}-reporter -- /gitops-runtime status
{{- end }}
{{- if .Values.platform.enabled }}

The platform keeps what is reported, in one replica:
{{- $address := include "gitops-runtime.platformAddress" . }}
{{- if $address }}
  {{ $address }}
{{- else }}
  kubectl --namespace {{ .Release.Namespace }} port-forward service/{{ $name }}-platform 8088
{{- end }}
{{- end }}

{{- $access := include "gitops-runtime.accessNotes" . | fromYaml }}
{{- if $access.said }}

From outside it is reached {{ join "; " $access.said }}.
Which hop fails, and what to do:
  gitops-runtime check access --namespace {{ .Release.Namespace }}{{ ternary "" (printf " --service %s" .Values.router.service.name) (eq .Values.router.service.name "internal-router") }}
{{- end }}

Left to do:
{{- $todo := $access.todo }}
{{- if and .Values.platform.enabled (not .Values.platform.postgres.secretKeyRef.name) (not .Values.platform.backup.enabled) }}
{{- $todo = append $todo "nobody backs the platform's store up: set platform.backup.enabled" }}
{{- end }}
{{- if and .Values.platform.enabled .Values.platform.ingress.enabled (eq (include "gitops-runtime.ingressProtocol" .Values.platform.ingress) "http") }}
{{- $todo = append $todo "tokens cross the platform's Ingress in plain text: give platform.ingress.tlsSecretName" }}
{{- end }}
{{- if and .Values.platform.enabled .Values.platform.httpRoute.enabled }}
{{- $todo = append $todo (printf "see that a listener of the Gateway takes %s, has a certificate for it, allows routes of namespace %s and lets streams stay open for an hour, and, where it is GKE's, asks for /readyz by a HealthCheckPolicy: kubectl --namespace %s describe httproute %s-platform" .Values.platform.httpRoute.host .Release.Namespace .Release.Namespace $name) }}
{{- end }}
{{- if and .Values.platform.enabled .Values.platform.oidc.issuer (not (include "gitops-runtime.platformAddress" .)) (not (get (get (.Values.platform.config | default dict) "platformServer" | default dict) "externalUrl")) }}
{{- $todo = append $todo "the provider of platform.oidc sends people back to http://localhost:8088: give platform.config.platformServer.externalUrl where they come by another address" }}
{{- end }}
{{- if .Values.reporter.enabled }}
{{- if eq .Values.reporter.sink "platform" }}
{{- if .Values.appProxy.register }}
{{- $todo = append $todo "the app proxy registers the runtime, and keeps its token in the Secret codefresh-token; the pods wait for it. The user's token may be taken away then" }}
{{- else }}
{{- with $codefresh.runtimeToken.secretKeyRef }}
{{- $todo = append $todo (printf "the Secret %s must hold the runtime's token under the key %s; the pods wait for it" .name .key) }}
{{- if and $.Values.appProxy.enabled (or $codefresh.userToken.token $codefresh.userToken.secretKeyRef) }}
{{- $todo = append $todo "or, where the runtime is not registered yet, set appProxy.register: it does so with global.codefresh.userToken, and keeps that token" }}
{{- end }}
{{- if $.Values.platform.enabled }}
{{- $todo = append $todo (printf "that is: kubectl --namespace %s create secret generic %s --from-literal=%s=\"$(kubectl --namespace %s exec deploy/%s-platform -- /gitops-runtime platform token create --runtime %s%s)\"" $.Release.Namespace .name .key $.Release.Namespace $name $runtime.name (ternary "" " --adopted" (eq (include "gitops-runtime.runtimeId" $) $runtime.name))) }}
{{- end }}
{{- end }}
{{- end }}
{{- else }}
{{- $todo = append $todo "reports go to standard output alone: set reporter.sink to platform when you have tried it" }}
{{- end }}
{{- if eq (include "gitops-runtime.authType" .) "password" }}
{{- if not $argocd.server.auth.password }}
{{- with $argocd.server.auth.passwordSecretKeyRef }}
{{- $todo = append $todo (printf "the Secret %s must hold the password of %s at Argo CD under the key %s; the pods wait for it" .name $argocd.server.auth.username .key) }}
{{- end }}
{{- end }}
{{- else if not $argocd.server.auth.token }}
{{- with $argocd.server.auth.tokenSecretKeyRef }}
{{- $todo = append $todo (printf "the Secret %s must hold a token of Argo CD under the key %s; the pods wait for it" .name .key) }}
{{- end }}
{{- end }}
{{- if $argocd.server.tls.insecure }}
{{- $todo = append $todo "any certificate of Argo CD is accepted: give global.integrations.argo-cd.server.tls.caSecretKeyRef instead of insecure" }}
{{- end }}
{{- if and (eq .Values.nats.mode "none") (not .Values.reporter.persistence.enabled) }}
{{- $todo = append $todo "without reporter.persistence.enabled a new pod reports everything again" }}
{{- end }}
{{- end }}
{{- if .Values.appProxy.enabled }}
{{- $todo = append $todo "the account of Argo CD must be allowed what people may ask for, and to get clusters (p, role:NAME, clusters, get, *, allow in policy.csv of argocd-rbac-cm): the platform is told of those alone that it sees" }}
{{- end }}
{{- if not .Values.rbac.create }}
{{- range $role := without (include "gitops-runtime.components" . | fromYamlArray) "platform" "router" "tunnel-client" "tunnel-server" }}
{{- $of := printf "%s-%s" $name $role }}
{{- $group := get $.Values (get (dict "app-proxy" "appProxy" "change-revision" "changeRevision" "reporter" "reporter" "resource-reporter" "resourceReporter" "source-server" "sourceServer") $role) }}
{{- $account := include "gitops-runtime.accountOf" (list $of $group) }}
{{- $todo = append $todo (printf "grant the rights of the %s: kubectl --namespace %s get configmap %s --output 'jsonpath={.data.config\\.yaml}' | gitops-runtime rbac print --role %s --config /dev/stdin --service-account %s/%s | kubectl apply -f -" $role $.Release.Namespace $of $role $.Release.Namespace $account) }}
{{- end }}
{{- if include "gitops-runtime.generatedKeys" . | fromYamlArray }}
{{- $todo = append $todo (printf "and: gitops-runtime rbac print --role secrets --secret %s --service-account %s/%s | kubectl apply -f -" (include "gitops-runtime.generated" .) .Release.Namespace (include "gitops-runtime.serviceAccount" .)) }}
{{- end }}
{{- end }}
{{- if not .Values.networkPolicy.enabled }}
{{- $todo = append $todo "there are no NetworkPolicies: set networkPolicy.enabled" }}
{{- end }}
{{- range $path, $value := dict "global.codefresh.userToken.token" $codefresh.userToken.token "global.runtime.gitCredentials.password.value" $runtime.gitCredentials.password.value "global.integrations.argo-cd.server.auth.token" $argocd.server.auth.token "global.integrations.argo-cd.server.auth.password" $argocd.server.auth.password }}
{{- if $value }}
{{- $todo = append $todo (printf "%s holds a secret in plain text, which Helm keeps with the release: make a Secret and give its reference" $path) }}
{{- end }}
{{- end }}
{{- range $todo }}
  - {{ . }}
{{- else }}
  nothing.
{{- end }}
{{- $idle := list }}
{{- range $path, $value := dict
  "global.codefresh.accountId" (ternary "" $codefresh.accountId (eq (include "gitops-runtime.access" .) "tunnel"))
  "global.codefresh.userToken.secretKeyRef" (ternary "" $codefresh.userToken.secretKeyRef .Values.appProxy.register)
  "global.runtime.codefreshHosted" $runtime.codefreshHosted
  "global.runtime.gitCredentials.username" (ternary "" $runtime.gitCredentials.username (eq $runtime.gitCredentials.username "username"))
  "global.runtime.gitCredentials.password.secretKeyRef" $runtime.gitCredentials.password.secretKeyRef
  "global.integrations.argo-cd.repoServer.svc" (ternary "" $argocd.repoServer.svc (eq $argocd.repoServer.svc "argocd-repo-server"))
  "global.integrations.argo-cd.repoServer.port" (ternary "" $argocd.repoServer.port (eq (int $argocd.repoServer.port) 8081))
}}
{{- if $value }}{{- $idle = append $idle $path }}{{- end }}
{{- end }}
{{- if $idle }}

Given, and without effect in this version:
{{- range $idle }}
  - {{ . }}
{{- end }}
{{- end }}
{{- end }}
