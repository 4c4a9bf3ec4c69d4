{{/* What the NetworkPolicies of several components have in common. */}}

{{/* How the policy of a component begins: it is to say whom its pods hear and reach. Takes (list context component). */}}
{{- define "gitops-runtime.policy" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "gitops-runtime.metadata" (list $root $component (printf "%s-%s" (include "gitops-runtime.fullname" $root) $component)) | nindent 2 }}
spec:
  podSelector:
    matchLabels: {{- include "gitops-runtime.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end }}

{{/* A rule that lets a port of a component's pods be reached. Takes (list context component port). */}}
{{- define "gitops-runtime.toPods" -}}
- ports: [{protocol: TCP, port: {{ index . 2 }}}]
  to:
    - podSelector:
        matchLabels: {{- include "gitops-runtime.selector" . | nindent 10 }}
{{- end }}

{{/* One that lets a component's pods reach a port. Takes the same. */}}
{{- define "gitops-runtime.fromPods" -}}
- ports: [{protocol: TCP, port: {{ index . 2 }}}]
  from:
    - podSelector:
        matchLabels: {{- include "gitops-runtime.selector" . | nindent 10 }}
{{- end }}

{{/* What lets names be resolved. */}}
{{- define "gitops-runtime.toNames" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}, {protocol: UDP, port: 5353}, {protocol: TCP, port: 5353}]
{{- end }}

{{/* What whoever asks the cluster itself reaches. */}}
{{- define "gitops-runtime.toCluster" -}}
# Names.
{{ include "gitops-runtime.toNames" . }}
# The Kubernetes API server, which no label selects.
- ports:
    {{- range .Values.networkPolicy.kubernetesApiPorts }}
    - {protocol: TCP, port: {{ int . }}}
    {{- end }}
{{- end }}

{{/* How a role reaches the platform. */}}
{{- define "gitops-runtime.toPlatform" -}}
# The platform.
{{- if .Values.platform.enabled }}
{{ include "gitops-runtime.toPods" (list . "platform" 8088) }}
{{- else }}
- ports: [{protocol: TCP, port: {{ include "gitops-runtime.port" .Values.global.codefresh.url }}}]
{{- end }}
{{- end }}

{{/* Who may ask a role for its metrics on their own port. */}}
{{- define "gitops-runtime.metricsFrom" -}}
- ports: [{protocol: TCP, port: 8087}]
  {{- with .Values.networkPolicy.metricsFrom }}
  from: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* How a role reaches the bus, as rules of egress. */}}
{{- define "gitops-runtime.toBus" -}}
# The bus.
{{- if eq .Values.nats.mode "embedded" }}
{{ include "gitops-runtime.toPods" (list . "nats" 4222) }}
{{- else }}
- ports:
    {{- range splitList "," .Values.nats.url }}
    - {protocol: TCP, port: {{ include "gitops-runtime.port" (trim .) }}}
    {{- end }}
{{- end }}
{{- end }}

{{/* What lets a pod reach the proxies; nothing where there are none. */}}
{{- define "gitops-runtime.toProxies" -}}
{{- with compact (list .Values.global.httpProxy .Values.global.httpsProxy) -}}
# Proxies.
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ include "gitops-runtime.port" . }}}
    {{- end }}
{{- end -}}
{{- end }}

{{/* Who may ask a role without a port for metrics alone whether it is well, as rules of ingress. */}}
{{- define "gitops-runtime.healthFrom" -}}
- ports: [{protocol: TCP, port: 8088}]
  {{- with .Values.networkPolicy.metricsFrom }}
  from:
    - podSelector:
        matchLabels: {{- include "gitops-runtime.selector" (list $ "test") | nindent 10 }}
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Whether an address is that of a Service of the cluster: by one name, or with svc behind name and namespace. Takes the address. */}}
{{- define "gitops-runtime.isOfCluster" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (urlParse .).host "" -}}
{{- if regexMatch "^[^.:]+([.][^.:]+[.]svc([.].*)?)?$" $host }}true{{ end -}}
{{- end }}

{{/*
What lets a role reach Argo CD's API server. The manifests of Argo CD label its pods by their name alone, its charts by component and
part as well, where that name may be another; its operator, and so OpenShift GitOps, by the name of their Service alone. An address of
one's own may be that of a Service: what is judged is the port of the pods behind it, which is 8080. Takes (list context settings).
*/}}
{{- define "gitops-runtime.toArgocd" -}}
{{- $root := index . 0 -}}
{{- $told := (index . 1).argocd.url -}}
{{- $server := (index $root.Values.global.integrations "argo-cd").server -}}
{{- $isGiven := or $server.url (ne $told (include "gitops-runtime.argocdUrl" $root)) -}}
# Argo CD.
{{- if $isGiven }}
- ports:
    - {protocol: TCP, port: {{ include "gitops-runtime.port" $told }}}
    {{- if and (include "gitops-runtime.isOfCluster" $told) (ne (include "gitops-runtime.port" $told) "8080") }}
    - {protocol: TCP, port: 8080}
    {{- end }}
{{- else }}
- to:
    {{- $pods := list }}
    {{- range uniq (list "argocd-server" $server.svc) }}{{ $pods = append $pods (dict "app.kubernetes.io/name" .) }}{{ end }}
    {{- range $labels := append $pods (dict "app.kubernetes.io/component" "server" "app.kubernetes.io/part-of" "argocd") }}
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ include "gitops-runtime.argocdNamespace" $root | quote }}}
      podSelector:
        matchLabels: {{- toYaml $labels | nindent 10 }}
    {{- end }}
{{- end }}
{{- end }}

{{/*
The addresses in a tree of settings, a line each, by scheme, host and port alone. What only names somebody, as the source of an
event does, is none, nor is an address of one's own.
*/}}
{{- define "gitops-runtime.addresses" -}}
{{- if kindIs "string" . -}}
{{- range splitList "," . -}}
{{- $parts := regexFind "^[A-Za-z][A-Za-z0-9+.-]*://([^/?#@ ]*@)?([A-Za-z0-9._-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?([/?#]|$)" (trim .) -}}
{{- with $parts }}{{ lower (regexReplaceAll "([^/])[/?#]$" (regexReplaceAll "//[^/@]*@" . "//") "${1}") }}{{ "\n" }}{{ end -}}
{{- end -}}
{{- else if kindIs "slice" . -}}
{{- range . }}{{ include "gitops-runtime.addresses" . }}{{ end -}}
{{- else if kindIs "map" . -}}
{{- range omit . "source" "subject" "externalUrl" }}{{ include "gitops-runtime.addresses" . }}{{ end -}}
{{- end -}}
{{- end }}

{{/*
What lets a role reach the addresses that somebody names in its settings, besides Argo CD's: a receiver, a bus, a platform. The pods
behind a Service may listen on another port than it: of one in another namespace all its pods are let through, of one in this
namespace all of this. Takes (list settings config): all of its settings, and those that somebody wrote themselves.
*/}}
{{- define "gitops-runtime.toReceivers" -}}
{{- $config := default dict (index . 1) -}}
{{- $named := list (omit $config "argocd" "bus") -}}
{{- with (index . 0).resources -}}{{- $named = append $named .routes -}}{{- end -}}
{{- $ports := list -}}
{{- with (index . 0).appProxy -}}
{{- $named = append $named .workflows -}}
{{- with .sealedSecrets -}}{{- with .url -}}{{- $ports = append $ports (include "gitops-runtime.port" .) -}}{{- end -}}{{- end -}}
{{- end -}}
{{- with $config.bus -}}{{- with .url -}}
{{- /* It may be written without its scheme. */ -}}
{{- range splitList "," . -}}{{- $named = append $named (ternary . (printf "nats://%s" (trim .)) (contains "://" .)) -}}{{- end -}}
{{- end -}}{{- end -}}
{{- $urls := splitList "\n" (include "gitops-runtime.addresses" $named) -}}
{{- $spaces := list -}}
{{- $isHere := false -}}
{{- range $url := compact $urls -}}
{{- $ports = append $ports (include "gitops-runtime.port" $url) -}}
{{- $host := (urlParse $url).host -}}
{{- if include "gitops-runtime.isOfCluster" $url -}}
{{- if contains "." $host -}}{{- $spaces = append $spaces (index (splitList "." $host) 1) -}}{{- else -}}{{- $isHere = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- with uniq $ports | sortAlpha -}}
# What the settings name.
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}
{{- if or $isHere $spaces }}
- to:
    {{- if $isHere }}
    - podSelector: {}
    {{- end }}
    {{- range uniq $spaces | sortAlpha }}
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}
    {{- end }}
{{- end -}}
{{- end }}
