{{/* How the outside reaches the runtime, and what is left to do for it: a list under `todo`, and lines under `said`, as YAML. */}}
{{- define "gitops-runtime.accessNotes" -}}
{{- $runtime := .Values.global.runtime -}}
{{- $access := include "gitops-runtime.access" . -}}
{{- $address := include "gitops-runtime.ingressHost" . -}}
{{- $host := $address | trimPrefix "https://" | trimPrefix "http://" | default "the host" -}}
{{- $namespace := .Release.Namespace -}}
{{- $router := .Values.router -}}
{{- $name := printf "%s-router" (include "gitops-runtime.fullname" .) -}}
{{- $said := list -}}
{{- $todo := list -}}
{{- if or $router.enabled (eq $access "tunnel") -}}
{{- if and (eq $access "ingress") $router.enabled -}}
{{- $ingress := $runtime.ingress -}}
{{- $controller := include "gitops-runtime.controller" $ingress -}}
{{- $said = append $said (printf "by the Ingress %s at %s" $name $address) -}}
{{- $hasArn := hasKey $ingress.annotations "alb.ingress.kubernetes.io/certificate-arn" -}}
{{- $isBare := and (eq $ingress.protocol "https") (not $ingress.tls) -}}
{{- if eq $controller "alb" -}}
{{- $todo = append $todo (printf "make an alias record (Route 53: A, alias) from %s to the load balancer, once kubectl --namespace %s get ingress %s says where that is; until then set global.runtime.ingress.skipValidation" $host $namespace $name) -}}
{{- if and $isBare (not $hasArn) -}}
{{- $todo = append $todo (printf "request a certificate for %s in ACM, and name it in the annotation alb.ingress.kubernetes.io/certificate-arn" $host) -}}
{{- end -}}
{{- else -}}
{{- $todo = append $todo (printf "make a DNS record from %s to the external address of the ingress controller" $host) -}}
{{- if and $isBare (ne $controller "alb") -}}
{{- $todo = append $todo (printf "give global.runtime.ingress.tls the Secret of a certificate for %s that the platform trusts, unless the controller has one" $host) -}}
{{- end -}}
{{- end -}}
{{- if eq $controller "traefik" -}}
{{- $todo = append $todo "Traefik says in no Ingress where it is, unless providers.kubernetesIngress.publishedService.enabled is set in its chart: Argo CD calls such an Ingress Progressing for ever" -}}
{{- else if eq $controller "nginx" -}}
{{- $todo = append $todo "NGINX says in no Ingress where it is, unless it runs with -report-ingress-status (in its chart: controller.reportIngressStatus.enable)" -}}
{{- if include "gitops-runtime.hasMaster" . -}}
{{- if $ingress.tls -}}
{{- $said = append $said (printf "its certificate is that of the master Ingress %s-master; NGINX takes none from the minion" $name) -}}
{{- else -}}
{{- $todo = append $todo (printf "the master Ingress %s-master ends TLS, not the minion: give global.runtime.ingress.tls, or patch the Secret into its spec.tls" $name) -}}
{{- end -}}
{{- end -}}
{{- else if eq $controller "ambassador" -}}
{{- $todo = append $todo "Ambassador passes no WebSockets of an Ingress: make a Mapping for /app-proxy/ with allow_upgrade: [websocket] and timeout_ms: 0 beside it, and a Host with the certificate" -}}
{{- else if eq $controller "istio" -}}
{{- $todo = append $todo "Istio takes a VirtualService better than an Ingress: set global.runtime.virtualService, and ingress.enabled to false" -}}
{{- else if eq $controller "ingress-nginx" -}}
{{- $todo = append $todo "see that the load balancer before ingress-nginx passes TCP (AWS: the annotation service.beta.kubernetes.io/aws-load-balancer-backend-protocol: tcp on its Service), for WebSockets" -}}
{{- else if eq $controller "other" -}}
{{- $todo = append $todo (printf "nothing is known of the class %s: see that it passes WebSockets, does not hold event streams back, and lets them stay open for an hour; annotations are yours to give" $ingress.className) -}}
{{- end -}}
{{- else if and (eq $access "httpRoute") $router.enabled -}}
{{- $said = append $said (printf "by the HTTPRoute %s at %s" $name $address) -}}
{{- $todo = append $todo (printf "see that a listener of the Gateway takes %s, has a certificate for it and allows routes of namespace %s: kubectl --namespace %s describe httproute %s" $host $namespace $namespace $name) -}}
{{- $todo = append $todo "see that the Gateway lets streams stay open for an hour (Contour: enableWebsockets on an HTTPProxy; others by a policy of theirs)" -}}
{{- $todo = append $todo (printf "where the Gateway is GKE's, make a HealthCheckPolicy by which it asks the Service %s for /readyz: else it asks for /, and leads nobody there" $router.service.name) -}}
{{- else if and (eq $access "virtualService") $router.enabled -}}
{{- $said = append $said (printf "by the VirtualService %s at %s" $name $address) -}}
{{- $todo = append $todo (printf "see that a server of the Gateway %s takes %s, with a certificate (credentialName, in the namespace of the gateway's pods), and make a DNS record to it" (join ", " $runtime.virtualService.gateways) $host) -}}
{{- else if eq $access "tunnel" -}}
{{- $said = append $said (printf "by a tunnel to %s%s; nothing is exposed" .Values.tunnelClient.to (ternary (printf ", at %s" $address) "" (ne $address ""))) -}}
{{- if not $address -}}
{{- $todo = append $todo "give tunnelClient.domain, so that the platform is told the runtime's address" -}}
{{- end -}}
{{- if eq .Values.tunnelClient.protocol "frp" -}}
{{- $todo = append $todo "the tunnel speaks frp, which is weaker: TLS alone protects the token; set tunnelClient.protocol to native where the server speaks it" -}}
{{- end -}}
{{- if not .Values.tunnelClient.tokenSecretKeyRef -}}
{{- with .Values.global.codefresh.runtimeToken.secretKeyRef -}}
{{- $todo = append $todo (printf "the tunnel opens with the runtime's token, under the key %s of the Secret %s; the pod waits for it" .key .name) -}}
{{- end -}}
{{- end -}}
{{- else if and (eq $access "url") $router.enabled -}}
{{- $said = append $said (printf "by a gateway of your own at %s" $address) -}}
{{- $todo = append $todo (printf "lead the prefixes %s of %s to the Service %s, port 80, with WebSockets and event streams" (join ", " (include "gitops-runtime.prefixes" . | fromYamlArray)) $address $router.service.name) -}}
{{- end -}}
{{- if and $router.enabled (not $router.trustedProxies) $access -}}
{{- $todo = append $todo "the router believes nobody's X-Forwarded-For: give router.trustedProxies the network of what leads to it, where clients' addresses matter" -}}
{{- end -}}
{{- end -}}
{{- with .Values.tunnelServer -}}
{{- if .enabled -}}
{{- $said = append $said (printf "and tunnels of others end here, at *.%s" .domain) -}}
{{- $hosts := compact (list (ternary .ingress.host "" .ingress.enabled) (ternary .httpRoute.host "" .httpRoute.enabled)) | uniq -}}
{{- $todo = append $todo (printf "make DNS records from *.%s%s to the tunnel server, with a certificate for both" .domain (ternary (printf " and %s" (join ", " $hosts)) "" (gt (len $hosts) 0))) -}}
{{- if .httpRoute.enabled -}}
{{- $todo = append $todo (printf "see that a listener of the Gateway takes %s and *.%s, allows routes of namespace %s and lets WebSockets stay open for an hour, and, where it is GKE's, make a HealthCheckPolicy by which it asks port 8088 for /readyz: where no tunnel is visited the answer is 404" .httpRoute.host .domain $.Release.Namespace) -}}
{{- end -}}
{{- if and .ingress.enabled (eq (include "gitops-runtime.ingressProtocol" .ingress) "http") -}}
{{- $todo = append $todo "tokens cross the tunnel server's Ingress in plain text: give tunnelServer.ingress.tlsSecretName" -}}
{{- end -}}
{{- if and (or .ingress.enabled .httpRoute.enabled) (not .trustedProxies) -}}
{{- $todo = append $todo "the tunnel server takes every visitor for its Ingress or Gateway: give tunnelServer.trustedProxies the network of that, or lists of allowed addresses let nobody in" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "said" $said "todo" $todo) -}}
{{- end }}
