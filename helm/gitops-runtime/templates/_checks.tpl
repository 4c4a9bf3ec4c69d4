{{/* Everything that is wrong with the values and that their schema cannot tell, a line each; nothing where all is well. */}}
{{- define "gitops-runtime.problems" -}}
{{- $problems := list -}}
{{- $foreign := list -}}
{{- range $key := list "anchors" "app-proxy" "argo-events" "argo-gateway" "argo-rollouts" "argo-workflows" "cf-argocd-extras" "codefreshWorkflowLogStoreCM" "event-reporters" "garage-workflows-artifact-storage" "gitops-operator" "installer" "internal-router" "redis" "redis-ha" "redis-secret-init" "sealed-secrets" "tunnel-client" -}}
{{- if hasKey $.Values $key -}}{{- $foreign = append $foreign $key -}}{{- end -}}
{{- end -}}
{{- range $key := list "event-reporters" "external-argo-cd" "external-argo-rollouts" -}}
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
{{- if .Values.appProxy.register -}}
{{- if not .Values.appProxy.enabled -}}
{{- $problems = append $problems "appProxy.register: needs appProxy.enabled" -}}
{{- end -}}
{{- if and (not $codefresh.userToken.token) (not (and $codefresh.userToken.secretKeyRef.name $codefresh.userToken.secretKeyRef.key)) -}}
{{- $problems = append $problems "global.codefresh.userToken: appProxy.register needs token or secretKeyRef" -}}
{{- end -}}
{{- if ne (printf "%s/%s" $codefresh.runtimeToken.secretKeyRef.name $codefresh.runtimeToken.secretKeyRef.key) "codefresh-token/token" -}}
{{- $problems = append $problems "global.codefresh.runtimeToken.secretKeyRef: must be codefresh-token and token with appProxy.register, which keeps it there" -}}
{{- end -}}
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
  "platform.oidc.secretKeyRef" .Values.platform.oidc.secretKeyRef
  "platform.oidc.caSecretKeyRef" .Values.platform.oidc.caSecretKeyRef
  "tunnelClient.tokenSecretKeyRef" .Values.tunnelClient.tokenSecretKeyRef
  "tunnelClient.tls.caSecretKeyRef" .Values.tunnelClient.tls.caSecretKeyRef
  "tunnelServer.tokensSecretKeyRef" .Values.tunnelServer.tokensSecretKeyRef
  "reporter.redactionKey.secretKeyRef" .Values.reporter.redactionKey.secretKeyRef
  "appProxy.git.caSecretKeyRef" .Values.appProxy.git.caSecretKeyRef
  "changeRevision.git.caSecretKeyRef" .Values.changeRevision.git.caSecretKeyRef
  "changeRevision.git.knownHostsSecretKeyRef" .Values.changeRevision.git.knownHostsSecretKeyRef
  "sourceServer.git.caSecretKeyRef" .Values.sourceServer.git.caSecretKeyRef
  "sourceServer.git.knownHostsSecretKeyRef" .Values.sourceServer.git.knownHostsSecretKeyRef -}}
{{- if and $ref (not (and $ref.name $ref.key)) -}}
{{- $problems = append $problems (printf "%s: needs name and key" $path) -}}
{{- end -}}
{{- end -}}
{{- $others := list "reporter.applicationNamespaces" "reporter.config.kubernetes.applicationNamespaces" -}}
{{- if .Values.appProxy.enabled -}}{{- $others = concat $others (list "appProxy.namespaces" "appProxy.config.appProxy.namespaces") -}}{{- end -}}
{{- if .Values.changeRevision.enabled -}}{{- $others = append $others "changeRevision.config.kubernetes.applicationNamespaces" -}}{{- end -}}
{{- if .Values.resourceReporter.enabled -}}{{- $others = concat $others (list "resourceReporter.namespaces" "resourceReporter.config.resources.namespaces") -}}{{- end -}}
{{- range $path := ternary $others list $runtime.singleNamespace -}}
{{- $found := $.Values -}}
{{- range $part := splitList "." $path -}}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) $part) "" (kindIs "map" $found) -}}
{{- end -}}
{{- if $found -}}
{{- $problems = append $problems (printf "%s: excluded by global.runtime.singleNamespace" $path) -}}
{{- end -}}
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
{{- range $group, $scaled := dict "reporter" .Values.reporter.autoscaling "router" .Values.router.autoscaling "sourceServer" .Values.sourceServer.autoscaling -}}
{{- if and $scaled.enabled (gt (int $scaled.minReplicas) (int $scaled.maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas: is more than maxReplicas" $group) -}}
{{- end -}}
{{- end -}}
{{- range $group, $pdb := dict "reporter" .Values.reporter.pdb "resourceReporter" .Values.resourceReporter.pdb "router" .Values.router.pdb "tunnelClient" .Values.tunnelClient.pdb "tunnelServer" .Values.tunnelServer.pdb "sourceServer" .Values.sourceServer.pdb "appProxy" .Values.appProxy.pdb "changeRevision" .Values.changeRevision.pdb -}}
{{- if and $pdb.enabled (eq (toString $pdb.minAvailable) "") (eq (toString $pdb.maxUnavailable) "") -}}
{{- $problems = append $problems (printf "%s.pdb: needs minAvailable or maxUnavailable" $group) -}}
{{- end -}}
{{- end -}}
{{- $access := include "gitops-runtime.access" . -}}
{{- $route := $runtime.httpRoute -}}
{{- if and (eq $access "ingress") (not $runtime.ingress.hosts) -}}
{{- $problems = append $problems "global.runtime.ingress.hosts: must be given for an Ingress" -}}
{{- end -}}
{{- if and (eq $access "ingress") (not $runtime.ingress.className) -}}
{{- $problems = append $problems "global.runtime.ingress.className: must be given for an Ingress" -}}
{{- end -}}
{{- if and (eq $access "httpRoute") (not (and $route.hostnames $route.parentRefs)) -}}
{{- $problems = append $problems "global.runtime.httpRoute: needs hostnames and parentRefs" -}}
{{- end -}}
{{- if and (eq $access "virtualService") (not (and $runtime.virtualService.hosts $runtime.virtualService.gateways)) -}}
{{- $problems = append $problems "global.runtime.virtualService: needs hosts and gateways" -}}
{{- end -}}
{{- with .Values.tunnelClient -}}
{{- if eq $access "tunnel" -}}
{{- $tunnel := include "gitops-runtime.tunnelName" $ -}}
{{- $pattern := ternary "^[a-z0-9]{1,24}-[a-z0-9][-a-z0-9]{0,37}$" "^[a-z0-9]{1,24}-[a-z0-9]{1,38}$" (eq .protocol "frp") -}}
{{- if and (not .name) (not $codefresh.accountId) -}}
{{- $problems = append $problems "global.codefresh.accountId: must be given for a tunnel, which is named after it" -}}
{{- else if not (regexMatch $pattern $tunnel) -}}
{{- $problems = append $problems (printf "tunnelClient.name: %s is no name of a tunnel, which is ACCOUNT-RUNTIME of lower-case letters and digits; give one" $tunnel) -}}
{{- end -}}
{{- if not (or .forward $.Values.router.enabled) -}}
{{- $problems = append $problems "tunnelClient.forward: must be given where the router is off" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.tunnelServer -}}
{{- if .enabled -}}
{{- if not .domain -}}
{{- $problems = append $problems "tunnelServer.domain: must be given" -}}
{{- end -}}
{{- if and .ingress.enabled (not .ingress.host) -}}
{{- $problems = append $problems "tunnelServer.ingress.host: must be given for an Ingress" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not (and .httpRoute.host .httpRoute.parentRefs)) -}}
{{- $problems = append $problems "tunnelServer.httpRoute: needs host and parentRefs" -}}
{{- end -}}
{{- if and .httpRoute.enabled .tls.secretName -}}
{{- $problems = append $problems "tunnelServer.tls.secretName: must be empty for an HTTPRoute; its Gateway ends TLS" -}}
{{- end -}}
{{- if gt (int .replicaCount) 1 -}}
{{- if eq $.Values.nats.mode "none" -}}
{{- $problems = append $problems "tunnelServer.replicaCount: more than one server needs a bus; set nats.mode" -}}
{{- else if and (eq $.Values.nats.mode "embedded") (not $.Values.reporter.enabled) -}}
{{- $problems = append $problems "tunnelServer.replicaCount: embedded servers of the bus run beside the reporter alone; set nats.mode to existing" -}}
{{- end -}}
{{- end -}}
{{- if not (or .tokensSecretKeyRef.name $.Values.platform.enabled (ne $codefresh.url "https://g.codefresh.io")) -}}
{{- $problems = append $problems "tunnelServer.tokensSecretKeyRef: must be given, or a platform of your own" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $onBus := dict -}}
{{- if and .Values.changeRevision.enabled (gt (int .Values.changeRevision.replicaCount) 1) -}}
{{- $_ := set $onBus "changeRevision.replicaCount" "more than one process needs a bus; set nats.mode" -}}
{{- end -}}
{{- if and .Values.sourceServer.enabled .Values.sourceServer.overBus -}}
{{- $_ := set $onBus "sourceServer.overBus" "needs a bus; set nats.mode" -}}
{{- end -}}
{{- range $path, $needs := $onBus -}}
{{- if eq $.Values.nats.mode "none" -}}
{{- $problems = append $problems (printf "%s: %s" $path $needs) -}}
{{- else if and (eq $.Values.nats.mode "embedded") (not $.Values.reporter.enabled) -}}
{{- $problems = append $problems (printf "%s: embedded servers of the bus run beside the reporter alone; set nats.mode to existing" $path) -}}
{{- end -}}
{{- end -}}
{{- with .Values.sourceServer -}}
{{- if .enabled -}}
{{- if not (or .allowed .argocdCredentials .git.credentialSecrets .config.sourceServer) -}}
{{- $problems = append $problems "sourceServer.allowed: must be given, or argocdCredentials, or git.credentialSecrets: it would fetch no repository" -}}
{{- end -}}
{{- if not (or $.Values.reporter.enabled .callers .config.sourceServer) -}}
{{- $problems = append $problems "sourceServer.callers: must be given where the reporter is off: nobody may ask" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.platform.ingress.enabled (not .Values.platform.ingress.host) -}}
{{- $problems = append $problems "platform.ingress.host: must be given for an Ingress" -}}
{{- end -}}
{{- with .Values.platform.httpRoute -}}
{{- if and .enabled (not (and .host .parentRefs)) -}}
{{- $problems = append $problems "platform.httpRoute: needs host and parentRefs" -}}
{{- end -}}
{{- end -}}
{{- $made := dict -}}
{{- range $component := list "appProxy" "changeRevision" "platform" "reporter" "resourceReporter" "sourceServer" -}}
{{- $values := get $.Values $component -}}
{{- $account := $values.serviceAccount | default dict -}}
{{- if and $values.enabled (ternary $account.create true (hasKey $account "create")) $account.name -}}
{{- $path := printf "%s.serviceAccount" $component -}}
{{- with get $made $account.name -}}
{{- $problems = append $problems (printf "%s: makes the account %s, which %s makes as well; set create to false in one of them" $path $account.name .) -}}
{{- else -}}
{{- $_ := set $made $account.name $path -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.platform.oidc -}}
{{- if and .issuer (not .clientId) -}}
{{- $problems = append $problems "platform.oidc.clientId: must be given with issuer" -}}
{{- end -}}
{{- if and .issuer (not .secretKeyRef) -}}
{{- $problems = append $problems "platform.oidc.secretKeyRef: must be given with issuer" -}}
{{- end -}}
{{- end -}}
{{- if contains "@" .Values.nats.url -}}
{{- $problems = append $problems "nats.url: a user and a password do not belong in a ConfigMap; give nats.auth" -}}
{{- end -}}
{{- $referred := dict
  "changeRevision.config.changeRevision.repositories.credential.password" "changeRevision.git.credentialSecrets"
  "platform.config.platformServer.oidc.clientSecret" "platform.oidc.secretKeyRef"
  "platform.config.platformServer.store.postgresUrl" "platform.postgres.secretKeyRef"
  "sourceServer.config.sourceServer.git.repositories.credential.password" "sourceServer.git.credentialSecrets"
  "tunnelClient.config.tunnelClient.token" "tunnelClient.tokenSecretKeyRef" -}}
{{- $secrets := list "admin.token" "argocd.password" "argocd.token" "bus.password" "bus.token" "changeRevision.repositories.credential.password" "kubernetes.token" "platform.token" "platformServer.oidc.clientSecret" "platformServer.store.postgresUrl" "sourceServer.git.repositories.credential.password" "traces.otlp.headers" "traces.otlp.token" "tunnelClient.token" -}}
{{- range $component := list "appProxy" "changeRevision" "platform" "reporter" "resourceReporter" "router" "sourceServer" "tunnelClient" "tunnelServer" -}}
{{- range $setting := $secrets -}}
{{- $found := (get $.Values $component).config -}}
{{- range $part := splitList "." $setting -}}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) $part) "" (kindIs "map" $found) -}}
{{- end -}}
{{- if $found -}}
{{- $path := printf "%s.config.%s" $component $setting -}}
{{- $cure := printf "mount a Secret by %s.extraVolumes and give the file" $component -}}
{{- if hasKey $referred $path -}}{{- $cure = printf "give %s" (get $referred $path) -}}{{- end -}}
{{- $problems = append $problems (printf "%s: a secret does not belong in a ConfigMap; %s" $path $cure) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "\n" $problems -}}
{{- end }}
