{{/* How names of objects begin. A Service's begins with a letter and has no dot, other than that of a release; an alias of this chart in
     one above may have capitals. */}}
{{- define "gitops-runtime.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full = default $full .Values.fullnameOverride | replace "." "-" | lower -}}
{{- regexReplaceAll "^([0-9])" $full "r${1}" | trunc 45 | trimSuffix "-" -}}
{{- end }}

{{/* What workloads select by: never changes for a release. Takes (list context component). */}}
{{- define "gitops-runtime.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: gitops-runtime
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* A text with a version in it as the value of a label, which holds no +: Flux writes the digest of a chart in a registry behind one. */}}
{{- define "gitops-runtime.label" -}}
{{- replace "+" "_" . | trunc 63 | regexFind "^.*[A-Za-z0-9]" -}}
{{- end }}

{{/* Labels of every object. Takes (list context component). */}}
{{- define "gitops-runtime.labels" -}}
{{- $root := index . 0 -}}
{{ include "gitops-runtime.selector" . }}
app: codefresh-gitops-runtime
app.kubernetes.io/part-of: codefresh-gitops-runtime
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ include "gitops-runtime.label" $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ include "gitops-runtime.label" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) }}
codefresh.io/runtime-name: {{ $root.Values.global.runtime.name | quote }}
{{- end }}

{{/* What an object of the release's namespace begins with. Takes (list context component name). */}}
{{- define "gitops-runtime.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 2 }}
namespace: {{ $root.Release.Namespace | quote }}
labels: {{- include "gitops-runtime.labels" (list $root (index . 1)) | nindent 2 }}
{{- end }}

{{/* The image of a container. Takes (list context image). */}}
{{- define "gitops-runtime.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := default $root.Values.global.imageRegistry $image.registry -}}
{{- /* CRI-O takes no name without a registry any more; where one stands in the repository, none goes before it. */ -}}
{{- if and (not $registry) (eq $image.repository "nats") -}}{{- $registry = "docker.io" -}}{{- end -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository }}:{{ default (replace "+" "_" $root.Chart.AppVersion) $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* What the security standard "restricted" asks of a pod. */}}
{{- define "gitops-runtime.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openshift.enabled }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What it asks of a container. */}}
{{- define "gitops-runtime.security" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{/* The ConfigMap of a component's settings. Takes (list context component name settings). */}}
{{- define "gitops-runtime.settingsMap" -}}
apiVersion: v1
kind: ConfigMap
metadata: {{- include "gitops-runtime.metadata" . | nindent 2 }}
data:
  config.yaml: |
    {{- index . 3 | nindent 4 }}
{{- end }}

{{/* The Service of a component's pods. Takes (list context component name service): type and annotations, which may be left out, and
     ports, as [{name, port, targetPort}]. */}}
{{- define "gitops-runtime.service" -}}
{{- $root := index . 0 -}}
{{- $service := index . 3 -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "gitops-runtime.metadata" . | nindent 2 }}
  {{- with $service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $service.type }}
  type: {{ . }}
  {{- end }}
  {{- if $root.Values.ipv6.enabled }}
  ipFamilyPolicy: PreferDualStack
  {{- end }}
  selector: {{- include "gitops-runtime.selector" . | nindent 4 }}
  ports:
    {{- range $service.ports }}
    - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .targetPort }}, protocol: TCP}
    {{- end }}
{{- end }}

{{/* The same, of a role that has a port for metrics alone. Takes (list context component name annotations). */}}
{{- define "gitops-runtime.metricsService" -}}
{{- $ports := list (dict "name" "http" "port" 8088 "targetPort" "http") (dict "name" "metrics" "port" 8087 "targetPort" "metrics") -}}
{{- include "gitops-runtime.service" (list (index . 0) (index . 1) (index . 2) (dict "annotations" (index . 3) "ports" $ports)) -}}
{{- end }}

{{/* What the pods of a role have beside their spec. Takes (list context component values settings). */}}
{{- define "gitops-runtime.podMetadata" -}}
{{- $values := index . 2 -}}
labels:
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "gitops-runtime.selector" . | nindent 2 }}
  app.kubernetes.io/part-of: codefresh-gitops-runtime
annotations:
  checksum/settings: {{ sha256sum (index . 3) }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The volumes of Secrets that a role reads as files. Takes where, and name and key. */}}
{{- define "gitops-runtime.secretVolumes" -}}
{{- range $place, $from := . }}
- name: {{ $place }}
  secret:
    secretName: {{ $from.name | quote }}
    defaultMode: 0440
    items: [{key: {{ $from.key | quote }}, path: {{ $from.key | quote }}}]
    {{- if $from.optional }}
    optional: true
    {{- end }}
{{- end }}
{{- end }}

{{/* Where a pod may run. Takes (list context component values). */}}
{{- define "gitops-runtime.scheduling" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $root.Values.global.nodeSelector $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $root.Values.global.tolerations $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $root.Values.global.topologySpreadConstraints $values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" (include "gitops-runtime.selector" (list $root $component) | fromYaml)))) | nindent 4 }}
{{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{/* How the pod of a role begins that asks the API server. Takes (list context component values account). */}}
{{- define "gitops-runtime.podSpec" -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ index . 3 | quote }}
automountServiceAccountToken: true
enableServiceLinks: false
terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
securityContext: {{- include "gitops-runtime.podSecurity" (index . 0) | nindent 2 }}
{{- include "gitops-runtime.scheduling" . | nindent 0 }}
{{- end }}

{{/* Proxies. NO_PROXY begins with the API server's address, which Kubernetes tells every pod. */}}
{{- define "gitops-runtime.proxies" -}}
{{- with .Values.global.httpProxy }}
- name: HTTP_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .Values.global.httpsProxy }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- if or .Values.global.httpProxy .Values.global.httpsProxy .Values.global.noProxy }}
- name: NO_PROXY
  value: {{ compact (list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" "::1" ".svc" ".svc.cluster.local" .Values.global.noProxy) | join "," | quote }}
{{- end }}
{{- end }}

{{/* The variables of a container: its own, those of proxies, and further ones of the values, which stand above those: a name stands in
     a list once, or an API server that applies by fields refuses it. Takes (list context values), and a list of its own where it has
     some. */}}
{{- define "gitops-runtime.env" -}}
{{- $values := index . 1 -}}
{{- $given := dict -}}
{{- range $variable, $value := $values.extraEnv -}}
{{- /* Numbers of a file come as floating-point ones, which a text has with an exponent; null is none. */ -}}
{{- $text := ternary (toJson $value) (toString $value) (kindIs "float64" $value) -}}
{{- $from := ternary $value (dict "value" $text) (kindIs "map" $value) -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $given $variable (merge (dict "name" $variable) $from) -}}{{- end -}}
{{- end -}}
{{- $own := include "gitops-runtime.proxies" (index . 0) | fromYamlArray -}}
{{- if gt (len .) 2 -}}{{- $own = concat (default list (index . 2)) $own -}}{{- end -}}
{{- $all := list -}}
{{- range $own -}}{{- if not (hasKey $given .name) -}}{{- $all = append $all . -}}{{- end -}}{{- end -}}
{{- range keys $given | sortAlpha -}}{{- $all = append $all (get $given .) -}}{{- end -}}
{{- with $all -}}{{- toYaml . -}}{{- end -}}
{{- end }}

{{/* A claim that stays when the release goes. Takes (list context component name persistence). */}}
{{- define "gitops-runtime.claim" -}}
{{- $root := index . 0 -}}
{{- $persistence := index . 3 -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace | quote }}
  labels: {{- include "gitops-runtime.selector" (list $root (index . 1)) | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
    argocd.argoproj.io/compare-options: IgnoreExtraneous
    argocd.argoproj.io/sync-options: Delete=false,Prune=false
spec:
  accessModes: [ReadWriteOnce]
  {{- with $persistence.storageClass }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests:
      storage: {{ $persistence.size }}
{{- end }}
