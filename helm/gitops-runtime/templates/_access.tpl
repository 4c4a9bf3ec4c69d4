{{/* Which way leads in: the first that is given, and nothing where none is. */}}
{{- define "gitops-runtime.access" -}}
{{- $runtime := .Values.global.runtime -}}
{{- if $runtime.ingress.enabled -}}ingress
{{- else if $runtime.httpRoute.enabled -}}httpRoute
{{- else if and .Values.tunnelClient.enabled .Values.tunnelClient.to -}}tunnel
{{- else if $runtime.virtualService.enabled -}}virtualService
{{- else if $runtime.ingressUrl -}}url
{{- end -}}
{{- end }}

{{/* Whether the router runs: where a way leads to it. */}}
{{- define "gitops-runtime.routes" -}}
{{- if and .Values.router.enabled (include "gitops-runtime.access" .) }}true{{ end -}}
{{- end }}

{{/* Whether the tunnel's client runs. */}}
{{- define "gitops-runtime.tunnels" -}}
{{- if eq (include "gitops-runtime.access" .) "tunnel" }}true{{ end -}}
{{- end }}

{{/* What our platform tells the runtime by where its name may not stand: the name itself where it has lower-case letters and digits
alone; else those of it, and the beginning of its digest. */}}
{{- define "gitops-runtime.runtimeId" -}}
{{- $name := .Values.global.runtime.name -}}
{{- if regexMatch "^[a-z][a-z0-9]{0,37}$" $name -}}
{{- $name -}}
{{- else -}}
{{- $lower := lower $name -}}
{{- $begin := ternary "" "r" (regexMatch "^[a-z]" $lower) -}}
{{- printf "%s%s" $begin (regexReplaceAll "[^a-z0-9]" $lower "") | trunc 28 -}}
{{- sha256sum $name | trunc 10 -}}
{{- end -}}
{{- end }}

{{/* What objects of Kubernetes are named by: its name where one may be called so, else what the platform tells it by. */}}
{{- define "gitops-runtime.objectName" -}}
{{- $name := .Values.global.runtime.name -}}
{{- ternary $name (include "gitops-runtime.runtimeId" .) (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $name) -}}
{{- end }}

{{/* The name of its tunnel; a server of the frp family takes the runtime's name as it is, where a host may be called so. */}}
{{- define "gitops-runtime.tunnelName" -}}
{{- $name := .Values.global.runtime.name -}}
{{- $isTaken := and (eq .Values.tunnelClient.protocol "frp") (regexMatch "^[a-z0-9]([-a-z0-9]{0,36}[a-z0-9])?$" $name) -}}
{{- $runtime := ternary $name (include "gitops-runtime.runtimeId" .) $isTaken -}}
{{- default (printf "%s-%s" .Values.global.codefresh.accountId $runtime) .Values.tunnelClient.name -}}
{{- end }}

{{/* The runtime's address, as the platform is told it. */}}
{{- define "gitops-runtime.ingressHost" -}}
{{- $access := include "gitops-runtime.access" . -}}
{{- $runtime := .Values.global.runtime -}}
{{- if and (eq $access "ingress") $runtime.ingress.hosts -}}
{{- $runtime.ingress.protocol }}://{{ first $runtime.ingress.hosts }}
{{- else if and (eq $access "httpRoute") $runtime.httpRoute.hostnames -}}
{{- $runtime.httpRoute.protocol }}://{{ first $runtime.httpRoute.hostnames }}
{{- else if and (eq $access "tunnel") .Values.tunnelClient.domain -}}
https://{{ include "gitops-runtime.tunnelName" . }}.{{ .Values.tunnelClient.domain }}
{{- else if and (eq $access "virtualService") $runtime.virtualService.hosts -}}
{{- $runtime.virtualService.protocol }}://{{ first $runtime.virtualService.hosts }}
{{- else -}}
{{- trimSuffix "/" $runtime.ingressUrl -}}
{{- end -}}
{{- end }}

{{/* What serves the class of an Ingress: as it is said, or as class and annotations tell. Takes its values. */}}
{{- define "gitops-runtime.controller" -}}
{{- $ingress := . -}}
{{- $keys := keys $ingress.annotations | sortAlpha | join " " -}}
{{- if $ingress.controller -}}{{ $ingress.controller }}
{{- else if contains "alb.ingress.kubernetes.io/" $keys -}}alb
{{- else if regexMatch "(^| )nginx\\.org/" $keys -}}nginx
{{- else -}}
{{- get (dict "alb" "alb" "ambassador" "ambassador" "nginx" "ingress-nginx" "ingress-nginx" "ingress-nginx" "istio" "istio" "traefik" "traefik") $ingress.className | default "other" -}}
{{- end -}}
{{- end }}

{{/* What the platform calls it; nothing where nobody said. */}}
{{- define "gitops-runtime.controllerString" -}}
{{- get (dict
  "alb" "ingress.k8s.aws/alb"
  "ambassador" "getambassador.io/ingress-controller"
  "ingress-nginx" "k8s.io/ingress-nginx"
  "istio" "istio.io/ingress-controller"
  "nginx" "nginx.org/ingress-controller"
  "traefik" "traefik.io/ingress-controller"
) (include "gitops-runtime.controller" .Values.global.runtime.ingress) -}}
{{- end }}

{{/* Annotations that the controller of an Ingress needs for large bodies, WebSockets and streams that last; those of the values
     stand above. Takes the values of the `ingress`, the `service` that it leads to, `isHttps`, and `more` that this one needs, by
     controller. */}}
{{- define "gitops-runtime.annotationsOf" -}}
{{- $ingress := .ingress -}}
{{- $controller := include "gitops-runtime.controller" $ingress -}}
{{- $needed := get .more $controller | default dict | deepCopy -}}
{{- if eq $controller "ingress-nginx" -}}
{{- $needed = merge $needed (dict
  "nginx.ingress.kubernetes.io/proxy-body-size" "100m"
  "nginx.ingress.kubernetes.io/proxy-buffering" "off"
  "nginx.ingress.kubernetes.io/proxy-read-timeout" "3600"
  "nginx.ingress.kubernetes.io/proxy-send-timeout" "3600"
) -}}
{{- else if eq $controller "nginx" -}}
{{- $needed = merge $needed (dict
  "nginx.org/client-max-body-size" "100m"
  "nginx.org/proxy-buffering" "False"
  "nginx.org/proxy-read-timeout" "3600s"
  "nginx.org/proxy-send-timeout" "3600s"
  "nginx.org/websocket-services" .service
) -}}
{{- else if eq $controller "alb" -}}
{{- $needed = merge $needed (dict
  "alb.ingress.kubernetes.io/listen-ports" (ternary "[{\"HTTP\": 80}, {\"HTTPS\": 443}]" "[{\"HTTP\": 80}]" .isHttps)
  "alb.ingress.kubernetes.io/load-balancer-attributes" "idle_timeout.timeout_seconds=3600"
  "alb.ingress.kubernetes.io/scheme" "internet-facing"
  "alb.ingress.kubernetes.io/target-type" "ip"
) -}}
{{- else if eq $ingress.className "openshift-default" -}}
{{- /* A stream that says nothing for half a minute is cut else. */ -}}
{{- $needed = merge $needed (dict "haproxy.router.openshift.io/timeout" "3600s") -}}
{{- end -}}
{{- $annotations := dict -}}
{{- range $key, $value := mergeOverwrite $needed (deepCopy $ingress.annotations) -}}
{{- if ne (toString $value) "" -}}{{- $_ := set $annotations $key $value -}}{{- end -}}
{{- end -}}
{{- with $annotations -}}{{- toYaml . -}}{{- end -}}
{{- end }}

{{/* Those of the Ingress that leads to the router. */}}
{{- define "gitops-runtime.ingressAnnotations" -}}
{{- $ingress := .Values.global.runtime.ingress -}}
{{- include "gitops-runtime.annotationsOf" (dict "ingress" $ingress "service" .Values.router.service.name "isHttps" (eq $ingress.protocol "https") "more" (dict
  "alb" (dict "alb.ingress.kubernetes.io/group.name" "csdp-ingress" "alb.ingress.kubernetes.io/healthcheck-path" "/readyz")
  "nginx" (dict "nginx.org/mergeable-ingress-type" "minion")
)) -}}
{{- end }}

{{/* Whether that controller wants a master of the host beside this Ingress, which has its certificate. */}}
{{- define "gitops-runtime.hasMaster" -}}
{{- $annotations := include "gitops-runtime.ingressAnnotations" . | fromYaml -}}
{{- if and (eq (include "gitops-runtime.controller" .Values.global.runtime.ingress) "nginx") (eq (get $annotations "nginx.org/mergeable-ingress-type") "minion") }}true{{ end -}}
{{- end }}

{{/* The prefixes that lead to the router, as YAML. */}}
{{- define "gitops-runtime.prefixes" -}}
{{- toYaml (compact (list "/webhooks" (ternary "/workflows" "" (ne .Values.router.workflowsUrl "")) (ternary "/app-proxy" "" (ne .Values.router.appProxyUrl "")))) -}}
{{- end }}

{{/*
What an HTTPRoute attaches to, and what it leads to, as YAML: with what its definition fills in where that is left out, which whoever
compares an object with what was applied would call a difference for ever. The first takes the values' list, the second (list name port).
*/}}
{{- define "gitops-runtime.parentRefs" -}}
{{- $parents := list -}}
{{- range . -}}
{{- /* Not by merging, which takes no empty group over. */ -}}
{{- $parent := dict "group" "gateway.networking.k8s.io" "kind" "Gateway" -}}
{{- range $key, $value := . -}}{{- $_ := set $parent $key $value -}}{{- end -}}
{{- $parents = append $parents $parent -}}
{{- end -}}
{{- toYaml $parents -}}
{{- end }}
{{- define "gitops-runtime.backendRef" -}}
{group: "", kind: Service, name: {{ index . 0 }}, port: {{ index . 1 }}, weight: 1}
{{- end }}

{{/* The platform's address from outside; nothing where the chart leads nobody in. */}}
{{- define "gitops-runtime.platformAddress" -}}
{{- $platform := .Values.platform -}}
{{- if $platform.ingress.enabled -}}
{{ include "gitops-runtime.ingressProtocol" $platform.ingress }}://{{ $platform.ingress.host }}
{{- else if $platform.httpRoute.enabled -}}
{{ $platform.httpRoute.protocol }}://{{ $platform.httpRoute.host }}
{{- end -}}
{{- end }}

{{/* An address of the router's: a name without a dot is a Service of this namespace. Takes (list context url). */}}
{{- define "gitops-runtime.whole" -}}
{{- $root := index . 0 -}}
{{- $url := urlParse (index . 1) -}}
{{- $host := regexReplaceAll ":[0-9]+$" $url.host "" -}}
{{- $isName := and (not (contains "." $host)) (not (hasPrefix "[" $host)) -}}
{{- if $isName -}}
{{- $_ := set $url "host" (printf "%s.%s.svc%s" $host $root.Release.Namespace (trimPrefix $host $url.host)) -}}
{{- end -}}
{{- urlJoin $url -}}
{{- end }}

{{/* Where the router finds the app proxy: that of the chart by the name of its Service, unless another one is named. */}}
{{- define "gitops-runtime.appProxyUrl" -}}
{{- $url := .Values.router.appProxyUrl -}}
{{- $isOwn := and .Values.appProxy.enabled (eq $url "http://cap-app-proxy:3017") -}}
{{- ternary (printf "http://%s:3017" .Values.appProxy.service.name) $url $isOwn -}}
{{- end }}

{{/* The settings of the router: those that the values say, and above them `router.config`. */}}
{{- define "gitops-runtime.routerSettings" -}}
{{- $router := .Values.router -}}
{{- $appProxy := dict "url" "" -}}
{{- with include "gitops-runtime.appProxyUrl" . -}}{{- $_ := set $appProxy "url" (include "gitops-runtime.whole" (list $ .)) -}}{{- end -}}
{{- $workflows := dict "url" "" -}}
{{- with $router.workflowsUrl -}}{{- $_ := set $workflows "url" (include "gitops-runtime.whole" (list $ .)) -}}{{- end -}}
{{- $settings := dict
  "log" (dict "format" "json")
  "platform" (dict "url" .Values.global.codefresh.url)
  "router" (dict
    "listen" (ternary "[::]:8080" "0.0.0.0:8080" .Values.ipv6.enabled)
    "trustedProxies" $router.trustedProxies
    "appProxy" $appProxy
    "workflows" $workflows
    "webhooks" (dict "allow" (default (list (printf "%s/*" .Release.Namespace)) $router.webhooks))
  )
-}}
{{/* Proxies in front keep connections for up to an hour, as the annotations of an ALB say and Envoy does by itself; a request that
     is sent over one which is being closed is lost. */}}
{{- if ne (include "gitops-runtime.access" .) "tunnel" -}}
{{- $_ := set $settings.router "keepAlive" "65m" -}}
{{- end -}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $router.config)) -}}
{{- end }}

{{/* The Secrets that the tunnel's client reads as files: where, and name and key. */}}
{{- define "gitops-runtime.tunnelClientFiles" -}}
{{- $files := dict "token" (ternary .Values.tunnelClient.tokenSecretKeyRef .Values.global.codefresh.runtimeToken.secretKeyRef (gt (len .Values.tunnelClient.tokenSecretKeyRef) 0)) -}}
{{- if .Values.tunnelClient.tls.caSecretKeyRef.name -}}
{{- $_ := set $files "ca" .Values.tunnelClient.tls.caSecretKeyRef -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the tunnel's client: those that the values say, and above them `tunnelClient.config`. */}}
{{- define "gitops-runtime.tunnelClientSettings" -}}
{{- $client := .Values.tunnelClient -}}
{{- $files := include "gitops-runtime.tunnelClientFiles" . | fromYaml -}}
{{- $own := dict
  "to" $client.to
  "protocol" $client.protocol
  "name" (include "gitops-runtime.tunnelName" .)
  "forward" (default (printf "http://%s.%s.svc" .Values.router.service.name .Release.Namespace) $client.forward)
  "tokenFile" (printf "/etc/gitops-runtime/token/%s" $files.token.key)
  "allow" $client.allow
  "id" (printf "%s/%s" .Release.Namespace (include "gitops-runtime.fullname" .))
-}}
{{- with $files.ca -}}{{- $_ := set $own "caFile" (printf "/etc/gitops-runtime/ca/%s" .key) -}}{{- end -}}
{{- $settings := dict "log" (dict "format" "json") "tunnelClient" $own -}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $client.config)) -}}
{{- end }}

{{/* Whether tunnel servers find each other's tunnels over the bus. */}}
{{- define "gitops-runtime.tunnelsShare" -}}
{{- if and .Values.tunnelServer.enabled (gt (int .Values.tunnelServer.replicaCount) 1) (include "gitops-runtime.hasBus" .) }}true{{ end -}}
{{- end }}

{{/* The Service of the tunnel server's health and metrics, where that of its tunnels is reached from outside; else nothing. */}}
{{- define "gitops-runtime.tunnelHealth" -}}
{{- if ne .Values.tunnelServer.service.type "ClusterIP" }}{{ include "gitops-runtime.fullname" . }}-tunnel-health{{ end -}}
{{- end }}

{{/* The Secrets that the tunnel server reads as files: where, and name and key. */}}
{{- define "gitops-runtime.tunnelServerFiles" -}}
{{- $server := .Values.tunnelServer -}}
{{- $files := dict -}}
{{- if $server.tokensSecretKeyRef.name -}}{{- $_ := set $files "tokens" $server.tokensSecretKeyRef -}}{{- end -}}
{{- if $server.tls.secretName -}}{{- $_ := set $files "tls" (dict "name" $server.tls.secretName) -}}{{- end -}}
{{- if include "gitops-runtime.tunnelsShare" . -}}
{{- $files = merge $files (include "gitops-runtime.busFiles" . | fromYaml) -}}
{{- end -}}
{{- if not $server.tokensSecretKeyRef.name -}}
{{- with include "gitops-runtime.platformCa" . -}}{{- $_ := set $files "platform-ca" (fromYaml .) -}}{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the tunnel server: those that the values say, and above them `tunnelServer.config`. */}}
{{- define "gitops-runtime.tunnelServerSettings" -}}
{{- $server := .Values.tunnelServer -}}
{{- $files := include "gitops-runtime.tunnelServerFiles" . | fromYaml -}}
{{- $own := dict
  "listen" (ternary "[::]:8080" "0.0.0.0:8080" .Values.ipv6.enabled)
  "domain" $server.domain
  "trustedProxies" $server.trustedProxies
-}}
{{- $settings := dict "log" (dict "format" "json") "tunnelServer" $own -}}
{{- if $server.tokensSecretKeyRef.name -}}
{{- $_ := set $own "tokensFile" (printf "/etc/gitops-runtime/tokens/%s" $server.tokensSecretKeyRef.key) -}}
{{- else -}}
{{- $_ := set $own "askPlatform" true -}}
{{- $platform := dict "url" (include "gitops-runtime.platformUrl" .) -}}
{{- with index $files "platform-ca" -}}{{- $_ := set $platform "caFile" (printf "/etc/gitops-runtime/platform-ca/%s" .key) -}}{{- end -}}
{{- $_ := set $settings "platform" $platform -}}
{{- end -}}
{{- if include "gitops-runtime.tunnelsShare" . -}}
{{- $_ := set $own "peers" (dict "listen" (ternary "[::]:8081" "0.0.0.0:8081" .Values.ipv6.enabled)) -}}
{{- $_ := set $settings "bus" (include "gitops-runtime.busSettings" . | fromYaml) -}}
{{- end -}}
{{- if $server.tls.secretName -}}
{{- $_ := set $own "tls" (dict "certificateFile" "/etc/gitops-runtime/tls/tls.crt" "keyFile" "/etc/gitops-runtime/tls/tls.key") -}}
{{- end -}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $server.config)) -}}
{{- end }}
