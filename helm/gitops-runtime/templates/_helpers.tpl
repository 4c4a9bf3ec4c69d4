{{/* How the reporter is let in: by password where Argo CD is new and nobody gave a token of it. */}}
{{- define "gitops-runtime.authType" -}}
{{- $auth := (index .Values.global.integrations "argo-cd").server.auth -}}
{{- $isNew := (index .Values "argo-cd").enabled -}}
{{- ternary "password" $auth.type (and $isNew (not $auth.token) (eq $auth.tokenSecretKeyRef.name "argocd-token")) -}}
{{- end }}

{{/* Where Argo CD is; a new one beside the release, or where its own values say. */}}
{{- define "gitops-runtime.argocdNamespace" -}}
{{- $new := index .Values "argo-cd" -}}
{{- $beside := ternary (default .Release.Namespace $new.namespaceOverride) .Release.Namespace $new.enabled -}}
{{- default $beside (index .Values.global.integrations "argo-cd").namespace -}}
{{- end }}

{{/* The Service of a new Argo CD's API server, as the published chart calls it by the same values. */}}
{{- define "gitops-runtime.newArgocdService" -}}
{{- $new := index .Values "argo-cd" -}}
{{- $name := default "argocd" $new.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full = default $full $new.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- printf "%s-%s" $full (default dict $new.server | dig "name" "" | default "server") | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* The address of Argo CD; a new one is called as its own values say. */}}
{{- define "gitops-runtime.argocdUrl" -}}
{{- $server := (index .Values.global.integrations "argo-cd").server -}}
{{- $new := index .Values "argo-cd" -}}
{{- if $server.url -}}
{{- $server.url -}}
{{- else -}}
{{- $service := $server.svc -}}
{{- if and $new.enabled (eq $service "argocd-server") -}}
{{- $service = include "gitops-runtime.newArgocdService" . -}}
{{- end -}}
{{- ternary "https" "http" (eq (int $server.port) 443) }}://{{ $service }}.{{ include "gitops-runtime.argocdNamespace" . }}.svc:{{ int $server.port }}
{{- end -}}
{{- end }}

{{/* The port of an address. Takes the address. */}}
{{- define "gitops-runtime.port" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- if $port -}}{{ $port }}{{- else -}}
{{- get (dict "https" "443" "http" "80" "tls" "4222" "nats" "4222" "ssh" "22") $url.scheme | default "443" -}}
{{- end -}}
{{- end }}

{{- define "gitops-runtime.hasBus" -}}
{{- if ne .Values.nats.mode "none" }}true{{ end -}}
{{- end }}

{{- define "gitops-runtime.natsUrl" -}}
{{- $name := include "gitops-runtime.fullname" . -}}
{{- if eq .Values.nats.mode "embedded" -}}
{{- $urls := list -}}
{{- range $number := until (int .Values.nats.replicaCount) -}}
{{- $urls = append $urls (printf "nats://%s-nats-%d.%s-nats.%s.svc:4222" $name $number $name $.Release.Namespace) -}}
{{- end -}}
{{- join "," $urls -}}
{{- else -}}
{{- .Values.nats.url -}}
{{- end -}}
{{- end }}

{{/* The Secrets that a role besides the reporter needs on the bus, as YAML: where, and name and key. */}}
{{- define "gitops-runtime.busFiles" -}}
{{- $files := dict -}}
{{- with .Values.nats -}}
{{- if .auth.tokenSecretKeyRef.name -}}{{- $_ := set $files "bus" .auth.tokenSecretKeyRef -}}
{{- else if eq .mode "embedded" -}}{{- $_ := set $files "bus" (dict "name" (include "gitops-runtime.generated" $) "key" "nats-token") -}}
{{- else if .auth.credentialsSecretKeyRef.name -}}{{- $_ := set $files "bus" .auth.credentialsSecretKeyRef -}}
{{- end -}}
{{- if .tls.caSecretKeyRef.name -}}{{- $_ := set $files "bus-ca" .tls.caSecretKeyRef -}}{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the bus for such a role. */}}
{{- define "gitops-runtime.busSettings" -}}
{{- $files := include "gitops-runtime.busFiles" . | fromYaml -}}
{{- $copies := ternary .Values.nats.replicaCount .Values.nats.copies (eq .Values.nats.mode "embedded") -}}
{{- $bus := dict "url" (include "gitops-runtime.natsUrl" .) "copies" (int $copies) -}}
{{- with $files.bus -}}
{{- $isFile := and (not $.Values.nats.auth.tokenSecretKeyRef.name) (eq $.Values.nats.mode "existing") -}}
{{- $_ := set $bus (ternary "credentialsFile" "tokenFile" $isFile) (printf "/etc/gitops-runtime/bus/%s" .key) -}}
{{- end -}}
{{- with index $files "bus-ca" -}}{{- $_ := set $bus "caFile" (printf "/etc/gitops-runtime/bus-ca/%s" .key) -}}{{- end -}}
{{- toYaml $bus -}}
{{- end }}

{{/* The roles besides the reporter that are on the bus, as YAML. */}}
{{- define "gitops-runtime.onBus" -}}
{{- toYaml (compact (list
  (ternary "tunnel-server" "" (ne (include "gitops-runtime.tunnelsShare" .) ""))
  (ternary "change-revision" "" (ne (include "gitops-runtime.changesOnBus" .) ""))
  (ternary "source-server" "" (ne (include "gitops-runtime.sourcesOverBus" .) ""))
)) -}}
{{- end }}

{{/* Whether the role change-revision is on the bus: to share the Applications, or to follow the reporter. */}}
{{- define "gitops-runtime.changesOnBus" -}}
{{- if or (include "gitops-runtime.changesShare" .) (and .Values.changeRevision.enabled .Values.reporter.enabled (include "gitops-runtime.hasBus" .)) }}true{{ end -}}
{{- end }}

{{/* Whether several processes share the role change-revision. */}}
{{- define "gitops-runtime.changesShare" -}}
{{- if and .Values.changeRevision.enabled (gt (int .Values.changeRevision.replicaCount) 1) (include "gitops-runtime.hasBus" .) }}true{{ end -}}
{{- end }}

{{/* Whether the reporter asks the source server over the bus. */}}
{{- define "gitops-runtime.sourcesOverBus" -}}
{{- if and .Values.sourceServer.enabled .Values.sourceServer.overBus (include "gitops-runtime.hasBus" .) }}true{{ end -}}
{{- end }}

{{/* The Secret and key with the authorities of a platform elsewhere, as YAML; nothing where there are none. */}}
{{- define "gitops-runtime.platformCa" -}}
{{- $ca := .Values.global.codefresh.tls.caCerts -}}
{{- if .Values.platform.enabled -}}
{{- else if $ca.secret.create -}}
{{- toYaml (dict "name" "codefresh-tls-certs" "key" $ca.secret.key) -}}
{{- else if and $ca.secretKeyRef.name $ca.secretKeyRef.key -}}
{{- toYaml $ca.secretKeyRef -}}
{{- end -}}
{{- end }}

{{/* The Secrets that whoever calls the platform as this runtime reads as files, as YAML: where, and name and key. */}}
{{- define "gitops-runtime.platformFiles" -}}
{{- $files := dict "platform" .Values.global.codefresh.runtimeToken.secretKeyRef -}}
{{- with include "gitops-runtime.platformCa" . -}}{{- $_ := set $files "platform-ca" (fromYaml .) -}}{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The name of the Secret with what nobody gives. */}}
{{- define "gitops-runtime.generated" -}}
{{ include "gitops-runtime.fullname" . }}-generated
{{- end }}

{{/* The components that run and are asked for health and metrics, as YAML. */}}
{{- define "gitops-runtime.components" -}}
{{- toYaml (compact (list
  (ternary "reporter" "" .Values.reporter.enabled)
  (ternary "platform" "" .Values.platform.enabled)
  (ternary "app-proxy" "" .Values.appProxy.enabled)
  (ternary "router" "" (ne (include "gitops-runtime.routes" .) ""))
  (ternary "tunnel-client" "" (ne (include "gitops-runtime.tunnels" .) ""))
  (ternary "tunnel-server" "" .Values.tunnelServer.enabled)
  (ternary "change-revision" "" .Values.changeRevision.enabled)
  (ternary "resource-reporter" "" .Values.resourceReporter.enabled)
  (ternary "source-server" "" .Values.sourceServer.enabled)
)) -}}
{{- end }}

{{/* What nobody gives and the reporter's first container makes, as YAML: the keys of that Secret. */}}
{{- define "gitops-runtime.generatedKeys" -}}
{{- $keys := list -}}
{{- if .Values.reporter.enabled -}}
{{- if and (eq .Values.nats.mode "embedded") (not .Values.nats.auth.tokenSecretKeyRef.name) -}}
{{- $keys = append $keys "nats-token" -}}
{{- end -}}
{{- if not .Values.reporter.redactionKey.secretKeyRef.name -}}
{{- $keys = append $keys "redaction-key" -}}
{{- end -}}
{{- end -}}
{{- toYaml $keys -}}
{{- end }}

{{/* Whether there are servers of the chart: without the reporter nobody would make their token, and nobody would connect. */}}
{{- define "gitops-runtime.embeds" -}}
{{- if and .Values.reporter.enabled (eq .Values.nats.mode "embedded") }}true{{ end -}}
{{- end }}

{{/* The Secrets that the reporter reads as files: where, and name and key. */}}
{{- define "gitops-runtime.files" -}}
{{- $argocd := (index .Values.global.integrations "argo-cd").server -}}
{{- $files := dict -}}
{{- if or (eq .Values.reporter.sink "platform") .Values.appProxy.enabled (and .Values.changeRevision.enabled .Values.changeRevision.report) -}}
{{- $files = include "gitops-runtime.platformFiles" . | fromYaml -}}
{{- end -}}
{{- if eq (include "gitops-runtime.authType" .) "password" -}}
{{- $_ := set $files "argocd" (ternary (dict "name" "gitops-runtime-argo-cd-password" "key" "token") $argocd.auth.passwordSecretKeyRef (ne $argocd.auth.password "")) -}}
{{- else -}}
{{- $_ := set $files "argocd" (ternary (dict "name" "gitops-runtime-argo-cd-token" "key" "token") $argocd.auth.tokenSecretKeyRef (ne $argocd.auth.token "")) -}}
{{- end -}}
{{- if $argocd.tls.caSecretKeyRef.name -}}
{{- $_ := set $files "argocd-ca" $argocd.tls.caSecretKeyRef -}}
{{- end -}}
{{- if .Values.reporter.redactionKey.secretKeyRef.name -}}
{{- $_ := set $files "redaction" .Values.reporter.redactionKey.secretKeyRef -}}
{{- end -}}
{{- if include "gitops-runtime.hasBus" . -}}
{{- if .Values.nats.auth.tokenSecretKeyRef.name -}}
{{- $_ := set $files "bus" .Values.nats.auth.tokenSecretKeyRef -}}
{{- else if .Values.nats.auth.credentialsSecretKeyRef.name -}}
{{- $_ := set $files "bus" .Values.nats.auth.credentialsSecretKeyRef -}}
{{- end -}}
{{- if .Values.nats.tls.caSecretKeyRef.name -}}
{{- $_ := set $files "bus-ca" .Values.nats.tls.caSecretKeyRef -}}
{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the reporter: those that the values say, and above them `reporter.config`. */}}
{{- define "gitops-runtime.settings" -}}
{{- $argocd := (index .Values.global.integrations "argo-cd").server -}}
{{- $files := include "gitops-runtime.files" . | fromYaml -}}
{{- $at := dict -}}
{{- range $place, $from := $files -}}
{{- $_ := set $at $place (printf "/etc/gitops-runtime/%s/%s" $place $from.key) -}}
{{- end -}}
{{- $settings := dict
  "kubernetes" (dict "namespace" (include "gitops-runtime.argocdNamespace" .) "applicationNamespaces" .Values.reporter.applicationNamespaces)
  "argocd" (dict "url" (include "gitops-runtime.argocdUrl" .))
  "platform" (dict "url" (include "gitops-runtime.platformUrl" .))
  "state" (dict "directory" "/var/lib/gitops-runtime")
  "log" (dict "format" "json")
  "reporter" (dict "sink" (dict "kind" .Values.reporter.sink))
-}}
{{- if eq (include "gitops-runtime.authType" .) "password" -}}
{{- $_ := set $settings.argocd "username" $argocd.auth.username -}}
{{- $_ := set $settings.argocd "passwordFile" $at.argocd -}}
{{- else -}}
{{- $_ := set $settings.argocd "tokenFile" $at.argocd -}}
{{- end -}}
{{- range include "gitops-runtime.generatedKeys" . | fromYamlArray -}}
{{- $_ := set $at . (printf "/etc/gitops-runtime/generated/%s" .) -}}
{{- end -}}
{{- with $argocd.rootpath -}}{{- $_ := set $settings.argocd "rootPath" . -}}{{- end -}}
{{- if $argocd.tls.insecure -}}{{- $_ := set $settings.argocd "insecure" true -}}{{- end -}}
{{- with index $at "argocd-ca" -}}{{- $_ := set $settings.argocd "caFile" . -}}{{- end -}}
{{- if eq .Values.reporter.sink "platform" -}}
{{- $_ := set $settings.platform "tokenFile" $at.platform -}}
{{- $_ := set $settings.reporter.sink "platform" (dict "path" (ternary "/2.0/api/events" .Values.global.codefresh.apiEventsPath .Values.platform.enabled)) -}}
{{- with index $at "platform-ca" -}}{{- $_ := set $settings.platform "caFile" . -}}{{- end -}}
{{- end -}}
{{- with default (index $at "redaction-key") $at.redaction -}}{{- $_ := set $settings "redaction" (dict "keyFile" .) -}}{{- end -}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088" "metricsAddress" "[::]:8087") -}}
{{- end -}}
{{- if include "gitops-runtime.sourcesOverBus" . -}}
{{- $_ := set $settings.reporter "sources" (dict "from" "bus") -}}
{{- else if .Values.sourceServer.enabled -}}
{{- $_ := set $settings.reporter "sources" (dict "from" "server" "url" (printf "http://%s-source-server.%s.svc" (include "gitops-runtime.fullname" .) .Release.Namespace) "tokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token") -}}
{{- end -}}
{{- if include "gitops-runtime.changesOnBus" . -}}
{{- $_ := set $settings.reporter "changeRevisions" (dict "from" "bus") -}}
{{- end -}}
{{- if include "gitops-runtime.hasBus" . -}}
{{- $copies := ternary .Values.nats.replicaCount .Values.nats.copies (eq .Values.nats.mode "embedded") -}}
{{- $bus := dict "url" (include "gitops-runtime.natsUrl" .) "copies" (int $copies) -}}
{{- if .Values.nats.auth.tokenSecretKeyRef.name -}}
{{- $_ := set $bus "tokenFile" $at.bus -}}
{{- else if .Values.nats.auth.credentialsSecretKeyRef.name -}}
{{- $_ := set $bus "credentialsFile" $at.bus -}}
{{- else if index $at "nats-token" -}}
{{- $_ := set $bus "tokenFile" (index $at "nats-token") -}}
{{- end -}}
{{- with index $at "bus-ca" -}}{{- $_ := set $bus "caFile" . -}}{{- end -}}
{{- $_ := set $settings "bus" $bus -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy .Values.reporter.config)) -}}
{{- end }}

{{/* Where reports go. */}}
{{- define "gitops-runtime.platformUrl" -}}
{{- if .Values.platform.enabled -}}
http://{{ include "gitops-runtime.fullname" . }}-platform.{{ .Release.Namespace }}.svc:8088
{{- else -}}
{{- trimSuffix "/" .Values.global.codefresh.url -}}
{{- end -}}
{{- end }}

{{/* How a role besides the reporter calls the platform. */}}
{{- define "gitops-runtime.platformCall" -}}
{{- $files := include "gitops-runtime.platformFiles" . | fromYaml -}}
{{- $platform := dict "url" (include "gitops-runtime.platformUrl" .) "tokenFile" (printf "/etc/gitops-runtime/platform/%s" $files.platform.key) -}}
{{- with get $files "platform-ca" -}}{{- $_ := set $platform "caFile" (printf "/etc/gitops-runtime/platform-ca/%s" .key) -}}{{- end -}}
{{- toYaml $platform -}}
{{- end }}

{{/* The Secret of the user's token: name and key. */}}
{{- define "gitops-runtime.userToken" -}}
{{- $user := .Values.global.codefresh.userToken -}}
{{- toYaml (ternary (dict "name" "codefresh-user-token" "key" "token") $user.secretKeyRef (ne $user.token "")) -}}
{{- end }}

{{/* The settings of the app proxy: what the reporter is told of Argo CD and the platform, and above them `appProxy.config`. */}}
{{- define "gitops-runtime.appProxySettings" -}}
{{- $told := include "gitops-runtime.settings" . | fromYaml -}}
{{- $platform := include "gitops-runtime.platformCall" . | fromYaml -}}
{{- $settings := dict
  "kubernetes" (dict "namespace" .Release.Namespace)
  "argocd" (set $told.argocd "namespace" (include "gitops-runtime.argocdNamespace" .))
  "platform" $platform
  "log" (dict "format" "json")
  "serve" (dict "address" (ternary "[::]:8088" "0.0.0.0:8088" .Values.ipv6.enabled))
  "appProxy" (dict "listen" (ternary "[::]:8080" "0.0.0.0:8080" .Values.ipv6.enabled) "namespaces" .Values.appProxy.namespaces "sealedSecrets" (dict "url" .Values.appProxy.sealingUrl) "ownPods" (printf "app.kubernetes.io/instance=%s" .Release.Name))
-}}
{{- with .Values.appProxy.git.caSecretKeyRef -}}{{- $_ := set $settings.appProxy "gitCaFile" (printf "/etc/gitops-runtime/git-ca/%s" .key) -}}{{- end -}}
{{- if .Values.appProxy.register -}}
{{- $_ := unset $platform "tokenFile" -}}
{{- $user := include "gitops-runtime.userToken" . | fromYaml -}}
{{- $ingress := .Values.global.runtime.ingress -}}
{{- $registration := dict "runtime" .Values.global.runtime.name "tokenFile" (printf "/etc/gitops-runtime/user/%s" $user.key) "cluster" .Values.global.runtime.cluster "ingressHost" (include "gitops-runtime.ingressHost" .) -}}
{{- $_ := set $registration "accessMode" (get (dict "ingress" "INGRESS" "tunnel" "TUNNEL") (include "gitops-runtime.access" .)) -}}
{{- $_ := set $registration "ingressClass" (ternary $ingress.className "" $ingress.enabled) -}}
{{- $_ := set $registration "ingressController" (ternary (include "gitops-runtime.controllerString" .) "" $ingress.enabled) -}}
{{- $_ := set $registration "chartVersion" .Chart.Version -}}
{{- $_ := set $registration "externalArgoCd" (not (index .Values "argo-cd").enabled) -}}
{{- $_ := set $settings.appProxy "registration" $registration -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy .Values.appProxy.config)) -}}
{{- end }}

{{/* The Secrets of a role's group `git` that are read as files, as YAML: where, and name and key. */}}
{{- define "gitops-runtime.gitFiles" -}}
{{- $git := . -}}
{{- $files := dict -}}
{{- with $git.caSecretKeyRef -}}{{- $_ := set $files "git-ca" . -}}{{- end -}}
{{- with $git.knownHostsSecretKeyRef -}}{{- $_ := set $files "git-hosts" . -}}{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* What is set of repositories by that group, and by `argocdCredentials` beside it. */}}
{{- define "gitops-runtime.gitSettings" -}}
{{- $git := .git -}}
{{- $settings := dict "argocdSecrets" .argocdCredentials "argocdCertificates" .argocdCredentials -}}
{{- with $git.credentialSecrets -}}
{{- $directories := list -}}
{{- range uniq . -}}{{- $directories = append $directories (printf "/etc/gitops-runtime/git/%s" .) -}}{{- end -}}
{{- $_ := set $settings "credentials" $directories -}}
{{- end -}}
{{- range $place, $from := include "gitops-runtime.gitFiles" $git | fromYaml -}}
{{- $_ := set $settings (ternary "caFile" "knownHostsFile" (eq $place "git-ca")) (printf "/etc/gitops-runtime/%s/%s" $place $from.key) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end }}

{{/* Where a role has the credentials of that group. */}}
{{- define "gitops-runtime.gitMounts" -}}
{{- range $index, $name := uniq .credentialSecrets }}
- {name: git-{{ $index }}, mountPath: /etc/gitops-runtime/git/{{ $name }}, readOnly: true}
{{- end }}
{{- end }}

{{/* The volumes of these. */}}
{{- define "gitops-runtime.gitVolumes" -}}
{{- range $index, $name := uniq .credentialSecrets }}
- name: git-{{ $index }}
  secret: {secretName: {{ $name | quote }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* The Secrets that the role change-revision reads as files. */}}
{{- define "gitops-runtime.changeRevisionFiles" -}}
{{- $files := include "gitops-runtime.gitFiles" .Values.changeRevision.git | fromYaml -}}
{{- if .Values.changeRevision.report -}}
{{- $files = merge $files (include "gitops-runtime.platformFiles" . | fromYaml) -}}
{{- end -}}
{{- if include "gitops-runtime.changesOnBus" . -}}
{{- $files = merge $files (include "gitops-runtime.busFiles" . | fromYaml) -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the role change-revision: those that the values say, and above them `changeRevision.config`. */}}
{{- define "gitops-runtime.changeRevisionSettings" -}}
{{- $values := .Values.changeRevision -}}
{{- $reporter := include "gitops-runtime.settings" . | fromYaml -}}
{{- $settings := dict
  "kubernetes" (pick $reporter.kubernetes "namespace" "applicationNamespaces")
  "state" (dict "directory" "/var/lib/gitops-runtime")
  "log" (dict "format" "json")
  "changeRevision" (dict "annotations" $values.annotations "repositories" (include "gitops-runtime.gitSettings" $values | fromYaml))
-}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088" "metricsAddress" "[::]:8087") -}}
{{- end -}}
{{- if $values.report -}}
{{- $_ := set $settings "platform" (include "gitops-runtime.platformCall" . | fromYaml) -}}
{{- $_ := set $settings "reporter" (dict "sink" (dict "platform" (dict "changes" (dict "enabled" true)))) -}}
{{- end -}}
{{- if include "gitops-runtime.changesOnBus" . -}}
{{- $_ := set $settings "bus" (include "gitops-runtime.busSettings" . | fromYaml) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $values.config)) -}}
{{- end }}

{{/* The Secrets that the source server reads as files. */}}
{{- define "gitops-runtime.sourceServerFiles" -}}
{{- $files := include "gitops-runtime.gitFiles" .Values.sourceServer.git | fromYaml -}}
{{- if .Values.sourceServer.askPlatform -}}
{{- $files = merge $files (include "gitops-runtime.platformFiles" . | fromYaml) -}}
{{- end -}}
{{- if include "gitops-runtime.sourcesOverBus" . -}}
{{- $files = merge $files (include "gitops-runtime.busFiles" . | fromYaml) -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the source server: those that the values say, and above them `sourceServer.config`. */}}
{{- define "gitops-runtime.sourceServerSettings" -}}
{{- $values := .Values.sourceServer -}}
{{- $callers := $values.callers -}}
{{- if .Values.reporter.enabled -}}
{{- /* It asks for nothing else, unless somebody lets it. */ -}}
{{- $reporter := printf "%s/%s" .Release.Namespace (include "gitops-runtime.serviceAccount" .) -}}
{{- $isNamed := false -}}
{{- range $callers -}}{{- if eq (first (splitList "=" .)) $reporter -}}{{- $isNamed = true -}}{{- end -}}{{- end -}}
{{- if not $isNamed -}}{{- $callers = append $callers (printf "%s=manifests" $reporter) -}}{{- end -}}
{{- end -}}
{{- $repositories := merge (dict "directory" "/var/lib/gitops-runtime/repositories") (include "gitops-runtime.gitSettings" $values | fromYaml) -}}
{{- $settings := dict
  "kubernetes" (dict "namespace" (include "gitops-runtime.argocdNamespace" .))
  "log" (dict "format" "json")
  "sourceServer" (dict
    "listen" (ternary "[::]:8088" "0.0.0.0:8088" .Values.ipv6.enabled)
    "callers" (dict "accounts" (uniq $callers))
    "git" (dict "allowed" $values.allowed "repositories" $repositories))
-}}
{{- if $values.askPlatform -}}
{{- $_ := set $settings "platform" (include "gitops-runtime.platformCall" . | fromYaml) -}}
{{- $_ := set $settings.sourceServer "versions" (dict "askPlatform" true) -}}
{{- end -}}
{{- if include "gitops-runtime.sourcesOverBus" . -}}
{{- $_ := set $settings "bus" (include "gitops-runtime.busSettings" . | fromYaml) -}}
{{- $_ := set $settings.sourceServer.callers "bus" true -}}
{{- $_ := set $settings.sourceServer.callers "busOperations" (list "manifests") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $values.config)) -}}
{{- end }}

{{/* What the app proxy may do with Rollouts and Workflows, wherever it may. */}}
{{- define "gitops-runtime.appProxyRules" -}}
- {apiGroups: [apps], resources: [replicasets], verbs: [list]}
- {apiGroups: [argoproj.io], resources: [analysisruns], verbs: [list]}
- {apiGroups: [argoproj.io], resources: [rollouts], verbs: [get, patch]}
- {apiGroups: [argoproj.io], resources: [rollouts/status], verbs: [patch]}
- {apiGroups: [argoproj.io], resources: [workflows], verbs: [create, get, list, patch]}
{{- end }}

{{/* "true" where the Ingress of platform or tunnel server has a certificate. Takes its values. */}}
{{- define "gitops-runtime.ingressHasCertificate" -}}
{{- if or .tlsSecretName (get .annotations "alb.ingress.kubernetes.io/certificate-arn") -}}true{{- end -}}
{{- end }}

{{/* What its address begins with: TLS may end before it. */}}
{{- define "gitops-runtime.ingressProtocol" -}}
{{- default (ternary "https" "http" (eq (include "gitops-runtime.ingressHasCertificate" .) "true")) .protocol -}}
{{- end }}

{{/* The settings of the platform: those that the values say, and above them `platform.config`. */}}
{{- define "gitops-runtime.platformSettings" -}}
{{- $settings := dict
  "state" (dict "directory" "/var/lib/gitops-runtime")
  "log" (dict "format" "json")
-}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088" "metricsAddress" "[::]:8087") -}}
{{- end -}}
{{- $server := dict -}}
{{- if .Values.platform.postgres.secretKeyRef.name -}}
{{- $_ := set $server "store" (dict "postgresUrlFile" "/etc/gitops-runtime/postgres/url") -}}
{{- end -}}
{{- with .Values.platform.oidc -}}
{{- if .issuer -}}
{{- $oidc := dict "issuer" .issuer "clientId" $.Values.platform.oidc.clientId "clientSecretFile" "/etc/gitops-runtime/oidc/secret" -}}
{{- if .caSecretKeyRef.name -}}
{{- $_ := set $oidc "caFile" "/etc/gitops-runtime/oidc-ca/ca.crt" -}}
{{- end -}}
{{- with $.Values.platform.oidc.adminGroup -}}
{{- $_ := set $oidc "adminGroup" . -}}
{{- end -}}
{{- $_ := set $server "oidc" $oidc -}}
{{- end -}}
{{- end -}}
{{- with include "gitops-runtime.platformAddress" . -}}{{- $_ := set $server "externalUrl" . -}}{{- end -}}
{{- with $server -}}
{{- $_ := set $settings "platformServer" . -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy .Values.platform.config)) -}}
{{- end }}
